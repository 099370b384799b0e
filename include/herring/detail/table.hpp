// herring: an array whose size is settled once, at set-up.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_TABLE_HPP
#define HERRING_DETAIL_TABLE_HPP

#include "herring/detail/config.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::detail {

/// Owns `size` elements, value-initialised. Where nothing grows it costs a fraction of a vector to compile.
template <class Value> class table {
  public:
    table() = default;
    explicit table(std::size_t size) : data_(new Value[size]()), size_(size) {}
    table(table&& other) noexcept { *this = static_cast<table&&>(other); }
    /// They swap.
    table& operator=(table&& other) noexcept {
        Value* const data = data_;
        std::size_t const size = size_;
        data_ = other.data_;
        size_ = other.size_;
        other.data_ = data;
        other.size_ = size;
        return *this;
    }
    ~table() { delete[] data_; }

    Value* data() noexcept { return data_; }
    Value* begin() noexcept { return data_; }
    Value* end() noexcept { return data_ + size_; }
    Value& operator[](std::size_t i) noexcept { return data_[i]; }
    Value const* data() const noexcept { return data_; }
    Value const* begin() const noexcept { return data_; }
    Value const* end() const noexcept { return data_ + size_; }
    Value const& operator[](std::size_t i) const noexcept { return data_[i]; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

  private:
    Value* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_DETAIL_TABLE_HPP

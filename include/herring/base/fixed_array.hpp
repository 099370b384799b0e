// herring: an array whose size is settled once, at set-up.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_FIXED_ARRAY_HPP
#define HERRING_BASE_FIXED_ARRAY_HPP

#include "herring/base/config.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::detail {

/// Owns `size` elements, value-initialised. Where nothing grows it costs a fraction of a vector to compile.
template <class Value> class fixed_array {
  public:
    fixed_array() = default;
    explicit fixed_array(std::size_t size) : data_(new Value[size]()), size_(size) {}
    fixed_array(fixed_array&& other) noexcept { *this = static_cast<fixed_array&&>(other); }
    /// They swap.
    fixed_array& operator=(fixed_array&& other) noexcept {
        Value* const data = data_;
        std::size_t const size = size_;
        data_ = other.data_;
        size_ = other.size_;
        other.data_ = data;
        other.size_ = size;
        return *this;
    }
    ~fixed_array() { delete[] data_; }

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

#endif // HERRING_BASE_FIXED_ARRAY_HPP

// herring: arrays of a fixed size, and buffers of small values that grow.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_FIXED_ARRAY_HPP
#define HERRING_BASE_FIXED_ARRAY_HPP

#include "herring/base/config.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::detail {

/// Owns `size` value-initialised elements. Costs a fraction of a std::vector to compile.
template <class Value> class fixed_array {
  public:
    fixed_array() = default;
    explicit fixed_array(std::size_t size) : data_(new Value[size]()), size_(size) {}
    fixed_array(fixed_array&& other) noexcept { *this = static_cast<fixed_array&&>(other); }
    /// Swaps the two arrays.
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

/// Values in the order of `push`. Allocates only beyond the room that the constructor reserved.
template <class Value> class append_buffer {
  public:
    explicit append_buffer(std::size_t room = 0) : room_(room) {}

    bool empty() const noexcept { return size_ == 0; }
    Value const* begin() const noexcept { return room_.data(); }
    Value const* end() const noexcept { return room_.data() + size_; }
    void push(Value const& value) {
        if (size_ == room_.size()) [[unlikely]]
            grow();
        room_[size_++] = value;
    }
    void clear() noexcept { size_ = 0; }

  protected:
    HERRING_SETUP void grow() {
        fixed_array<Value> larger(2 * size_ + 8);
        for (std::size_t i = 0; i < size_; ++i) larger[i] = room_[i];
        room_ = static_cast<fixed_array<Value>&&>(larger);
    }

    fixed_array<Value> room_;
    std::size_t size_ = 0;
};

/// An append_buffer that accepts values while it hands out the older ones; the next `hand_out` passes on what
/// was pushed meanwhile.
template <class Value> class drain_buffer : private append_buffer<Value> {
  public:
    explicit drain_buffer(std::size_t room = 0) : append_buffer<Value>(room), going_(room) {}

    using append_buffer<Value>::empty;
    using append_buffer<Value>::push;
    /// Calls `take` with each value, in the order of `push`. Returns their number.
    template <class Take> std::size_t hand_out(Take& take) noexcept {
        if (empty()) return 0;
        going_ = static_cast<fixed_array<Value>&&>(this->room_); // tables swap
        std::size_t const count = this->size_;
        this->size_ = 0;
        for (std::size_t i = 0; i < count; ++i) take(going_[i]);
        return count;
    }

  private:
    fixed_array<Value> going_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_FIXED_ARRAY_HPP

// herring: small values that pile up and are taken all at once.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_APPEND_BUFFER_HPP
#define HERRING_BASE_APPEND_BUFFER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"

#include <cstddef>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Values in the order in which they came. Allocates only when more come than there was room made for.
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
        room_ = std::move(larger);
    }

    fixed_array<Value> room_;
    std::size_t size_ = 0;
};

/// A append_buffer that is handed out while more comes onto it: what is pushed meanwhile is for the next time.
template <class Value> class drain_buffer : private append_buffer<Value> {
  public:
    explicit drain_buffer(std::size_t room = 0) : append_buffer<Value>(room), going_(room) {}

    using append_buffer<Value>::empty;
    using append_buffer<Value>::push;
    /// Gives each value to `take`, in the order in which they came. Returns how many.
    template <class Take> std::size_t hand_out(Take& take) noexcept {
        if (empty()) return 0;
        going_ = std::move(this->room_); // tables swap
        std::size_t const count = std::exchange(this->size_, 0);
        for (std::size_t i = 0; i < count; ++i) take(going_[i]);
        return count;
    }

  private:
    fixed_array<Value> going_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_APPEND_BUFFER_HPP

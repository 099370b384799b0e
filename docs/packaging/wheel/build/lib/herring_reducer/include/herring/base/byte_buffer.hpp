// herring: a buffer of bytes that grows, for messages that are assembled or received.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_BYTE_BUFFER_HPP
#define HERRING_BASE_BYTE_BUFFER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Bytes that grow; moved, not copied. Costs a fraction of a std::vector to compile.
class byte_buffer {
  public:
    byte_buffer() = default;
    byte_buffer(byte_buffer&& other) noexcept
        : room_(std::move(other.room_)), size_(std::exchange(other.size_, 0)) {}
    byte_buffer& operator=(byte_buffer&& other) noexcept {
        room_ = std::move(other.room_); // tables swap
        size_ = std::exchange(other.size_, size_);
        return *this;
    }

    std::byte* data() noexcept { return room_.data(); }
    std::byte const* data() const noexcept { return room_.data(); }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    std::byte const* begin() const noexcept { return data(); }
    std::byte const* end() const noexcept { return data() + size_; }
    operator std::span<std::byte const>() const noexcept { return {data(), size_}; }

    /// Appends bytes.
    ///
    /// Cost:    grows by at least half, so that each of many small appends costs one copy.
    HERRING_SETUP void append(std::span<std::byte const> more) {
        if (more.empty()) return;
        if (more.size() > room_.size() - size_) {
            fixed_array<std::byte> larger(size_ + size_ / 2 + more.size());
            if (size_ != 0) std::memcpy(larger.data(), data(), size_);
            room_ = std::move(larger);
        }
        std::memcpy(data() + size_, more.data(), more.size());
        size_ += more.size();
    }

    /// Removes the first `count` bytes. Frees a room of more than 64 KiB once it is empty.
    HERRING_SETUP void drop(std::size_t count) {
        size_ -= count;
        if (size_ != 0)
            std::memmove(data(), data() + count, size_);
        else if (room_.size() > 65536)
            room_ = fixed_array<std::byte>();
    }
    void clear() noexcept { size_ = 0; }

  private:
    fixed_array<std::byte> room_;
    std::size_t size_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_BYTE_BUFFER_HPP

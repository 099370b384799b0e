// herring: framed messages over a non-blocking stream socket, written from where their payloads lie.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_NET_FRAME_STREAM_HPP
#define HERRING_NET_FRAME_STREAM_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/machine/descriptor.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/uio.h>

namespace HERRING_NAMESPACE::detail {

/// A bounded queue of messages to a stream socket, written from where their payloads lie.
///
/// `HeadBytes`: most bytes in front of a payload. `Note`: what the owner keeps about a message.
///
/// Threads:  one at a time.
/// Cost:     one `sendmsg` for up to 16 messages; no allocation after construction.
/// Lifetime: a payload stays valid until its message has left or is withdrawn.
template <std::size_t HeadBytes, class Note> class frame_writer {
  public:
    /// A message that is queued or being written. The head is last, so that all other bytes lie together.
    struct message {
        std::byte const* from = nullptr;
        std::size_t length = 0; ///< bytes of the payload
        Note note{};
        std::size_t head_bytes = 0; ///< 0: withdrawn before its first byte left
        std::array<std::byte, HeadBytes> head;

        bool is_withdrawn() const noexcept { return head_bytes == 0; }
        std::size_t bytes() const noexcept { return head_bytes + length; }
    };

    frame_writer() = default;
    /// Takes at least this number of messages.
    HERRING_SETUP explicit frame_writer(std::size_t messages)
        : mask_(std::bit_ceil(messages + 1) - 1), queue_(mask_ + 1) {}

    bool is_empty() const noexcept { return first_ == end_; }
    bool is_full() const noexcept { return after(end_) == first_; }

    /// Appends a message for the caller to fill in. `is_full()` must be false.
    message& push() noexcept {
        message& added = queue_[end_];
        end_ = after(end_);
        return added;
    }

    /// Writes as many bytes as the socket takes. Calls `on_left(message)` for each message that has left or
    /// was withdrawn, in order; `on_left` does not push.
    ///
    /// Errors: returns an errno; 0: none. Where the socket is full, messages stay queued.
    template <class OnLeft> int write(descriptor const& socket, OnLeft&& on_left) noexcept {
        for (bool has_room = true;;) {
            while (!is_empty() && sent_ >= queue_[first_].bytes()) {
                message const& left = queue_[first_];
                sent_ -= left.bytes();
                first_ = after(first_);
                on_left(left);
            }
            if (is_empty() || !has_room) return 0;
            iovec parts[2 * at_once];
            std::size_t count = 0, offered = 0, skip = sent_;
            for (std::size_t at = first_; at != end_ && count + 2 <= 2 * at_once; at = after(at)) {
                message& m = queue_[at];
                offered += add(parts, count, m.head.data(), m.head_bytes, skip);
                offered += add(parts, count, const_cast<std::byte*>(m.from), m.length, skip);
            }
            msghdr call{};
            call.msg_iov = parts;
            call.msg_iovlen = count;
            ssize_t const sent = ::sendmsg(socket.get(), &call, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0) {
                if (errno == EINTR) continue;
                return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
            }
            sent_ += static_cast<std::size_t>(sent);
            has_room = static_cast<std::size_t>(sent) == offered;
        }
    }

    /// Withdraws the payloads of the messages for whose note `is_chosen` holds. A message that has left in
    /// part keeps the rest of its payload in `bounce`, which has room for the payload until the message has
    /// left. The others are not sent: their head and payload have no bytes any more.
    ///
    /// Cost: copies the rest of one payload at most, because only the first message of a queue can have left
    ///       in part.
    template <class IsChosen> void withdraw(IsChosen&& is_chosen, std::byte* bounce) noexcept {
        for (std::size_t at = first_; at != end_; at = after(at)) {
            message& m = queue_[at];
            if (!is_chosen(m.note)) continue;
            if (at != first_ || sent_ == 0) {
                m.head_bytes = m.length = 0;
                continue;
            }
            std::size_t const gone = sent_ - std::min(sent_, m.head_bytes);
            if (gone < m.length) std::memcpy(bounce + gone, m.from + gone, m.length - gone);
            m.from = bounce;
        }
    }

  private:
    static constexpr std::size_t at_once = 16;

    std::size_t after(std::size_t at) const noexcept { return (at + 1) & mask_; }

    static std::size_t add(iovec* parts, std::size_t& count, std::byte* from, std::size_t length,
                           std::size_t& skip) noexcept {
        std::size_t const skipped = std::min(skip, length);
        skip -= skipped;
        if (length == skipped) return 0;
        parts[count++] = {from + skipped, length - skipped};
        return length - skipped;
    }

    std::size_t mask_ = 0;
    std::size_t first_ = 0, end_ = 0;
    std::size_t sent_ = 0; // bytes of the first message that have left
    fixed_array<message> queue_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_NET_FRAME_STREAM_HPP

// herring: framed messages over a stream socket, written from and read to the place of each payload.
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
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

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

/// Destination of a payload.
struct landing {
    enum class action : std::uint8_t {
        land, ///< at `to`, which has room for all of it
        skip, ///< nowhere
        wait  ///< not now: the message stays, and the next read asks again
    };
    action what = action::wait;
    std::byte* to = nullptr;
};

/// Result of reading from a stream socket.
enum class stream_state : std::uint8_t {
    ok,     ///< all that was there has been read, as far as a read may
    closed, ///< by the other end
    failed, ///< errno has the reason
    junk    ///< bytes that are no head
};

/// Reads messages from a stream socket, each payload into memory that the caller chooses.
///
/// A read takes the payload straight to its destination, and in the same call the heads and payloads behind
/// it into a stash, so that many small messages cost one read and a large one about one read a socket buffer.
///
/// `Head`: what `decode(span, Head&)` finds in `HeadBytes` bytes. Its `length` is that of the payload; its
/// `envelope`, where it has one, that of an envelope between the two.
///
/// Threads: one at a time.
/// Cost:    no allocation after construction.
template <class Head, std::size_t HeadBytes> class frame_reader {
  public:
    frame_reader() = default;
    /// The stash has room for a head with its envelope.
    HERRING_SETUP explicit frame_reader(std::size_t stash_bytes) : stash_(stash_bytes) {}

    /// Reads until the socket is drained, `calls` times at most. For each head `place(head, envelope)`
    /// returns the `landing` of the payload. Calls `on_received(head)` when a payload is complete, unless
    /// skipped; in order.
    template <class Place, class OnReceived>
    stream_state read(descriptor const& socket, int calls, Place&& place, OnReceived&& on_received) noexcept {
        if (blocked_ && !parse(place, on_received)) return stream_state::junk;
        for (; calls > 0 && !blocked_; --calls) {
            compact();
            iovec parts[2];
            std::size_t count = 0;
            std::size_t const direct = into_ != nullptr ? left_ : 0;
            if (direct > 0) parts[count++] = {into_, direct};
            parts[count++] = {stash_.data() + end_, stash_.size() - end_};
            std::size_t const wanted = direct + stash_.size() - end_;
            msghdr call{};
            call.msg_iov = parts;
            call.msg_iovlen = count;
            // Most calls find nothing. Without a payload to complete, recv is cheaper than recvmsg.
            ssize_t const got = count == 1
                                    ? ::recv(socket.get(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT)
                                    : ::recvmsg(socket.get(), &call, MSG_DONTWAIT);
            if (got < 0) {
                if (errno == EINTR) continue;
                return errno == EAGAIN || errno == EWOULDBLOCK ? stream_state::ok : stream_state::failed;
            }
            if (got == 0) return stream_state::closed;
            auto const bytes = static_cast<std::size_t>(got);
            std::size_t const landed = std::min(bytes, direct);
            end_ += bytes - landed;
            if (landed > 0) advance(landed, on_received);
            if (!parse(place, on_received)) return stream_state::junk;
            if (bytes < wanted) return stream_state::ok;
        }
        return stream_state::ok;
    }

    /// True if a message waits for its landing, so that nothing behind it is read.
    bool is_blocked() const noexcept { return blocked_; }

  private:
    void compact() noexcept {
        if (begin_ == 0) return;
        end_ -= begin_;
        if (end_ > 0) std::memmove(stash_.data(), stash_.data() + begin_, end_);
        begin_ = 0;
    }

    // Bytes of the payload have come to where they go.
    template <class OnReceived> void advance(std::size_t bytes, OnReceived& on_received) noexcept {
        left_ -= bytes;
        if (into_ == nullptr) return;
        into_ += bytes;
        if (left_ == 0) on_received(head_);
    }

    // Takes payloads and complete heads out of the stash. False: junk.
    template <class Place, class OnReceived> bool parse(Place& place, OnReceived& on_received) noexcept {
        blocked_ = false;
        while (true) {
            std::size_t const here = end_ - begin_;
            std::byte const* const from = stash_.data() + begin_;
            if (left_ > 0) {
                if (here == 0) return true;
                std::size_t const taken = std::min(left_, here);
                if (into_ != nullptr) std::memcpy(into_, from, taken);
                begin_ += taken;
                advance(taken, on_received);
                continue;
            }
            if (here < HeadBytes) return true;
            if (!decode(std::span<std::byte const, HeadBytes>(from, HeadBytes), head_)) return false;
            std::size_t envelope = 0;
            if constexpr (requires { head_.envelope; }) envelope = head_.envelope;
            if (here - HeadBytes < envelope) return true;
            landing const where = place(std::as_const(head_), std::span(from + HeadBytes, envelope));
            blocked_ = where.what == landing::action::wait;
            if (blocked_) return true;
            begin_ += HeadBytes + envelope;
            left_ = static_cast<std::size_t>(head_.length);
            bool const lands = where.what == landing::action::land;
            into_ = lands ? where.to : nullptr;
            if (lands && left_ == 0) on_received(head_);
        }
    }

    bool blocked_ = false;
    std::byte* into_ = nullptr;       // destination of the rest of the payload; nullptr: it is skipped
    std::size_t left_ = 0;            // bytes of that rest
    Head head_{};                     // of the payload
    std::size_t begin_ = 0, end_ = 0; // part of the stash that is in use
    fixed_array<std::byte> stash_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_NET_FRAME_STREAM_HPP

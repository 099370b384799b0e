// herring: a bounded queue of messages to a stream socket, sent from where they lie.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRAME_SENDER_HPP
#define HERRING_ENSEMBLE_FRAME_SENDER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/data_frames.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <sys/socket.h>
#include <sys/uio.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Head and payload of each message leave in one `sendmsg`, which takes up to 16 messages.
///
/// Memory:   the queue, and one payload's bytes for `withdraw`, both of the constructor.
/// Lifetime: a payload stays where it is until its message has left (`flush` reports it) or is withdrawn.
class frame_sender {
  public:
    /// What a message belongs to: a place or a slot. `nobody`: its payload was withdrawn.
    using owner = std::uint32_t;
    static constexpr owner nobody = ~owner{0};

    /// `bounce_bytes`: the largest payload that may be withdrawn; 0: none is.
    frame_sender(std::size_t messages, std::size_t bounce_bytes) : queue_(messages), bounce_(bounce_bytes) {}

    std::size_t queued() const noexcept { return count_; }
    std::size_t capacity() const noexcept { return queue_.size(); }

    /// False: the queue is full.
    bool push(data_head const& head, std::span<std::byte const> payload, owner of) noexcept {
        if (count_ == queue_.size()) return false;
        message& m = at(count_);
        encode(head, m.head);
        m.payload = payload;
        m.of = of;
        m.id = head.id;
        m.dropped = false;
        ++count_;
        return true;
    }

    /// Sends what the socket takes. `left(owner)` is called for each message that has left, `dropped(id)` for each that was
    /// withdrawn before its first byte had; in order.
    ///
    /// Errors: an errno; 0: none. EAGAIN is none: what is queued waits.
    template <class Left, class Dropped> int flush(int socket, Left&& left, Dropped&& dropped) noexcept {
        while (true) {
            while (count_ != 0 && at(0).dropped) {
                std::uint64_t const id = at(0).id;
                pop();
                dropped(id);
            }
            if (count_ == 0) return 0;
            iovec parts[2 * at_once];
            msghdr out{};
            out.msg_iov = parts;
            std::size_t const wanted = fill(parts, out.msg_iovlen);
            ssize_t const sent = ::sendmsg(socket, &out, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0) {
                if (errno == EINTR) continue;
                return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
            }
            offset_ += static_cast<std::size_t>(sent);
            while (count_ != 0 && !at(0).dropped && offset_ >= bytes_of(at(0))) {
                owner const of = at(0).of;
                offset_ -= bytes_of(at(0));
                pop();
                if (of != nobody) left(of);
            }
            if (static_cast<std::size_t>(sent) < wanted) return 0; // the socket is full
        }
    }

    /// The payloads of `of` go away. A message that has left in part keeps the rest of its payload in the bounce buffer; of
    /// one that has not, nothing is sent.
    ///
    /// Cost: the rest of one payload is copied at most: only the first message of a queue can have left in part.
    void withdraw(owner of) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            message& m = at(i);
            if (m.of != of) continue;
            m.of = nobody;
            if (i != 0 || offset_ == 0) {
                m.dropped = true;
                m.payload = {};
                continue;
            }
            std::size_t const sent = offset_ < data_head_bytes ? 0 : offset_ - data_head_bytes;
            if (sent < m.payload.size())
                std::memcpy(bounce_.data() + sent, m.payload.data() + sent, m.payload.size() - sent);
            m.payload = {bounce_.data(), m.payload.size()};
        }
    }

  private:
    static constexpr std::size_t at_once = 16;

    struct message {
        std::byte head[data_head_bytes];
        std::span<std::byte const> payload;
        std::uint64_t id;
        owner of;
        bool dropped;
    };

    message& at(std::size_t i) noexcept {
        std::size_t const index = first_ + i;
        return queue_[index < queue_.size() ? index : index - queue_.size()];
    }
    void pop() noexcept {
        first_ = first_ + 1 < queue_.size() ? first_ + 1 : 0;
        --count_;
    }
    static std::size_t bytes_of(message const& m) noexcept { return data_head_bytes + m.payload.size(); }

    // The messages up to the first that is dropped. Returns their bytes that have not left.
    template <class Count> std::size_t fill(iovec* parts, Count& used) noexcept {
        std::size_t bytes = 0, skip = offset_;
        Count n = 0;
        auto const add = [&](std::byte const* from, std::size_t size) {
            if (skip >= size) {
                skip -= size;
                return;
            }
            parts[n++] = {const_cast<std::byte*>(from) + skip, size - skip};
            bytes += size - skip;
            skip = 0;
        };
        for (std::size_t i = 0; i < count_ && i < at_once && !at(i).dropped; ++i) {
            add(at(i).head, data_head_bytes);
            add(at(i).payload.data(), at(i).payload.size());
        }
        used = n;
        return bytes;
    }

    fixed_array<message> queue_;
    fixed_array<std::byte> bounce_;
    std::size_t first_ = 0, count_ = 0;
    std::size_t offset_ = 0; // bytes of the first message that have left
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRAME_SENDER_HPP

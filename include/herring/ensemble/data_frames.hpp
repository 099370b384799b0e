// herring: messages on the data connection of a frontend and a member: head, sender and receiver.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DATA_FRAMES_HPP
#define HERRING_ENSEMBLE_DATA_FRAMES_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/little_endian.hpp"
#include "herring/ensemble/outcome.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <sys/socket.h>
#include <sys/uio.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Kind of message: the payload behind its head.
enum class data_kind : std::uint8_t {
    ask = 1, ///< frontend to member: a request's bytes
    row,     ///< member to frontend: an encoded row
    declined ///< member to frontend: no payload, there will be no row
};

struct data_head {
    data_kind kind = data_kind::ask;
    decline reason = decline::unspecified; ///< `declined` only
    std::uint64_t id = 0;                  ///< of the request
    std::uint64_t remaining_us = 0;        ///< `ask` only: until the deadline, when it was handed to the lane
    std::uint32_t bytes = 0;               ///< of the payload; 0 for `declined`
};

inline constexpr std::size_t data_head_bytes = 32;
inline constexpr std::uint32_t data_magic = 0x31455248; // "HRE1": the protocol's version is part of it

// Layout, little-endian: magic 0, kind 4, reason 5, zero 6, id 8, remaining_us 16, bytes 24, zero 28.
inline void encode(data_head const& h, std::byte* to) noexcept {
    put(to, data_magic);
    to[4] = static_cast<std::byte>(h.kind);
    to[5] = static_cast<std::byte>(h.reason);
    put(to + 6, std::uint16_t{0});
    put(to + 8, h.id);
    put(to + 16, h.remaining_us);
    put(to + 24, h.bytes);
    put(to + 28, std::uint32_t{0});
}

/// False if the bytes are no head: another magic, kind or reason, or a value other than 0 in an unused field.
inline bool decode(std::span<std::byte const, data_head_bytes> bytes, data_head& h) noexcept {
    std::byte const* const from = bytes.data();
    auto const kind = std::to_integer<std::uint8_t>(from[4]), reason = std::to_integer<std::uint8_t>(from[5]);
    if (get<std::uint32_t>(from) != data_magic || kind < 1 || kind > 3 || reason >= declines) return false;
    if (get<std::uint16_t>(from + 6) != 0 || get<std::uint32_t>(from + 28) != 0) return false;
    h.kind = static_cast<data_kind>(kind);
    h.reason = static_cast<decline>(reason);
    h.id = get<std::uint64_t>(from + 8);
    h.remaining_us = get<std::uint64_t>(from + 16);
    h.bytes = get<std::uint32_t>(from + 24);
    if (h.kind != data_kind::ask && h.remaining_us != 0) return false;
    return h.kind == data_kind::declined ? h.bytes == 0 : h.reason == decline::unspecified;
}

/// A bounded queue of messages to a stream socket, sent from where their payloads lie. One `sendmsg` takes
/// the heads and payloads of up to 16 messages.
///
/// Memory:   the queue, and one payload's bytes for `withdraw`, both allocated by the constructor.
/// Lifetime: a payload stays valid until its message has left (`flush` reports it) or is withdrawn.
class frame_sender {
  public:
    /// The place or slot that a message belongs to. `no_owner`: its payload was withdrawn.
    using owner = std::uint32_t;
    static constexpr owner no_owner = ~owner{0};

    /// `bounce_bytes`: the largest payload that may be withdrawn; 0: no payload is.
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

    /// Sends what the socket takes. Calls `left(owner)` for each message that has left, `dropped(id)` for
    /// each that was withdrawn before its first byte left; in order.
    ///
    /// Errors: returns an errno; 0: none. EAGAIN is no error: messages stay queued.
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
                if (of != no_owner) left(of);
            }
            if (static_cast<std::size_t>(sent) < wanted) return 0; // the socket is full
        }
    }

    /// Withdraws the payloads of `of`. A message that has left in part keeps the rest of its payload in the
    /// bounce buffer; one that has not is not sent.
    ///
    /// Cost: copies the rest of one payload at most, because only the first message of a queue can have left
    ///       in part.
    void withdraw(owner of) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            message& m = at(i);
            if (m.of != of) continue;
            m.of = no_owner;
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

    // Fills in the messages up to the first dropped one. Returns their bytes that have not left.
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

/// Result of reading from a socket.
enum class receive_state : std::uint8_t {
    ok,      ///< all that was there has been read, or the bound of one call
    closed,  ///< by the other end
    failed,  ///< errno has the reason
    no_head, ///< bytes that are no head
    refused  ///< by the caller, which chooses the memory
};

/// Memory for a payload.
struct landing {
    enum class action : std::uint8_t { land, skip, refuse };
    action what = action::refuse;
    std::byte* to = nullptr; ///< `land`: room for all of the payload
};

/// Reads messages from a stream socket, each payload into memory that the caller chooses. One system call
/// reads many small messages into a staging buffer; the rest of a larger payload is read straight to its
/// destination.
class frame_receiver {
  public:
    /// `typical`: bytes of a usual payload.
    explicit frame_receiver(std::size_t typical)
        : staging_(typical < large_payload ? staged_for_small : staged_for_large) {}

    /// Calls `begin(head)`, which returns a `landing`, and `done(head)` when the payload is complete; in
    /// order.
    ///
    /// Bounds: reads `most` bytes and the rest of a staging buffer at most. Level-triggered readiness reports
    ///         what is left.
    template <class Begin, class Done>
    receive_state read(int socket, std::size_t most, Begin&& begin, Done&& done) noexcept {
        for (std::size_t taken = 0; taken < most;) {
            iovec parts[2];
            msghdr in{};
            in.msg_iov = parts;
            std::size_t const direct = to_ != nullptr ? rest_ : 0;
            if (direct != 0) parts[in.msg_iovlen++] = {to_, direct};
            parts[in.msg_iovlen++] = {staging_.data() + staged_, staging_.size() - staged_};
            ssize_t const got = ::recvmsg(socket, &in, MSG_DONTWAIT);
            if (got < 0) {
                if (errno == EINTR) continue;
                return errno == EAGAIN || errno == EWOULDBLOCK ? receive_state::ok : receive_state::failed;
            }
            if (got == 0) return receive_state::closed;
            auto const bytes = static_cast<std::size_t>(got);
            std::size_t const room = direct + staging_.size() - staged_;
            taken += bytes;
            if (direct != 0) landed(std::min(bytes, direct), done);
            if (bytes > direct) {
                staged_ += bytes - direct;
                if (receive_state const state = parse(begin, done); state != receive_state::ok) return state;
            }
            if (bytes < room) return receive_state::ok;
        }
        return receive_state::ok;
    }

  private:
    static constexpr std::size_t large_payload = 32 * 1024;
    static constexpr std::size_t staged_for_small = 64 * 1024;
    static constexpr std::size_t staged_for_large = 4 * 1024; // copied at the start of a large payload

    template <class Done> void landed(std::size_t bytes, Done& done) noexcept {
        rest_ -= bytes;
        if (to_ == nullptr) return;
        to_ += bytes;
        if (rest_ != 0) return;
        to_ = nullptr;
        done(head_);
    }

    template <class Begin, class Done> receive_state parse(Begin& begin, Done& done) noexcept {
        std::size_t from = 0;
        while (true) {
            if (rest_ != 0) {
                std::size_t const here = std::min(rest_, staged_ - from);
                if (here == 0) break;
                if (to_ != nullptr) std::memcpy(to_, staging_.data() + from, here);
                from += here;
                landed(here, done);
                continue;
            }
            if (staged_ - from < data_head_bytes) break;
            if (!decode(std::span<std::byte const, data_head_bytes>(staging_.data() + from, data_head_bytes),
                        head_))
                return receive_state::no_head;
            from += data_head_bytes;
            landing const where = begin(head_);
            if (where.what == landing::action::refuse) return receive_state::refused;
            rest_ = head_.bytes;
            if (where.what == landing::action::skip) continue;
            if (rest_ == 0)
                done(head_);
            else
                to_ = where.to;
        }
        staged_ -= from;
        if (from != 0 && staged_ != 0) std::memmove(staging_.data(), staging_.data() + from, staged_);
        return receive_state::ok;
    }

    fixed_array<std::byte> staging_;
    std::size_t staged_ = 0;  // bytes in use; fewer than a head between two reads
    data_head head_;          // of the payload in progress
    std::byte* to_ = nullptr; // destination of its next byte; nullptr: the payload is skipped
    std::size_t rest_ = 0;    // bytes of it that are missing
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DATA_FRAMES_HPP

// herring: messages on the data connection of a frontend and a member: head and receiver.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DATA_FRAMES_HPP
#define HERRING_ENSEMBLE_DATA_FRAMES_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
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

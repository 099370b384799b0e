// herring: takes messages off a stream socket, each payload into memory of its receiver's choice.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRAME_RECEIVER_HPP
#define HERRING_ENSEMBLE_FRAME_RECEIVER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/data_frames.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <sys/socket.h>
#include <sys/uio.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// How a look at a socket ended.
enum class receive_state : std::uint8_t {
    ok,      ///< all that was there has been read, or as much as one look may
    closed,  ///< the other end has closed it
    failed,  ///< errno has the reason
    no_head, ///< the bytes of a head are not one
    refused  ///< by whoever chose the memory
};

/// Where a payload goes.
struct landing {
    enum class action : std::uint8_t { land, skip, refuse };
    action what = action::refuse;
    std::byte* to = nullptr; ///< `land`: room for all of the payload
};

/// One system call takes many small messages, through a staging buffer. Of a payload that is larger than what is staged the
/// rest is read where it belongs.
class frame_receiver {
  public:
    /// `typical`: bytes of a payload.
    explicit frame_receiver(std::size_t typical)
        : staging_(typical < large_payload ? staged_for_small : staged_for_large) {}

    /// `begin(head)` returns a `landing`; `done(head)` is called when a payload that landed is complete; in order.
    ///
    /// Bounds: reads `most` bytes and the rest of a staging buffer at most. A readiness that stays (level-triggered) reports
    /// what is left.
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
    static constexpr std::size_t staged_for_large = 4 * 1024; // and so are copied of a large payload

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
    std::size_t staged_ = 0;  // bytes of it in use; less than a head between two reads
    data_head head_;          // of the payload that is being read
    std::byte* to_ = nullptr; // where its next byte goes; nullptr: nowhere
    std::size_t rest_ = 0;    // of its bytes
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRAME_RECEIVER_HPP

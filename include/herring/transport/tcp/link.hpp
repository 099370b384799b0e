// herring: framed messages of one TCP connection, read without copies; options of its socket.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_LINK_HPP
#define HERRING_TRANSPORT_TCP_LINK_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/world_times.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/model/tunings.hpp"
#include "herring/transport/tcp/frame.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <span>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

namespace HERRING_NAMESPACE::detail {

/// The result of a read. `failed`: errno has the reason; `junk`: bytes that are no frame.
enum class stream_state : std::uint8_t { ok, closed, failed, junk };

/// Reads framed messages from a connected, non-blocking socket.
///
/// A read takes the payload straight to its destination, and in the same call the next header with up to
/// `inline_bytes` after it, so that a small message costs one read and a large one about one read a socket
/// buffer.
///
/// Threads: one at a time.
/// Cost:    no allocation after construction.
class tcp_reader {
  public:
    static constexpr std::size_t inline_bytes = 4096;

    tcp_reader() : stash_(stash_bytes) {}

    /// Reads until the socket is drained, `calls` times at most. For each header `place(frame, envelope)`
    /// returns the destination of the payload; nullptr: not now, and it is called again at the next read.
    /// `on_received()` is called when the payload is complete.
    template <class Place, class OnReceived>
    stream_state read(descriptor const& socket, int calls, Place&& place, OnReceived&& on_received) noexcept {
        if (stream_state const parsed = parse(place, on_received); parsed != stream_state::ok) return parsed;
        for (; calls > 0 && !blocked_; --calls) {
            iovec parts[2];
            std::size_t count = 0;
            if (stash_begin_ == stash_end_) stash_begin_ = stash_end_ = 0;
            if (left_ > 0) parts[count++] = {into_, left_};
            if (stash_begin_ > 0 && stash_bytes - stash_end_ < most_head) compact();
            parts[count++] = {stash_.data() + stash_end_, stash_bytes - stash_end_};
            std::size_t const wanted = left_ + (stash_bytes - stash_end_);
            msghdr call{};
            call.msg_iov = parts;
            call.msg_iovlen = count;
            // Most calls find nothing. Without a payload to complete, recv is cheaper than recvmsg.
            ssize_t const got = count == 1
                                    ? ::recv(socket.get(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT)
                                    : ::recvmsg(socket.get(), &call, MSG_DONTWAIT);
            if (got < 0) {
                if (errno == EINTR) continue;
                if (errno == EAGAIN || errno == EWOULDBLOCK) return stream_state::ok;
                return stream_state::failed;
            }
            if (got == 0) return stream_state::closed;
            auto bytes = static_cast<std::size_t>(got);
            bool const drained = bytes < wanted;
            std::size_t const direct = std::min(bytes, left_);
            if (left_ > 0) {
                into_ += direct;
                left_ -= direct;
                bytes -= direct;
                stash_end_ += bytes;
                if (left_ == 0) on_received();
            } else {
                stash_end_ += bytes;
            }
            if (stream_state const parsed = parse(place, on_received); parsed != stream_state::ok)
                return parsed;
            if (drained) return stream_state::ok;
        }
        return stream_state::ok;
    }

    /// True if a message waits for a receive, so that nothing after it is read.
    bool blocked() const noexcept { return blocked_; }

  private:
    static constexpr std::size_t most_head = frame_bytes + most_envelope_bytes;
    static constexpr std::size_t stash_bytes = most_head + inline_bytes;

    void compact() noexcept {
        std::memmove(stash_.data(), stash_.data() + stash_begin_, stash_end_ - stash_begin_);
        stash_end_ -= stash_begin_;
        stash_begin_ = 0;
    }

    // Takes complete headers, and the payload that came with them, out of the stash.
    template <class Place, class OnReceived>
    stream_state parse(Place& place, OnReceived& on_received) noexcept {
        blocked_ = false;
        while (left_ == 0 && stash_end_ - stash_begin_ >= frame_bytes) {
            frame header;
            std::byte const* const from = stash_.data() + stash_begin_;
            if (!decode(std::span<std::byte const, frame_bytes>(from, frame_bytes), header))
                return stream_state::junk;
            std::size_t const head = frame_bytes + header.envelope;
            if (stash_end_ - stash_begin_ < head) break; // the envelope is incomplete
            std::byte* const into =
                place(header, std::span<std::byte const>(from + frame_bytes, header.envelope));
            if (into == nullptr) {
                blocked_ = true;
                return stream_state::ok;
            }
            stash_begin_ += head;
            std::size_t const here = std::min<std::size_t>(header.length, stash_end_ - stash_begin_);
            if (here > 0) std::memcpy(into, stash_.data() + stash_begin_, here);
            stash_begin_ += here;
            into_ = into + here;
            left_ = header.length - here;
            if (left_ == 0) on_received();
        }
        return stream_state::ok;
    }

    bool blocked_ = false;
    std::byte* into_ = nullptr; // destination of the rest of the current payload
    std::size_t left_ = 0;      // bytes of that rest
    std::size_t stash_begin_ = 0;
    std::size_t stash_end_ = 0;
    fixed_array<std::byte> stash_;
};

/// Sets the options of a connected data socket: no delay, keepalive, timeout, congestion control.
///
/// Errors: `unsupported` where the kernel does not offer the congestion control that `control` names.
HERRING_SETUP inline void set_data_socket_options(int socket, transport::congestion control,
                                                  std::chrono::milliseconds timeout, int rank) {
    auto const set = [&](int level, int option, int value) {
        (void)::setsockopt(socket, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    // Both are needed: keepalive detects a dead idle peer, the user timeout a peer that takes no data.
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    // At least the usual timeout: a call may have a longer timeout than construction.
    constexpr std::chrono::milliseconds most{std::numeric_limits<int>::max()};
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::clamp(timeout, usual_timeout, most).count()));
    auto const choose = [&](char const* algorithm) {
        return ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, algorithm,
                            static_cast<socklen_t>(std::strlen(algorithm))) == 0;
    };
    using transport::congestion;
    if (control == congestion::system) return;
    if (control == congestion::unpaced) {
        if (!choose("reno")) (void)choose("cubic");
        return;
    }
    char const* const algorithm = control == congestion::reno    ? "reno"
                                  : control == congestion::cubic ? "cubic"
                                                                 : "bbr";
    if (!choose(algorithm))
        throw error(errc::unsupported, rank, -1, "connect",
                    {"the kernel does not offer congestion control '", algorithm,
                     "': see /proc/sys/net/ipv4/tcp_allowed_congestion_control, or use "
                     "congestion::unpaced"});
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_LINK_HPP

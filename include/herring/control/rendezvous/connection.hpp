// herring: one control connection: reads and writes whole messages of a socket, without blocking.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_CONNECTION_HPP
#define HERRING_CONTROL_RENDEZVOUS_CONNECTION_HPP

#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/control/control.hpp"
#include "herring/control/wire/frame.hpp"
#include "herring/control/wire/frame_seal.hpp"
#include "herring/control/wire/handshake.hpp"
#include "herring/control/wire/limits.hpp"
#include "herring/control/wire/message_keys.hpp"
#include "herring/crypto/seal_provider.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::rendezvous {

using namespace wire;

/// No delay for small messages; a host that has vanished is noticed after about `patience`, also when idle. What is lost is
/// sent again at most a second later, however long the network was away.
HERRING_SETUP inline void tune(int socket, std::chrono::milliseconds patience) noexcept {
    auto const set = [&](int level, int option, int value) {
        ::setsockopt(socket, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, patience < never ? 1 : 0);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    // Without them the gaps between retransmissions double: after an outage of 4 s the next is due at 6 s.
    constexpr int rto_max_ms = 44; // TCP_RTO_MAX_MS, from Linux 6.15; a second is the least that it takes
    set(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1); // not with BBR, which has no slow start to have left
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    set(IPPROTO_TCP, rto_max_ms, 1000);
    constexpr std::chrono::milliseconds most{std::numeric_limits<int>::max()};
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::min(patience, most).count()));
}

/// From the welcome on it is the failure detector that gives a rank up, later where the network takes long: the kernel leaves
/// the connection open for longer than that. It must: once it has given up, it resets what the other host sends.
HERRING_SETUP inline void leave_to_detector(int socket, std::chrono::milliseconds patience) noexcept {
    constexpr std::chrono::milliseconds most{std::numeric_limits<int>::max() / 5};
    int const value = static_cast<int>(5 * std::min(patience, most).count());
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, sizeof value);
}

/// Whether an error of a socket is the kernel's own patience at its end, not something that the other host has said.
HERRING_SETUP inline bool is_timeout(int why) noexcept {
    return why == ETIMEDOUT || why == EHOSTUNREACH || why == ENETUNREACH;
}

/// The first message in the bytes that have come in.
struct parsed_message {
    bool whole = false;  ///< `front` and `body` are a message
    std::string wrong{}; ///< why it can never be a message
    head front{};
    std::span<std::byte const> body{};
    std::size_t bytes = 0; ///< in all
};

/// One framed connection. Its owner closes the socket.
///
/// A rank's connection is the one in its place (connection_set.hpp), or a candidate, which is to take it.
/// A connection that is not identified (`rank` −1) may send little: at rank 0 a knock and a hello, at a rank what answers those.
/// Others may send what each kind of message may have. Once both ends have proved that they have the secret, each message has a
/// tag behind it, or is sealed.
struct connection {
    int socket = -1;          // −1: the entry is free
    std::uint64_t serial = 0; // in order of opening: events of a closed connection do not reach the next
    int rank = -1;            // −1: not identified
    bool connecting = false;
    bool refused = false; // stays open until the other end has read why
    bool finish = false;  // nothing is sent after `out`
    bool wants_write = false;
    int error = 0;
    time_point until = time_point::max();      // is closed then
    time_point heard{};                        // when its rank last gave a sign of life, here or by data
    time_point spoke{};                        // when something last came in here
    time_point regular{};                      // since when it has come without a pause
    time_point unanswered{};                   // when the other host last left something unanswered
    std::uint32_t lost = 0;                    // packets
    time_point lossy_at{};                     // when one was last seen, or one without an answer
    time_point answered{};                     // when the last packet came from the other host
    time_point delivered{};                    // when nothing was left to be acknowledged, or something was
    std::uint64_t acknowledged = 0;            // bytes, then
    std::chrono::microseconds shortest{never}; // round trip of this rank's connections before this one
    std::uint64_t attempt = 0; // of its rank to make a new connection; 0: that by which it has joined
    bool offered = false;      // a candidate: rank 0 may put it in its place
    bool broken = false;       // in its place, and carries nothing any more: another one has to take it
    bool ended = false;        // because the other end has closed it
    std::uint64_t came = 0;    // number of the last numbered message that came over it
    std::string from{};
    byte_buffer in{}, out{};
    std::size_t sent = 0;
    byte_buffer challenge{};            // that was sent or received; empty: not yet
    key_exchange exchange{};            // rank 0, where it seals: from the challenge to the hello
    std::optional<message_keys> keys{}; // where there is a secret, from the admission on
    std::optional<frame_seal> seal{};   // in place of them, where both ends seal

    bool open() const noexcept { return socket >= 0; }
    bool pending() const noexcept { return open() && rank < 0; }
    /// Still the connection that had this serial.
    bool still(std::uint64_t number) const noexcept { return open() && serial == number; }

    /// From here on messages have tags, or are sealed.
    HERRING_SETUP void protect(handshake const& proven, bool at_rank_0, seal_provider const* seals) {
        exchange = {};
        if (seals != nullptr)
            seal.emplace(proven.seal(at_rank_0, *seals));
        else
            keys.emplace(proven.keys(at_rank_0));
    }

    /// Appends a sealed message. Where the library fails, nothing goes out, and the connection ends.
    HERRING_SETUP void append_sealed(message_kind type, std::uint32_t from_rank, std::uint64_t sequence,
                                     std::span<std::byte const> body) {
        if (seal->append(out, type, from_rank, sequence, body)) return;
        out.clear();
        sent = 0;
        error = EIO;
        ::shutdown(socket, SHUT_RDWR);
    }

    /// Writes what the socket takes. False: the rest waits until it takes more.
    HERRING_SETUP bool write() noexcept {
        while (sent < out.size()) {
            ssize_t const n = ::send(socket, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
            if (n > 0) {
                sent += static_cast<std::size_t>(n);
                continue;
            }
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
            if (error == 0) error = errno; // reading finds the socket closed, and reports it
            sent = out.size();
        }
        out.clear();
        sent = 0;
        if (finish) ::shutdown(socket, SHUT_WR);
        return true;
    }

    /// How many bytes may be read next.
    std::size_t room(std::size_t most) const noexcept {
        return rank < 0 && !refused ? std::min(most, hello_limit - in.size()) : most;
    }

    /// Reads once. −1: nothing now; 0: the end, for the reason `error` (0: in order).
    HERRING_SETUP ssize_t read(std::span<std::byte> into) noexcept {
        if (into.empty()) return 0;
        while (true) {
            ssize_t const n = ::recv(socket, into.data(), into.size(), 0);
            if (n >= 0) return n;
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) return -1;
            if (error == 0) error = errno;
            return 0;
        }
    }

    /// The message at byte `begin` of what has come in. `by`: who is at the other end, if it is identified.
    ///
    /// To be called once for each whole message. Opens what is sealed where it lies.
    HERRING_SETUP parsed_message parse(std::size_t begin, sender const& by) {
        if (seal) return parse_sealed(begin, by);
        parsed_message found;
        std::span<std::byte const> const rest = std::span<std::byte const>(in).subspan(begin);
        if (rest.size() < head_bytes) {
            // Foreign bytes are known by the first of them, however slowly they come.
            if (!looks_ours(rest)) found.wrong = "bytes that are no control message";
            return found;
        }
        head& h = found.front;
        if (!h.read(rest)) {
            found.wrong = "bytes that are no control message";
            return found;
        }
        if (h.length > (rank < 0 ? hello_limit - head_bytes : most_body(h.type, by))) {
            found.wrong = text({"a control message of ", h.length, " bytes, more than its kind may have"});
            return found;
        }
        std::size_t const tag = keys ? tag_bytes : 0;
        if (rest.size() < head_bytes + h.length + tag) return found;
        found.body = rest.subspan(head_bytes, h.length);
        found.bytes = head_bytes + h.length + tag;
        if (h.body_crc != crc32c(found.body))
            found.wrong = "a control message whose checksum is wrong";
        else if (keys &&
                 !keys->accepts(rest.first(head_bytes), found.body, rest.subspan(head_bytes + h.length, tag)))
            found.wrong =
                "a control message whose tag is not of the key of this connection: it was forged or "
                "changed on its way";
        found.whole = found.wrong.empty();
        return found;
    }

  private:
    HERRING_SETUP parsed_message parse_sealed(std::size_t begin, sender const& by) {
        parsed_message found;
        std::span<std::byte> const rest(in.data() + begin, in.size() - begin);
        if (rest.size() < sealed_head_bytes) return found;
        head& h = found.front;
        if (!seal->open_head(rest.first<sealed_head_bytes>()) || !h.read(rest)) {
            found.wrong = does_not_open;
            return found;
        }
        if (h.length > most_body(h.type, by)) {
            found.wrong = text({"a control message of ", h.length, " bytes, more than its kind may have"});
            return found;
        }
        std::size_t const body = sealed_body_bytes(h.length);
        if (rest.size() < sealed_head_bytes + body) return found;
        found.body = rest.subspan(sealed_head_bytes, h.length);
        found.bytes = sealed_head_bytes + body;
        if (!seal->open_body(rest.subspan(sealed_head_bytes, body)) || h.body_crc != crc32c(found.body))
            found.wrong = does_not_open;
        found.whole = found.wrong.empty();
        return found;
    }

    static constexpr char const* does_not_open =
        "what does not open as the next sealed control message: it was changed, left out, repeated or "
        "forged on its way";

    static bool looks_ours(std::span<std::byte const> front) noexcept {
        std::byte ours[4];
        put(ours, magic);
        return front.empty() || std::memcmp(ours, front.data(), std::min(front.size(), sizeof ours)) == 0;
    }
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_CONNECTION_HPP

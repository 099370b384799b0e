// herring: an ensemble's control connection: whole messages in and out of a socket, bounded, then with tags.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_CONTROL_LINK_HPP
#define HERRING_ENSEMBLE_CONTROL_LINK_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/local_socket.hpp"
#include "herring/net/message_link.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Result of `control_link::receive`.
struct incoming {
    enum class what {
        nothing,       ///< no message yet
        whole,         ///< `kind` and `body` are a message; valid until the next receive
        other_version, ///< a message of another version of the protocol
        wrong,         ///< no message, as `why` says
        closed         ///< by the other end or by the network
    } found = what::nothing;
    message kind = message::apply;
    std::uint16_t version = protocol_version;
    std::span<std::byte const> body{};
    descriptor passed{}; ///< the one that came with the message over a unix socket
    char const* why = "";
};

/// A control connection, over tcp or over a unix socket whose packets are whole messages.
///
/// A stream is read to the end of a message and not a byte further: the bytes behind a lane's last message
/// belong to the lane. The buffer holds one message at most, whose size was checked before it was read.
/// Lifetime: owns the socket; moves.
class control_link {
  public:
    control_link() = default;
    /// `is_frontend`: this end is the frontend's. `is_local`: a unix socket.
    control_link(descriptor&& socket, bool is_frontend, bool is_local) noexcept
        : socket_(std::move(socket)), is_frontend_(is_frontend), is_local_(is_local) {
        bytes_.socket = socket_.get();
        int const on = 1;
        if (!is_local && socket_.get() >= 0)
            (void)::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }

    bool open() const noexcept { return socket_.get() >= 0; }
    int socket() const noexcept { return socket_.get(); }
    bool is_local() const noexcept { return is_local_; }
    void close() noexcept { *this = control_link(); }
    /// Gives the socket of a proven lane away.
    int release() noexcept { return socket_.release(); }
    /// True while bytes wait for room in the socket.
    bool wants_write() const noexcept { return bytes_.sent < bytes_.out.size(); }
    /// Puts a tag on every message that follows, in both directions.
    void protect(wire::message_keys&& keys) noexcept { bytes_.keys.emplace(std::move(keys)); }
    /// Notes that the member has been admitted: other messages are due from now on.
    void admitted() noexcept { is_admitted_ = true; }

    /// Sends what the socket takes; the rest waits for `flush`. `passed`: a descriptor, over a unix socket.
    HERRING_SETUP void send(message kind, std::span<std::byte const> body, int passed = -1) {
        if (!open() || bytes_.finish) return;
        constexpr std::size_t most = std::size_t{1} << 16; // for a peer that does not read
        if (bytes_.out.size() - bytes_.sent > most) return fail();
        sha256_digest const digest = bytes_.keys ? sha256().update(body).finish() : sha256_digest{};
        bytes_.append(static_cast<wire::message_kind>(kind), 0, 0, body, digest, protocol_version);
        if (!is_local_) return flush();
        if (!send_packet(socket(), bytes_.out, passed)) fail();
        bytes_.out.clear();
    }
    HERRING_SETUP void flush() noexcept {
        bytes_.write();
        if (bytes_.error != 0) fail();
    }
    /// Closes the sending direction behind the bytes that wait.
    HERRING_SETUP void finish() noexcept {
        bytes_.finish = true;
        flush();
    }

    /// Reads at most to the end of one message. `wrong` and `closed` are returned again by later calls.
    HERRING_SETUP incoming receive() {
        if (failed_) return of(incoming::what::closed);
        return is_local_ ? receive_local() : receive_stream();
    }
    /// Reads and drops bytes. True if the other end has closed.
    HERRING_SETUP bool drop_input() noexcept {
        std::byte junk[4096];
        if (is_local_) return receive_packet(socket(), junk).bytes == 0;
        ssize_t const n = ::recv(socket(), junk, sizeof junk, MSG_DONTWAIT);
        return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK);
    }

  private:
    void fail() noexcept {
        failed_ = true;
        bytes_.sent = 0;
        bytes_.out.clear();
        ::shutdown(socket(), SHUT_RDWR); // makes the socket readable for its owner
    }
    static incoming of(incoming::what found, char const* why = "") noexcept {
        incoming made;
        made.found = found;
        made.why = why;
        return made;
    }

    HERRING_SETUP incoming receive_stream() {
        if (std::exchange(returned_, false)) bytes_.in.clear();
        while (true) {
            parsed_message const got = parse();
            if (got.is != parsed_message::state::incomplete) return result_of(got);
            byte_buffer& in = bytes_.in;
            std::byte part[1024];
            ssize_t const n =
                ::recv(socket(), part, std::min(sizeof part, got.bytes - in.size()), MSG_DONTWAIT);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
            if (n <= 0) return of(incoming::what::closed);
            in.append({part, static_cast<std::size_t>(n)});
        }
    }
    HERRING_SETUP incoming receive_local() {
        std::byte room[wire::head_bytes + 256];
        packet got = receive_packet(socket(), room);
        if (got.bytes < 0) return {};
        if (got.bytes == 0) return of(incoming::what::closed);
        bytes_.in.clear();
        bytes_.in.append({room, static_cast<std::size_t>(got.bytes)});
        if (!got.whole || got.descriptors > 1)
            return of(incoming::what::wrong, "a packet with more than a message has");
        using state = parsed_message::state;
        parsed_message message = parse();
        if (bytes_.in.size() < wire::head_bytes) message.is = state::foreign;
        if (message.is != state::foreign && message.is != state::too_long &&
            message.bytes != bytes_.in.size())
            return of(incoming::what::wrong, "a packet of another size than its message");
        incoming made = result_of(message);
        made.passed = std::move(got.passed);
        return made;
    }

    HERRING_SETUP parsed_message parse() {
        return bytes_.parse(0, [this](wire::head const& h) noexcept {
            return most_body(static_cast<message>(h.type), !is_frontend_, is_admitted_);
        });
    }
    HERRING_SETUP incoming result_of(parsed_message const& got) noexcept {
        using state = parsed_message::state;
        using what = incoming::what;
        switch (got.is) {
        case state::incomplete:
            return {};
        case state::too_long:
            return of(what::wrong, "a message of more bytes than its kind may have");
        case state::damaged:
            returned_ = true;
            return of(what::wrong, "a message whose checksum is wrong");
        case state::forged:
            returned_ = true;
            return of(what::wrong, "a message whose tag is not of the key of this connection: it was "
                                   "forged or changed on its way");
        case state::foreign:
        case state::unsealed:
            return of(what::wrong, "bytes that are no control message");
        case state::whole:
            break;
        }
        returned_ = true;
        incoming made = of(got.front.version == protocol_version ? what::whole : what::other_version);
        made.kind = static_cast<message>(got.front.type);
        made.version = got.front.version;
        made.body = got.body;
        return made;
    }

    descriptor socket_{};
    bool is_frontend_ = false, is_local_ = false, is_admitted_ = false;
    bool failed_ = false;
    bool returned_ = false; // the message in `bytes_.in` was returned
    message_link bytes_{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_CONTROL_LINK_HPP

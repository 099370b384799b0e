// herring: a connection that carries whole messages: bounded, tagged or sealed; never blocks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_NET_MESSAGE_LINK_HPP
#define HERRING_NET_MESSAGE_LINK_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/net/frame.hpp"
#include "herring/net/handshake.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail {

/// The first message in the bytes that have come in.
struct parsed_message {
    enum class state {
        incomplete, ///< so far
        whole,      ///< `front` and `body` are a message
        foreign,    ///< the bytes are no control message
        too_long,   ///< more than its kind may have
        damaged,    ///< its checksum is wrong
        forged,     ///< its tag is not of the key of this connection
        unsealed    ///< it does not open as the next sealed message
    } is = state::incomplete;
    wire::head front{};
    std::span<std::byte const> body{};
    std::size_t bytes = wire::head_bytes; ///< in all, as far as that is known
};

/// The bytes of one connection, in and out, as messages. Its owner closes the socket.
struct message_link {
    int socket = -1;     // −1: there is none
    bool finish = false; // nothing is sent after `out`
    int error = 0;       // errno of the first failure
    byte_buffer in{}, out{};
    std::size_t sent = 0;                     // bytes of `out`
    std::optional<wire::message_keys> keys{}; // where there is a secret, from the admission on
    std::optional<wire::frame_seal> seal{};   // in place of `keys`, where both ends seal

    bool open() const noexcept { return socket >= 0; }

    /// From here on messages have tags, or are sealed.
    HERRING_SETUP void protect(wire::handshake const& proven, bool at_acceptor, seal_provider const* seals) {
        if (seals != nullptr)
            seal.emplace(proven.seal(at_acceptor, *seals));
        else
            keys.emplace(proven.keys(at_acceptor));
    }

    /// Appends a message to `out`. `digest`: of the body, where messages have tags. Where sealing fails,
    /// nothing goes out, and the connection ends.
    HERRING_SETUP void append(wire::message_kind type, std::uint32_t from_rank, std::uint64_t sequence,
                              std::span<std::byte const> body, sha256_digest const& digest,
                              std::uint16_t version) {
        std::size_t const at = out.size();
        if (!seal) {
            wire::append_message(out, type, from_rank, sequence, body, version);
            if (keys)
                out.append(keys->next(std::span<std::byte const>(out).subspan(at, wire::head_bytes), digest));
        } else if (!seal->append(out, type, from_rank, sequence, body, version)) {
            out.clear();
            sent = 0;
            error = EIO;
            ::shutdown(socket, SHUT_RDWR);
        }
    }

    /// Writes as much as the socket takes. False: the rest waits until it takes more.
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

    /// Parses the message at byte `begin` of `in`. `most(head)`: the longest body of such a message, asked
    /// before anything waits for the body.
    ///
    /// To be called once for each whole message. Opens a sealed message where it lies.
    template <class Most> HERRING_SETUP parsed_message parse(std::size_t begin, Most const& most) {
        using state = parsed_message::state;
        parsed_message found;
        std::span<std::byte> const rest(in.data() + begin, in.size() - begin);
        std::size_t const front = seal ? wire::sealed_head_bytes : wire::head_bytes;
        found.bytes = front;
        state& is = found.is;
        if (rest.size() < front) { // foreign bytes are known by the first of them, however slowly they come
            if (!seal && !looks_ours(rest)) is = state::foreign;
            return found;
        }
        wire::head& h = found.front;
        if (seal && !seal->open_head(rest.first<wire::sealed_head_bytes>()))
            return is = state::unsealed, found;
        if (!h.read(rest)) return is = seal ? state::unsealed : state::foreign, found;
        if (h.length > most(h)) return is = state::too_long, found;
        std::size_t const behind =
            seal ? wire::sealed_body_bytes(h.length) : h.length + (keys ? wire::tag_bytes : 0);
        found.bytes = front + behind;
        if (rest.size() < found.bytes) return found;
        found.body = rest.subspan(front, h.length);
        bool const opens = !seal || seal->open_body(rest.subspan(front, behind));
        bool const sound = opens && h.body_crc == crc32c(found.body);
        if (!sound) return is = seal ? state::unsealed : state::damaged, found;
        bool const proven = !keys || keys->accepts(rest.first(front), found.body,
                                                   rest.subspan(front + h.length, wire::tag_bytes));
        is = proven ? state::whole : state::forged;
        return found;
    }

  private:
    static bool looks_ours(std::span<std::byte const> front) noexcept {
        std::byte ours[4];
        put(ours, wire::magic);
        return front.empty() || std::memcmp(ours, front.data(), std::min(front.size(), sizeof ours)) == 0;
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_NET_MESSAGE_LINK_HPP

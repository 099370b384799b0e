// herring: control messages of frontends and members as bytes and back, their bounds, their proofs. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MESSAGES_HPP
#define HERRING_ENSEMBLE_MESSAGES_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/frame.hpp"
#include "herring/net/handshake.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail::ensembles {

inline constexpr std::uint16_t protocol_version = 2;

/// Kinds of messages. The values differ from those of `wire::message_kind`, so that a frontend recognises a
/// rank of a world by its first message.
enum class message : std::uint16_t {
    apply = 64, // member → frontend: asks for admission. A frontend of another version refuses it by name
    challenge = 65, // frontend → member: wire::challenge
    hello = 66,     // member → frontend: its name, facts and shape, and a proof
    admit = 67,     // frontend → member: a proof, a place, a key for the lane; later messages have tags
    refuse = 68, // frontend → member: no admission, or its end; with a proof if the member has proved itself
    heartbeat = 69,      // either way
    leave = 70,          // member → frontend: no more requests
    goodbye = 71,        // frontend → member: the end of the admission, and why (a text)
    lane_hello = 72,     // member → frontend, on the connection of a lane: the ticket of its admission
    lane_challenge = 73, // frontend → member: a nonce
    lane_proof = 74,     // member → frontend; on a unix socket with the member's memfd
    lane_accept = 75 // frontend → member: a proof; with the frontend's memfd. Later bytes belong to the lane
};

inline constexpr std::size_t most_name = shape::most_name;
inline constexpr std::size_t most_local_name = 64;   // of a unix socket's name
inline constexpr std::size_t most_words = 480;       // of a text for people
inline constexpr std::size_t most_boot = 64;         // of a boot's identifier
inline constexpr std::uint32_t most_credits = 65536; // and requests in flight
inline constexpr std::uint32_t most_replicas = 64;   // of a member
inline constexpr std::size_t hello_limit = 2400;     // of a body, before the sender has proved itself

/// Returns the most bytes that may follow the head of a message; 0 for a kind that this end does not send.
/// Checked before anything is allocated.
constexpr std::size_t most_body(message kind, bool from_frontend, bool is_admitted) noexcept {
    if (from_frontend) switch (kind) {
        case message::challenge:
            return is_admitted ? 0 : wire::salt_bytes + wire::nonce_bytes + 1;
        case message::admit:
            return is_admitted ? 0 : 512;
        case message::refuse:
            return 3 + most_words + wire::proof_bytes;
        case message::goodbye:
            return most_words;
        case message::lane_challenge:
        case message::lane_accept:
            return is_admitted ? 0 : 32;
        default:
            return 0;
        }
    if (is_admitted) return 0;
    switch (kind) {
    case message::hello:
        return hello_limit;
    case message::lane_hello:
        return 8 + 1 + wire::nonce_bytes;
    case message::lane_proof:
        return wire::proof_bytes;
    default:
        return 0;
    }
}

/// Appends a text with its length in front, cut to `most` bytes.
HERRING_SETUP inline void append_text(byte_buffer& to, std::string_view text, std::size_t most) {
    text = text.substr(0, most);
    wire::append<std::uint16_t>(to, text.size());
    wire::append(to, text);
}
/// Reads a text and makes it printable. False if it is longer than `most`.
HERRING_SETUP inline bool read_text(wire::reader& in, std::string& to, std::size_t most) {
    std::size_t const size = in.number<std::uint16_t>();
    if (!in.ok || size > most) return in.ok = false;
    to = in.text(size);
    wire::make_printable(to);
    return in.ok;
}

/// A member's reply to the challenge. On the wire a proof follows.
struct hello {
    wire::nonce nonce{}; // of this connection
    bool has_secret = false;
    std::uint64_t incarnation = 0;
    std::uint32_t replica = 0;
    std::uint32_t credits = 1;
    herring::lane lanes = herring::lane::any;
    std::string name{};
    std::string boot{}; // identifier of the boot: equal on one machine only
    ensembles::shape shape{};

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        out.append(nonce);
        wire::append<std::uint8_t>(out, has_secret ? 1 : 0);
        wire::append<std::uint64_t>(out, incarnation);
        wire::append<std::uint32_t>(out, replica);
        wire::append<std::uint32_t>(out, credits);
        wire::append<std::uint8_t>(out, static_cast<std::uint8_t>(lanes));
        for (std::uint64_t const number : {shape.elements, shape.row_bytes, shape.request_bytes})
            wire::append<std::uint64_t>(out, number);
        append_text(out, name, most_name);
        append_text(out, boot, most_boot);
        append_text(out, shape.ensemble, most_name);
        append_text(out, shape.type, most_name);
        append_text(out, shape.policies, shape::most_policies);
        append_text(out, shape.model_version, most_name);
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) {
        wire::reader in{from};
        in.bytes(nonce);
        auto const flag = in.number<std::uint8_t>();
        has_secret = flag == 1;
        incarnation = in.number<std::uint64_t>();
        replica = in.number<std::uint32_t>();
        credits = in.number<std::uint32_t>();
        auto const wanted = in.number<std::uint8_t>();
        lanes = static_cast<herring::lane>(wanted);
        for (std::uint64_t* const number : {&shape.elements, &shape.row_bytes, &shape.request_bytes})
            *number = in.number<std::uint64_t>();
        return in.ok && flag <= 1 && incarnation != 0 && credits >= 1 && credits <= most_credits &&
               wanted <= static_cast<std::uint8_t>(herring::lane::shared) && read_text(in, name, most_name) &&
               read_text(in, boot, most_boot) && read_text(in, shape.ensemble, most_name) &&
               read_text(in, shape.type, most_name) && read_text(in, shape.policies, shape::most_policies) &&
               read_text(in, shape.model_version, most_name) && in.done();
    }
};

/// The frontend's reply to a hello that it accepts. On the wire the proof stands in front, over all the rest.
struct admit {
    std::array<std::byte, secret_key::size>
        wrapped{};            // key of the lane, XORed with a key of this connection if there is a secret
    std::uint64_t ticket = 0; // names this admission to the connection of its lane
    admission facts{};
    std::string local{}; // the frontend's unix socket, for members of its machine; empty: the lane is tcp

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        out.append(wrapped);
        wire::append<std::uint64_t>(out, ticket);
        for (std::uint32_t const number :
             {facts.peer, facts.member, facts.replicas, facts.credits, facts.in_flight})
            wire::append<std::uint32_t>(out, number);
        for (std::uint64_t const number : {facts.request_bytes, facts.row_bytes, facts.frontend,
                                           static_cast<std::uint64_t>(facts.heartbeat.count()),
                                           static_cast<std::uint64_t>(facts.peer_timeout.count())})
            wire::append<std::uint64_t>(out, number);
        append_text(out, local, most_local_name);
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) {
        wire::reader in{from};
        in.bytes(wrapped);
        ticket = in.number<std::uint64_t>();
        for (std::uint32_t* const number :
             {&facts.peer, &facts.member, &facts.replicas, &facts.credits, &facts.in_flight})
            *number = in.number<std::uint32_t>();
        for (std::uint64_t* const number : {&facts.request_bytes, &facts.row_bytes, &facts.frontend})
            *number = in.number<std::uint64_t>();
        constexpr auto most = static_cast<std::uint64_t>(std::chrono::milliseconds(never).count());
        std::uint64_t times[2] = {};
        for (std::uint64_t& time : times) time = in.number<std::uint64_t>();
        facts.heartbeat = std::chrono::milliseconds(static_cast<long long>(std::min(times[0], most)));
        facts.peer_timeout = std::chrono::milliseconds(static_cast<long long>(std::min(times[1], most)));
        return in.ok && facts.replicas >= 1 && facts.replicas <= most_replicas &&
               facts.peer / facts.replicas == facts.member && facts.credits >= 1 &&
               facts.credits <= most_credits && facts.in_flight >= 1 && facts.in_flight <= most_credits &&
               times[0] >= 1 && times[1] <= most && times[0] <= times[1] &&
               read_text(in, local, most_local_name) && in.done();
    }
};

/// Reason why a frontend does not admit a member.
struct refuse {
    admission_refusal reason = admission_refusal::none;
    std::string text{};

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        wire::append<std::uint8_t>(out, static_cast<std::uint8_t>(reason));
        append_text(out, text, most_words);
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) {
        wire::reader in{from};
        auto const number = in.number<std::uint8_t>();
        reason = static_cast<admission_refusal>(number);
        return in.ok && number >= 1 && number < admission_refusals && read_text(in, text, most_words) &&
               in.done();
    }

    /// Returns the member's error.
    HERRING_SETUP failure as_failure() const noexcept {
        bool const turned_away = reason == admission_refusal::member ||
                                 reason == admission_refusal::replica || reason == admission_refusal::lane ||
                                 reason == admission_refusal::replaced;
        return failure::make(turned_away ? errc::refused : errc::mismatch, -1, -1, "ensemble", text);
    }
};

/// The first message on the connection of a lane.
struct lane_hello {
    std::uint64_t ticket = 0;
    herring::lane kind = herring::lane::tcp; // or shared
    wire::nonce nonce{};

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        wire::append<std::uint64_t>(out, ticket);
        wire::append<std::uint8_t>(out, static_cast<std::uint8_t>(kind));
        out.append(nonce);
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) noexcept {
        wire::reader in{from};
        ticket = in.number<std::uint64_t>();
        auto const number = in.number<std::uint8_t>();
        kind = static_cast<herring::lane>(number);
        in.bytes(nonce);
        return in.done() && (kind == herring::lane::tcp || kind == herring::lane::shared);
    }
};

/// Reads 32 bytes: the nonce of a lane's challenge, or a proof. False if there are not exactly 32.
HERRING_SETUP inline bool read_32(std::span<std::byte const> from, std::array<std::byte, 32>& into) noexcept {
    wire::reader in{from};
    in.bytes(into);
    return in.done();
}

/// Appends a whole message, without a tag.
HERRING_SETUP inline void append_message(byte_buffer& to, message kind, std::span<std::byte const> body,
                                         std::uint16_t version = protocol_version) {
    wire::append_message(to, static_cast<wire::message_kind>(kind), 0, 0, body, version);
}

/// Names of the handshake of a member, the dialler, with a frontend, the acceptor.
///
///     member → frontend   apply
///     frontend → member   challenge {salt, nonce}
///     member → frontend   hello {nonce, its name and facts, its shape}, proof of the member
///     frontend → member   proof of the frontend, admit {the lane's key, wrapped, ...}
///                         or refuse, proof of the refusal
inline constexpr wire::handshake_names admission_names{"herring ensemble 1", "member", "frontend"};

/// Names of the handshake on the connection of a lane, under the key of its admission. The lane's hello
/// stands in the place of the challenge, because the member sends its nonce first.
///
///     member → frontend   lane_hello {ticket, which lane, nonce}
///     frontend → member   lane_challenge {nonce}
///     member → frontend   lane_proof
///     frontend → member   lane_accept
inline constexpr wire::handshake_names lane_names{"herring ensemble lane 1", "member", "frontend"};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_MESSAGES_HPP

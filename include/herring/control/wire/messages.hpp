// herring: the messages of the control connection, as bytes and back: pure, and checked before it allocates.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_MESSAGES_HPP
#define HERRING_CONTROL_WIRE_MESSAGES_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/base/identity.hpp"
#include "herring/base/little_endian.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail::star {

inline constexpr std::uint32_t magic = 0x52524548u; // "HERR"
inline constexpr std::uint16_t protocol_version = 2;
inline constexpr std::size_t head_bytes = 32;
inline constexpr std::size_t hello_limit = 1024;                 // head and body of what a stranger may send
inline constexpr std::size_t blob_limit = std::size_t{64} << 20; // what one rank may give to one all_gather
inline constexpr std::uint32_t body_limit = 0x7FFFFFFFu;

enum class message : std::uint16_t {
    hello = 1,    // rank → 0: who I am
    refuse = 2,   // 0 → rank: you may not join (sequence 1: not now), and why (a failure)
    missing = 3,  // 0 → rank, while joining: text that names who is still missing
    welcome = 4,  // 0 → rank: everyone is here, and the times that hold for all
    barrier = 5,  // rank → 0: I am at barrier `sequence`
    give = 6,     // rank → 0: my bytes for all_gather `sequence`
    done = 7,     // 0 → rank: collective `sequence` is complete; sizes and bytes of all
    late = 8,     // rank → 0: my deadline for `sequence` has passed: name who is missing
    fail = 9,     // either way: a failure
    goodbye = 10, // either way: I leave in order
    alive = 11,   // either way, every half second or so: a sign of life
    accuse = 12,  // rank → 0: I wait for a rank in vain (a failure; sequence 1: it is lost for certain)
    ask = 13,     // 0 → rank: whom do you wait for? (question `sequence`)
    answer = 14,  // rank → 0: for that rank (to question `sequence`)
    stands = 15   // rank → 0: I can do nothing but wait, and where
};

/// How many bytes may follow the head of a message in a world of `ranks`.
constexpr std::size_t most_body(message type, std::size_t ranks) noexcept {
    switch (type) {
    case message::done:
        return body_limit;
    case message::give:
        return blob_limit;
    case message::welcome:
        return 24 + 8 * ranks;
    default:
        return 8192;
    }
}

using detail::append; // of texts

/// What `reader` takes in the same order. Plain functions, not one a type.
inline void append(byte_buffer& to, std::string_view text) { to.append(std::as_bytes(std::span(text))); }
HERRING_SETUP inline void append_number(byte_buffer& to, std::uint64_t value, std::size_t size) {
    std::byte little[8];
    put(little, value);
    to.append({little, size});
}
template <class Integer> void append(byte_buffer& to, std::uint64_t value) {
    append_number(to, value, sizeof(Integer));
}

/// Reads what `append` wrote; past the end it gives zeros and `ok` turns false.
struct reader {
    std::span<std::byte const> rest;
    bool ok = true;

    template <class Integer> Integer number() noexcept {
        std::byte little[8] = {};
        std::string_view const found = text(sizeof(Integer));
        if (!found.empty()) std::memcpy(little, found.data(), sizeof(Integer));
        return static_cast<Integer>(get<std::uint64_t>(little));
    }
    HERRING_SETUP std::string_view text(std::size_t size) noexcept {
        if (rest.size() < size) {
            ok = false;
            rest = {};
            return {};
        }
        std::string_view const found(reinterpret_cast<char const*>(rest.data()), size);
        rest = rest.subspan(size);
        return found;
    }
};

/// The fixed front of every message.
// Layout: magic 0, version 4, type 6, rank 8, length 12, sequence 16, crc of the body 24, crc of bytes
// 0..27 28. Magic, version and both CRCs keep their places in every later version, so that versions can
// refuse each other.
struct head {
    std::uint16_t version = protocol_version;
    message type = message::alive;
    std::uint32_t rank = 0;
    std::uint32_t length = 0;
    std::uint64_t sequence = 0;
    std::uint32_t body_crc = 0;

    /// False: not a message of ours.
    HERRING_SETUP bool read(std::span<std::byte const> from) noexcept {
        if (from.size() < head_bytes) return false;
        reader in{from.first(head_bytes)};
        if (in.number<std::uint32_t>() != magic) return false;
        version = in.number<std::uint16_t>();
        type = static_cast<message>(in.number<std::uint16_t>());
        rank = in.number<std::uint32_t>();
        length = in.number<std::uint32_t>();
        sequence = in.number<std::uint64_t>();
        body_crc = in.number<std::uint32_t>();
        return in.number<std::uint32_t>() == crc32c(from.first(head_bytes - 4));
    }
};

/// Appends a whole message.
HERRING_SETUP inline void append_message(byte_buffer& to, message type, std::uint32_t rank,
                                         std::uint64_t sequence, std::span<std::byte const> body,
                                         std::uint16_t version = protocol_version) {
    std::size_t const at = to.size();
    append<std::uint32_t>(to, magic);
    append<std::uint16_t>(to, version);
    append<std::uint16_t>(to, static_cast<std::uint16_t>(type));
    append<std::uint32_t>(to, rank);
    append<std::uint32_t>(to, body.size());
    append<std::uint64_t>(to, sequence);
    append<std::uint32_t>(to, crc32c(body));
    append<std::uint32_t>(to, crc32c(std::span<std::byte const>(to).subspan(at, head_bytes - 4)));
    to.append(body);
}

/// Keeps jobs with different secrets apart. It is a check, not an authentication: whoever reads the traffic
/// can replay it.
HERRING_SETUP inline std::uint64_t secret_check(std::string const& secret) noexcept {
    if (secret.empty()) return 0;
    std::uint64_t hash = hash_of("herring secret 1", 16);
    for (int round = 0; round < 1000; ++round)
        hash = hash_of(secret.data(), secret.size(), hash ^ (hash >> 29));
    return hash | 1;
}

/// What a rank says first.
struct hello {
    std::uint32_t size = 0;
    std::uint32_t rank = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t secret = 0;                            // check of the secret, see secret_check
    std::uint64_t peer_timeout = 0, default_timeout = 0; // milliseconds; 0: as rank 0 has it
    std::string node;
    std::string boot;

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        append<std::uint32_t>(out, size);
        append<std::uint32_t>(out, rank);
        append<std::uint64_t>(out, incarnation);
        for (std::uint64_t const number : {secret, peer_timeout, default_timeout})
            append<std::uint64_t>(out, number);
        std::string_view const n = std::string_view(node).substr(0, 600);
        std::string_view const b = std::string_view(boot).substr(0, 300);
        append<std::uint16_t>(out, n.size());
        append<std::uint16_t>(out, b.size());
        append(out, n);
        append(out, b);
        return out;
    }

    HERRING_SETUP bool read(std::span<std::byte const> from) {
        reader in{from};
        size = in.number<std::uint32_t>();
        rank = in.number<std::uint32_t>();
        incarnation = in.number<std::uint64_t>();
        for (std::uint64_t* const number : {&secret, &peer_timeout, &default_timeout})
            *number = in.number<std::uint64_t>();
        std::size_t const n = in.number<std::uint16_t>();
        std::size_t const b = in.number<std::uint16_t>();
        if (!in.ok || n + b != in.rest.size()) return false;
        node = in.text(n);
        boot = in.text(b);
        return in.ok;
    }
};

HERRING_SETUP inline byte_buffer write_failure(failure const& why) {
    std::string_view const operation(why.operation), text(why.text);
    byte_buffer out;
    for (int const number : {static_cast<int>(why.what), why.reporter, why.peer})
        append<std::uint32_t>(out, static_cast<std::uint32_t>(number));
    append<std::uint16_t>(out, operation.size());
    append<std::uint16_t>(out, text.size());
    append(out, operation);
    append(out, text);
    return out;
}

HERRING_SETUP inline bool read_failure(std::span<std::byte const> from, failure& why) noexcept {
    reader in{from};
    auto const code = in.number<std::uint32_t>();
    auto const local = static_cast<int>(in.number<std::uint32_t>());
    auto const peer = static_cast<int>(in.number<std::uint32_t>());
    std::size_t const o = in.number<std::uint16_t>();
    std::size_t const t = in.number<std::uint16_t>();
    if (!in.ok || o + t != in.rest.size()) return false;
    if (code == 0 || code > static_cast<std::uint32_t>(errc::internal)) return false;
    std::string_view const operation = in.text(o);
    why = failure::make(static_cast<errc>(code), local, peer, operation, in.text(t));
    return true;
}

HERRING_SETUP inline byte_buffer write_answer(wait_report const& said) {
    byte_buffer out;
    append<std::uint32_t>(out,
                          said.how == rank_state::waiting ? static_cast<std::uint32_t>(said.awaits + 2) : 0u);
    return out;
}

HERRING_SETUP inline byte_buffer write_report(blocked_report const& mine) {
    byte_buffer out;
    for (std::uint64_t const number : {mine.waits, mine.channels, mine.waits_of_process})
        append<std::uint64_t>(out, number);
    auto const add = [&](blocked_report::entry const& e) {
        append<std::uint64_t>(out, e.channel);
        append<std::uint64_t>(out, e.number);
    };
    for (std::size_t i = 0; i < mine.waits; ++i) add(mine.waiting[i]);
    for (std::size_t i = 0; i < mine.channels; ++i) add(mine.begun[i]);
    return out;
}
/// False: no rank would say that.
HERRING_SETUP inline bool read_report(std::span<std::byte const> from, blocked_report& report) noexcept {
    reader in{from};
    report = {};
    report.waits = in.number<std::uint64_t>();
    report.channels = in.number<std::uint64_t>();
    report.waits_of_process = in.number<std::uint64_t>();
    if (!in.ok || !report.sound()) return report = {}, false;
    auto const take = [&](blocked_report::entry& e) {
        e.channel = in.number<std::uint64_t>();
        e.number = in.number<std::uint64_t>();
    };
    for (std::size_t i = 0; i < report.waits; ++i) take(report.waiting[i]);
    for (std::size_t i = 0; i < report.channels; ++i) take(report.begun[i]);
    return in.ok && in.rest.empty();
}

/// False: no rank of a world of `ranks` would say that.
HERRING_SETUP inline bool read_answer(std::span<std::byte const> from, int ranks,
                                      wait_report& said) noexcept {
    reader in{from};
    auto const word = in.number<std::uint32_t>();
    if (!in.ok || !in.rest.empty() || word > static_cast<std::uint32_t>(ranks) + 1) return false;
    said = wait_report::read(word, 0);
    return true;
}

} // namespace HERRING_NAMESPACE::detail::star

#endif // HERRING_CONTROL_WIRE_MESSAGES_HPP

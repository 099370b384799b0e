// herring: the messages of the control connection, as bytes and back: pure, checked, no allocation by a wire
// length. SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_CONTROL_WIRE_HPP
#define HERRING_DETAIL_CONTROL_WIRE_HPP

#include "herring/detail/crc32c.hpp"
#include "herring/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace herring::detail::star {

inline constexpr std::uint32_t magic = 0x52524548u; // "HERR"
inline constexpr std::uint16_t protocol_version = 1;
inline constexpr std::size_t head_bytes = 32;
inline constexpr std::size_t hello_limit = 1024;                 // head and body of what a stranger may send
inline constexpr std::size_t blob_limit = std::size_t{64} << 20; // what one rank may give to one all_gather
inline constexpr std::uint32_t body_limit = 0x7FFFFFFFu;

enum class message : std::uint16_t {
    hello = 1,    // rank → 0: who I am
    refuse = 2,   // 0 → rank: you may not join (sequence 1: not now), and why (a failure)
    missing = 3,  // 0 → rank, while joining: text that names who is still missing
    welcome = 4,  // 0 → rank: everyone is here
    barrier = 5,  // rank → 0: I am at barrier `sequence`
    give = 6,     // rank → 0: my bytes for all_gather `sequence`
    done = 7,     // 0 → rank: collective `sequence` is complete; sizes and bytes of all
    late = 8,     // rank → 0: my deadline for `sequence` has passed: name who is missing
    fail = 9,     // either way: a failure
    goodbye = 10, // either way: I leave in order
    alive = 11    // either way: reserved for heartbeats; accepted and ignored
};

/// Little-endian, whatever the machine.
inline void append(std::vector<std::byte>& to, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
}
inline void append(std::vector<std::byte>& to, std::string_view text) {
    std::size_t const at = to.size();
    to.resize(at + text.size());
    if (!text.empty()) std::memcpy(to.data() + at, text.data(), text.size());
}

/// Reads what `append` wrote; past the end it gives zeros and `ok` turns false.
struct reader {
    std::span<std::byte const> rest;
    bool ok = true;

    std::uint64_t number(int bytes) noexcept {
        if (rest.size() < static_cast<std::size_t>(bytes)) {
            ok = false;
            rest = {};
            return 0;
        }
        std::uint64_t value = 0;
        for (int i = 0; i < bytes; ++i)
            value |= static_cast<std::uint64_t>(rest[static_cast<std::size_t>(i)]) << (8 * i);
        rest = rest.subspan(static_cast<std::size_t>(bytes));
        return value;
    }
    std::string_view text(std::size_t bytes) noexcept {
        if (rest.size() < bytes) {
            ok = false;
            rest = {};
            return {};
        }
        std::string_view const found(reinterpret_cast<char const*>(rest.data()), bytes);
        rest = rest.subspan(bytes);
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
    bool read(std::span<std::byte const> from) noexcept {
        if (from.size() < head_bytes) return false;
        reader in{from.first(head_bytes)};
        if (in.number(4) != magic) return false;
        version = static_cast<std::uint16_t>(in.number(2));
        type = static_cast<message>(in.number(2));
        rank = static_cast<std::uint32_t>(in.number(4));
        length = static_cast<std::uint32_t>(in.number(4));
        sequence = in.number(8);
        body_crc = static_cast<std::uint32_t>(in.number(4));
        return in.number(4) == crc32c(from.first(head_bytes - 4));
    }
};

/// Appends a whole message.
inline void append_message(std::vector<std::byte>& to, message type, std::uint32_t rank,
                           std::uint64_t sequence, std::span<std::byte const> body,
                           std::uint16_t version = protocol_version) {
    std::size_t const at = to.size();
    to.reserve(at + head_bytes + body.size());
    append(to, magic, 4);
    append(to, version, 2);
    append(to, static_cast<std::uint64_t>(type), 2);
    append(to, rank, 4);
    append(to, body.size(), 4);
    append(to, sequence, 8);
    append(to, crc32c(body), 4);
    append(to, crc32c(std::span<std::byte const>(to).subspan(at, head_bytes - 4)), 4);
    to.insert(to.end(), body.begin(), body.end());
}

/// What a rank says first.
struct hello {
    std::uint32_t size = 0;
    std::uint32_t rank = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t secret = 0; // check of the secret, see secret_check
    std::string node;
    std::string boot;

    std::vector<std::byte> write() const {
        std::vector<std::byte> out;
        append(out, size, 4);
        append(out, rank, 4);
        append(out, incarnation, 8);
        append(out, secret, 8);
        std::string_view const n = std::string_view(node).substr(0, 600);
        std::string_view const b = std::string_view(boot).substr(0, 300);
        append(out, n.size(), 2);
        append(out, b.size(), 2);
        append(out, n);
        append(out, b);
        return out;
    }

    bool read(std::span<std::byte const> from) {
        reader in{from};
        size = static_cast<std::uint32_t>(in.number(4));
        rank = static_cast<std::uint32_t>(in.number(4));
        incarnation = in.number(8);
        secret = in.number(8);
        std::size_t const n = in.number(2);
        std::size_t const b = in.number(2);
        if (!in.ok || n + b != in.rest.size()) return false;
        node = in.text(n);
        boot = in.text(b);
        return in.ok;
    }
};

inline std::vector<std::byte> write_failure(failure const& why) {
    std::string_view const operation(why.operation), text(why.text);
    std::vector<std::byte> out;
    append(out, static_cast<std::uint32_t>(why.what), 4);
    append(out, static_cast<std::uint32_t>(why.local_rank), 4);
    append(out, static_cast<std::uint32_t>(why.peer), 4);
    append(out, operation.size(), 2);
    append(out, text.size(), 2);
    append(out, operation);
    append(out, text);
    return out;
}

inline bool read_failure(std::span<std::byte const> from, failure& why) noexcept {
    reader in{from};
    auto const code = static_cast<std::uint32_t>(in.number(4));
    auto const local = static_cast<int>(static_cast<std::uint32_t>(in.number(4)));
    auto const peer = static_cast<int>(static_cast<std::uint32_t>(in.number(4)));
    std::size_t const o = in.number(2);
    std::size_t const t = in.number(2);
    if (!in.ok || o + t != in.rest.size()) return false;
    if (code == 0 || code > static_cast<std::uint32_t>(errc::internal)) return false;
    std::string_view const operation = in.text(o);
    why = failure::make(static_cast<errc>(code), local, peer, operation, in.text(t));
    return true;
}

} // namespace herring::detail::star

#endif // HERRING_DETAIL_CONTROL_WIRE_HPP

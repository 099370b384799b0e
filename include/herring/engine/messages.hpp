// herring: what an engine's messages say about themselves: their tags, and the tokens of their completions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_MESSAGES_HPP
#define HERRING_ENGINE_MESSAGES_HPP

#include "herring/base/config.hpp"
#include "herring/transport/transport.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// The kind of a message. Part of its tag, and of the token of its completion; 4 bits.
enum class message : std::uint64_t {
    push = 1,      ///< two hops: a node's part of a chunk, to the chunk's server
    result,        ///< two hops: the server's result of all parts
    part,          ///< one hop: a node's part of a chunk, to every other node
    dissemination, ///< the parts of several nodes, passed on
    near_push,     ///< two levels: a node's part of a chunk, to the node that sums the rack's
    near_result,   ///< two levels: the result of a chunk
    rack_push,     ///< two levels: a rack's sum of another rack's share of a chunk
    rack_result,   ///< two levels: the result of a share
};

/// A kind as a member of a set of kinds.
HERRING_ALWAYS_INLINE constexpr std::uint64_t kind_bit(message what) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(what);
}

/// A message that has come into a slot.
struct arrival {
    static constexpr std::uint32_t numbers = 0xfff; ///< executions are told apart modulo this plus one

    std::size_t bytes = 0;
    std::uint32_t fingerprint = 0;
    std::uint32_t execution = 0; ///< that it belongs to, & numbers
    bool here = false;
};

/// A message's tag: its kind and its number among the pair's messages of that kind, modulo 2^28; and, carried
/// along, 20 bits of fingerprint and 12 of the number of the execution that it belongs to.
constexpr std::uint64_t tag_of(message what, std::uint64_t number, std::uint32_t fingerprint = 0,
                               std::uint64_t execution = 0) noexcept {
    std::uint64_t const carried = std::uint64_t{fingerprint} << 12 | (execution & arrival::numbers);
    return (static_cast<std::uint64_t>(what) << 60) | (number & ((1u << 28) - 1)) |
           (carried << 28 & carried_bits);
}
static_assert((tag_of(message::push, 0, 0xfffff, 0xfff) ^ tag_of(message::push, 0)) == carried_bits,
              "the fingerprint and the number fill what a transport carries along");
static_assert((tag_of(message::dissemination, (1u << 28) - 1) & carried_bits) == 0,
              "neither the kind nor the number reaches into it");

/// Reads the completion of a receive: bytes, and the execution that it belongs to.
constexpr arrival arrival_of(completion const& done) noexcept {
    auto const carried = static_cast<std::uint32_t>((done.tag & carried_bits) >> 28);
    return {done.bytes, carried >> 12, carried & arrival::numbers, true};
}

/// The token of a post, which its completion returns. At most 2^20 peers, slots, and executions at once.
struct token {
    message what;
    std::size_t peer;        ///< place in the engine's peers
    std::size_t slot;        ///< of a window
    std::uint64_t execution; ///< place in the ring

    static constexpr std::uint64_t low = (1u << 20) - 1;
    /// True if a ring of so many executions has a place for each.
    static constexpr bool can_name(std::size_t executions) noexcept {
        return std::bit_ceil(executions + 1) <= low + 1;
    }
    constexpr std::uint64_t packed() const noexcept {
        return (static_cast<std::uint64_t>(what) << 60) | (peer << 40) | (slot << 20) | (execution & low);
    }
    static constexpr token unpacked(std::uint64_t bits) noexcept {
        return {static_cast<message>(bits >> 60), (bits >> 40) & low, (bits >> 20) & low, bits & low};
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_MESSAGES_HPP

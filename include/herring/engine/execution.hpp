// herring: one bucket on its way, and the cursors that walk the chunks of all executions in order.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_EXECUTION_HPP
#define HERRING_ENGINE_EXECUTION_HPP

#include "herring/base/config.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE {

/// A range of a bucket that lies in memory of the caller's, which other ranks do not see.
struct lent_part {
    std::byte const* from = nullptr; ///< this rank's contribution
    std::byte* to = nullptr;         ///< its result; may be `from`
    std::size_t offset = 0;          ///< elements from the bucket's start
    std::size_t elements = 0;
};

/// A bucket that was submitted. Executions are numbered 0, 1, 2, … in the same order on every rank.
struct execution {
    shard const* shards = nullptr;
    std::uint32_t shard_count = 0;
    route path = route::local;
    std::byte* own = nullptr; ///< start of the bucket in this node's memory
    int home = -1;            ///< local rank whose region `own` lies in; −1: this rank
    std::size_t elements = 0;
    std::uint32_t fingerprint = 0; ///< 20 bits, of the operation that every rank must be in here
    std::uint32_t label = 0;       ///< bucket number, for the trace
    std::uint32_t open = 0;        ///< things that this rank still has to do or to wait for
    std::uint32_t lent_parts = 0;
    lent_part const* lent = nullptr; ///< what was copied to `own`, if all of it is memory of the caller's
    /// What is to be copied next to where the first lent part lies, if that is known; no more than that part has.
    std::span<std::byte const> next{};
    bool exchanged = false; ///< see local_routes; `own` and `home` are the other rank's then, and hold `next`
};

/// A fingerprint of an operation: which one it is, and of what size.
constexpr std::uint32_t fingerprint_of(std::uint64_t elements, std::uint64_t label) noexcept {
    std::uint64_t const mixed = (elements * 0x9e3779b97f4a7c15u) ^ ((label + 1) * 0xc2b2ae3d27d4eb4fu);
    return static_cast<std::uint32_t>((mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9u >> 44);
}

/// A range of one execution's bucket.
struct chunk {
    std::size_t offset = 0; ///< elements from the bucket's start
    std::size_t elements = 0;
};

/// Walks the chunks of one stream through all executions of one route, in order.
struct chunk_cursor {
    chunk_stream stream;  ///< which chunks of a shard
    int server = 0;       ///< shards of this server only
    std::uint64_t at = 0; ///< execution
    std::uint32_t shard = 0;
    std::uint32_t k = 0; ///< chunk of that shard; start with stream.first

    chunk_cursor() = default;
    chunk_cursor(chunk_stream which, int of) noexcept : stream(which), server(of), k(which.first) {}

    /// Within `e`: moves on to the next chunk of the stream, if not on one. False: `e` has no more.
    bool settle(execution const& e) noexcept {
        while (shard < e.shard_count) {
            if (e.shards[shard].server.value == server && k < e.shards[shard].chunks) return true;
            ++shard;
            k = stream.first;
        }
        return false;
    }

    void next_execution() noexcept {
        ++at;
        shard = 0;
        k = stream.first;
    }

    void next_chunk() noexcept { k += stream.stride; }

    /// The chunk that the cursor stands on; only after `settle` said true.
    chunk here(execution const& e) const noexcept {
        herring::shard const& s = e.shards[shard];
        std::size_t const from = static_cast<std::size_t>(k) * s.chunk_elements;
        std::size_t const left = s.elements - from;
        return {s.offset + from, left < s.chunk_elements ? left : s.chunk_elements};
    }
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENGINE_EXECUTION_HPP

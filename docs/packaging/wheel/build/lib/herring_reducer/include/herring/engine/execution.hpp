// herring: one bucket on its way, and the cursors that walk the chunks of all executions in order.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_EXECUTION_HPP
#define HERRING_ENGINE_EXECUTION_HPP

#include "herring/base/config.hpp"
#include "herring/model/range.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE {

/// How the ranks of a node combine a bucket that all of them copied from their callers' memory.
enum class lending : std::uint8_t {
    none,        ///< as memory that all see: each combines its chunks for all, and each copies its result out
    swap,        ///< two ranks: each combines for itself, and keeps the other's place; else none
    read,        ///< each reads from all ranks what it needs for its own result
    swap_or_read ///< a property of an operation: two ranks swap, more read
};

/// How a range is copied from the caller's memory to the bucket, or a result to the caller's memory.
enum class copy_mode : std::uint8_t {
    cached,   ///< through this core's cache
    streamed, ///< past the cache: other ranks read it and have it in their caches, or it fits no cache
    none      ///< not at all: no other rank reads it
};

/// A range of a bucket that lies in the caller's memory, which other ranks do not see.
struct lent_part {
    std::byte const* from = nullptr; ///< this rank's contribution
    std::byte* to = nullptr;         ///< its result; may be `from`; nullptr: it takes none
    std::size_t offset = 0;          ///< elements from the bucket's start
    std::size_t elements = 0;
    copy_mode copying = copy_mode::cached;
    /// How `to` is written from another rank's memory; streamed: `to` is not read meanwhile.
    copy_mode landing = copy_mode::cached;
};

/// The second result of each element, in an operation with two: the second results are a bucket behind the
/// first.
struct second_results {
    std::size_t begin = 0;    ///< element of the bucket's memory where they begin
    std::byte* out = nullptr; ///< where they land, if the execution has `out`
};

namespace detail {
struct block_piece; // engine/operations/all_to_all.hpp
}

/// The part of an execution that belongs to its operation: one alternative for each kind of operation that
/// needs more than all have. The operation knows which one is set.
union operation_part {
    range const* owned =
        nullptr; ///< operations that move or leave ranges: rank → range of the bucket that it owns
    detail::block_piece const* blocks; ///< operations that move a block for each pair of ranks
    second_results second;             ///< operations with two results for each element
};

/// A bucket that was submitted. Executions are numbered 0, 1, 2, … in the same order on every rank of a node.
struct execution {
    shard const* shards = nullptr;
    std::uint32_t shard_count = 0;
    route path = route::local;
    std::uint8_t operation = 0; ///< place in the engine's list of operations
    std::uint8_t rule = 0; ///< of update::any: the call's, from 1; 0: none is named, and the first is taken
    /// Bytes of an element of this bucket, as stored; 0: an element of the plan, whose size the engine sets.
    std::uint16_t element_bytes = 0;
    /// Bytes of an element of the call, whose bucket is of bytes; 0: the bucket's elements are the call's.
    std::uint32_t moved_bytes = 0;
    std::int32_t root = -1;   ///< rank; −1: the call has none
    std::byte* own = nullptr; ///< this rank's contribution: start of the bucket in this node's memory
    int home = -1;            ///< local rank whose region `own` lies in; −1: this rank
    std::size_t elements = 0;
    std::uint32_t fingerprint = 0;   ///< 20 bits, of the operation that every rank must be in here
    std::uint32_t label = 0;         ///< bucket number, for the trace; no_bucket: not a bucket of a step
    char const* name = "all_reduce"; ///< the call, if this is not a bucket of a step; for errors

    // A bucket in a bounce slot.
    std::uint32_t lent_parts = 0;
    lent_part const* lent = nullptr; ///< the parts that were copied to `own`, if they are the whole bucket
    /// The bytes that will be copied to the place of the first lent part, if they are known; no more than
    /// that part has.
    std::span<std::byte const> next{};

    // A buffer in memory that no other rank sees: results may lie elsewhere, and it may begin within the
    // bucket.
    std::byte* out = nullptr;  ///< where results land; nullptr: on the contribution
    std::size_t own_begin = 0; ///< element of the bucket that lies at `own`
    std::size_t out_begin = 0; ///< element of the bucket that lies at `out`

    operation_part part{};

    // Set by the engine.
    lending how = lending::none; ///< swap: `own` and `home` are the other rank's now, and hold `next`
    std::ptrdiff_t* local_offsets = nullptr; ///< local rank → from this rank's part to its part, in bytes
    std::byte* device_sum = nullptr; ///< where devices or threads leave the node's sum; nullptr: they do not

    HERRING_ALWAYS_INLINE constexpr std::size_t bytes(std::size_t n) const noexcept {
        return n * element_bytes;
    }
};

/// A fingerprint of an operation: which one it is, and of what size.
constexpr std::uint32_t fingerprint_of(std::uint64_t elements, std::uint64_t label) noexcept {
    std::uint64_t const mixed = (elements * 0x9e3779b97f4a7c15u) ^ ((label + 1) * 0xc2b2ae3d27d4eb4fu);
    return static_cast<std::uint32_t>((mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9u >> 44);
}

/// The fingerprint of a call by a rule of update::any: ranks that differ in the rule alone know each other's.
constexpr std::uint32_t fingerprint_by(std::uint8_t rule, std::uint32_t of_call) noexcept {
    return of_call ^ rule;
}
/// Returns the rule of a rank that is in the same call as `e`, from its fingerprint; 0: in another one.
constexpr std::uint8_t rule_in(execution const& e, std::uint32_t fingerprint, std::size_t rules) noexcept {
    std::uint32_t const other = (fingerprint ^ e.fingerprint) ^ e.rule;
    return e.rule > 0 && other <= rules ? static_cast<std::uint8_t>(other) : std::uint8_t{0};
}

/// The number of an execution and its operation's fingerprint: local ranks compare it.
constexpr std::uint64_t stamp_of(execution const& e, std::uint64_t number) noexcept {
    return number << 20 | e.fingerprint;
}
constexpr std::uint32_t fingerprint_in(std::uint64_t stamp) noexcept {
    return static_cast<std::uint32_t>(stamp & 0xf'ffff);
}

/// A range of one execution's bucket.
struct chunk {
    std::size_t offset = 0; ///< elements from the bucket's start
    std::size_t elements = 0;
    std::uint32_t turn = 0; ///< local rank turn mod L of each node of L ranks handles it
    int owner = -1; ///< local rank of the server's node that the chunk's shard belongs to; −1: no rank alone

    constexpr herring::range range() const noexcept { return {offset, elements}; }
};

/// Walks the chunks of one stream through all executions of one route, in order.
struct chunk_cursor {
    chunk_stream stream;  ///< which chunks of a shard
    server_id server{0};  ///< shards of this server only
    std::uint64_t at = 0; ///< execution
    std::uint32_t shard = 0;
    std::uint32_t step = 0; ///< chunks of that shard's that are behind the cursor

    chunk_cursor() = default;
    chunk_cursor(chunk_stream which, server_id of) noexcept : stream(which), server(of) {}

    /// Within `e`: moves on to the next chunk of the stream, if not on one. False: `e` has no more.
    bool settle(execution const& e) noexcept {
        while (shard < e.shard_count) {
            herring::shard const& s = e.shards[shard];
            if (s.server == server && stream.handles(s) && number(s) < s.chunks) return true;
            ++shard;
            step = 0;
        }
        return false;
    }

    void next_execution() noexcept {
        ++at;
        shard = 0;
        step = 0;
    }

    void next_chunk() noexcept { ++step; }

    /// The chunk that the cursor stands on; only after `settle` returned true.
    chunk here(execution const& e) const noexcept {
        herring::shard const& s = e.shards[shard];
        std::uint32_t const k = number(s);
        std::size_t const from = static_cast<std::size_t>(k) * s.chunk_elements;
        std::size_t const left = s.elements - from;
        return {s.offset + from, left < s.chunk_elements ? left : s.chunk_elements,
                s.owner < 0 ? k : static_cast<std::uint32_t>(s.owner), s.owner};
    }

    /// Its number in a shard that the cursor stands in.
    std::uint32_t number(herring::shard const& s) const noexcept {
        return s.owner < 0 ? stream.first + step * stream.stride : step;
    }
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENGINE_EXECUTION_HPP

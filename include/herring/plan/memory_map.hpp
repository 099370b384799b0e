// herring: the memory map: what lies where in a rank's memory, and which path the elements of a call take.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_MEMORY_MAP_HPP
#define HERRING_PLAN_MEMORY_MAP_HPP

#include "herring/base/config.hpp"
#include "herring/plan/plan.hpp"
#include "herring/units.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE {

/// Where the caller's elements lie while they are reduced.
enum class memory_path : std::uint8_t {
    in_place, ///< where the caller has them
    mailbox,  ///< there too; the engine copies them to a mailbox that the node sees
    copied,   ///< in the reducer's tensors: `ready` copies them there, `wait` back
    bounced,  ///< in bounce slots: copied in and out a few pieces at a time
    device    ///< on the device, in the reducer's tensors or in bounce slots behind them
};

constexpr char const* to_string(memory_path path) noexcept {
    switch (path) {
    case memory_path::in_place:
        return "in place";
    case memory_path::mailbox:
        return "mailbox";
    case memory_path::copied:
        return "copied";
    case memory_path::bounced:
        return "bounced";
    case memory_path::device:
        return "device";
    }
    return "unknown";
}

/// The facts of a pack's policies that a memory map depends on.
struct memory_traits {
    bool on_device = false;        ///< intra_node: tensors lie on devices
    bool sums_on_device = false;   ///< intra_node: devices sum the node's parts
    bool registers_memory = false; ///< transport: it sends from registered memory only
    bool background = false;       ///< progress: a thread of the reducer's polls the engine
};

/// Whether large buckets are split. They are where they pass several stages in turn (bounce slot, device, host). The network
/// needs no split: it works by chunks.
constexpr bool splits_buckets(memory_traits const& traits, topology const& map) noexcept {
    if (traits.on_device) return !traits.sums_on_device || map.nodes() > 1;
    return map.nodes() == 1 && map.largest_node() > 1;
}

/// The layout of one rank's memory. A value: the same on every rank of a node, whatever its progress policy.
///
/// Shape: region on the host: tensors | bounce slots | what the engine shows to local ranks. With devices the first two
///        lie in device memory, and the region holds the third.
/// Units: sizes and offsets in bytes, unless the name says elements.
struct memory_map {
    /// Pieces that may be in bounce slots at once: one is copied in, one reduced, one copied out, one in reserve.
    static constexpr std::size_t bounce_slots = 4;
    /// A piece in device memory: as the largest bucket, within these.
    static constexpr std::size_t least_device_piece = 64_KiB, most_device_piece = 4_MiB;

    memory_path tensors = memory_path::copied;   ///< of callers' tensors in a step
    memory_path buffers = memory_path::in_place; ///< of callers' buffers in a collective call
    std::size_t mailbox_bytes = 0; ///< smaller buffers that would be bounced go through a mailbox instead

    std::size_t piece_elements = 0; ///< of a buffer, in one bounce slot; 0: buffers are not bounced
    std::size_t slot_elements = 0;  ///< from one bounce slot to the next; a bucket may be larger than a piece
    std::size_t bounce_offset = 0;  ///< from the start of the region, or of device memory
    std::size_t local_offset = 0;   ///< what the engine shows to local ranks, in the region
    std::size_t region_bytes = 0;   ///< of host memory that the node shares
    std::size_t staging_bytes = 0;  ///< of host memory for messages
    std::size_t executions = 0;     ///< outstanding at once, at most
    std::size_t executions_kept = 0; ///< whose records the engine keeps
    std::size_t bucket_segments = 1; ///< tensors that have elements in one bucket, at most

    std::size_t device_bytes = 0;  ///< of device memory
    std::size_t device_bucket = 0; ///< the largest range that is loaded from a device at once
    std::size_t device_loads = 0;  ///< outstanding at once, at most; parts of a split bucket are one

    /// Of a buffer of so many bytes.
    constexpr memory_path path_of_buffer(std::size_t bytes) const noexcept {
        return buffers == memory_path::bounced && bytes <= mailbox_bytes ? memory_path::mailbox : buffers;
    }
};

namespace detail {

/// Calls `with(tensor, from, count)` for the elements of each tensor that lie in the bucket; `from` counts from the
/// tensor's start.
template <class With>
constexpr void for_each_tensor_in(plan const& made, bucket const& of, With const& with) noexcept {
    std::size_t const end = of.offset + of.elements;
    for (std::size_t i = of.first_tensor; i < made.tensors.size() && made.tensors[i].offset < end; ++i) {
        placed_tensor const& t = made.tensors[i];
        std::size_t const from = std::max(t.offset, of.offset), to = std::min(t.offset + t.elements, end);
        if (from < to) with(i, from - t.offset, to - from);
    }
}

/// Elements of a piece: few enough that all bounce slots stay in cache, enough to be worth the flags of one execution.
constexpr std::size_t piece_elements_of(plan const& made) noexcept {
    auto const ranks = static_cast<std::size_t>(made.largest_node);
    std::size_t const bytes =
        made.nodes == 1 ? (ranks <= 2 ? 64_KiB : 256_KiB)
                        : 2 * ranks * static_cast<std::size_t>(made.nodes) * made.tuning.chunk_bytes;
    // At least an element of each rank's, whatever the chunks are.
    std::size_t const least = round_up(ranks * static_cast<std::size_t>(made.nodes), made.line_elements);
    return std::max(bytes / made.element_bytes / made.line_elements * made.line_elements, least);
}

} // namespace detail

/// The memory map of a rank that exchanges with `peers` ranks of other nodes. `local_bytes(executions, mailbox_bytes)`: what
/// an engine shows to local ranks.
///
/// Cost: O(tensors); usable in a constant expression.
HERRING_SETUP constexpr memory_map
make_memory_map(plan const& made, memory_traits const& traits, std::size_t peers,
                std::size_t (*local_bytes)(std::size_t, std::size_t) noexcept) {
    memory_map map;
    bool const split = made.tuning.split_bytes > 0;
    std::size_t largest = 0; // elements of a bucket
    for (bucket const& b : made.buckets) {
        largest = std::max(largest, b.elements);
        map.device_loads += b.tensors > 0;
        std::size_t segments = 0;
        detail::for_each_tensor_in(made, b, [&](std::size_t, std::size_t, std::size_t) { ++segments; });
        map.bucket_segments = std::max(map.bucket_segments, segments);
    }
    map.executions = std::max(made.buckets.size(), map.bounce_slots);
    // As many again may be released by this rank while another one of its node has still to look at them.
    map.executions_kept = map.executions + map.bounce_slots;
    map.staging_bytes = made.staging_bytes(peers);
    map.mailbox_bytes = made.nodes == 1 ? made.tuning.mailbox_bytes : 0;
    if (traits.on_device) {
        map.tensors = map.buffers = memory_path::device;
        std::size_t const bytes = largest * made.element_bytes;
        map.piece_elements = (bytes > 0 ? std::clamp(bytes, map.least_device_piece, map.most_device_piece)
                                        : map.most_device_piece) /
                             made.element_bytes;
        map.slot_elements = map.piece_elements;
        map.bounce_offset =
            detail::round_up(made.tensor_bytes(), 256) / made.element_bytes * made.element_bytes;
        map.device_bytes = map.bounce_offset + map.bounce_slots * map.slot_elements * made.element_bytes;
        map.device_bucket = std::max(bytes, map.piece_elements * made.element_bytes);
        map.device_loads = std::max(map.device_loads, map.bounce_slots);
    } else {
        map.device_loads = 0;
        // Memory of the caller's, which neither a local rank nor an adapter sees.
        if (made.largest_node > 1 || (traits.registers_memory && made.nodes > 1)) {
            map.buffers = memory_path::bounced;
            map.piece_elements = detail::piece_elements_of(made);
        }
        if (split && !traits.background) map.tensors = memory_path::bounced;
        // With background too: regions are alike on all ranks of a node, and progress may differ.
        map.slot_elements = std::max(map.piece_elements, split ? largest : 0);
        map.bounce_offset = detail::round_up(made.tensor_bytes(), 4096);
        map.local_offset = map.bounce_offset + map.bounce_slots * map.slot_elements * made.element_bytes;
    }
    std::size_t const shown =
        made.largest_node > 1 ? local_bytes(map.executions_kept, made.tuning.mailbox_bytes) : 0;
    map.region_bytes = detail::round_up(map.local_offset + shown, 64);
    return map;
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_PLAN_MEMORY_MAP_HPP

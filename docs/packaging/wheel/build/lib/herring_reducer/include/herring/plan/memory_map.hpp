// herring: the memory map: the layout of a rank's memory, and the path of the elements of a call.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_MEMORY_MAP_HPP
#define HERRING_PLAN_MEMORY_MAP_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/model/layout.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace HERRING_NAMESPACE {

/// The place of the caller's elements while they are reduced.
enum class memory_path : std::uint8_t {
    in_place, ///< in the caller's memory; a tensor only if it is a bucket by itself, else it is copied
    mailbox,  ///< in the caller's memory; the engine copies them to a mailbox in shared memory
    copied,   ///< in the reducer's tensors: `ready` copies them in, `wait` copies them out
    bounced,  ///< in bounce slots: copied in and out piece by piece
    device    ///< on the device, in the reducer's tensors or in the bounce slots that follow them
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
    bool on_device = false;           ///< intra_node: tensors lie on devices
    bool sums_on_device = false;      ///< intra_node: devices sum the node's parts
    bool reads_peers = false;         ///< intra_node: devices read and write other ranks' memory
    bool registers_memory = false;    ///< transport: it sends from registered memory only
    bool works_between_calls = false; ///< transport: it touches posted memory between polls
    bool background = false;          ///< progress: a thread of the reducer polls the engine
    bool keeps_weights = false;       ///< an optimizer: weights lie beside the tensors
    bool votes = false;               ///< sync: a vote may be in flight beside a step, or a call
    std::size_t command_bytes = 0;    ///< of a worker's command to dedicated servers; 0: there are none
    std::size_t norms_bytes = 0;      ///< of the norms that a step exchanges with dedicated servers; 0: none
};

/// True if large buckets are split: where they pass several stages in turn (bounce slot, device, host). The
/// network needs no split: it works by chunks.
constexpr bool splits_buckets(memory_traits const& traits, topology const& map) noexcept {
    if (traits.on_device) return !traits.sums_on_device || map.nodes() > 1;
    return map.nodes() == 1 && map.largest_node() > 1;
}

/// The layout of one rank's memory. A value: the same on every rank of a node, whatever its progress policy.
///
/// Shape: region on the host: tensors | bounce slots | the engine's memory that local ranks read | command |
///        norms | weights. With devices the first two lie in device memory, and the region holds the rest.
/// Units: sizes and offsets in bytes, unless the name says elements.
struct memory_map {
    static constexpr std::size_t bounce_slots = plan::bounce_slots;

    memory_path tensors = memory_path::copied;   ///< of the caller's tensors in a step
    memory_path buffers = memory_path::in_place; ///< of the caller's buffers in a collective call
    std::size_t mailbox_bytes = 0; ///< buffers up to this size go through a mailbox, larger ones are bounced

    std::size_t piece_elements = 0;  ///< of a buffer, in one bounce slot; 0: buffers are not bounced
    std::size_t least_piece = 0;     ///< on a device: a smaller buffer is one piece
    std::size_t slot_elements = 0;   ///< stride of bounce slots; a bucket may be larger than a piece
    std::size_t bounce_offset = 0;   ///< from the start of the region, or of device memory
    std::size_t local_offset = 0;    ///< in the region, of the engine's memory that local ranks read
    std::size_t weights_offset = 0;  ///< in the region, of an optimizer's weights; 0: no optimizer
    std::size_t command_offset = 0;  ///< in the region, of a worker's command to servers
    std::size_t norms_offset = 0;    ///< in the region, of the norms of a step
    std::size_t region_bytes = 0;    ///< host memory that the node shares
    std::size_t staging_bytes = 0;   ///< host memory for messages
    std::size_t executions = 0;      ///< upper bound on outstanding executions
    std::size_t executions_kept = 0; ///< executions whose records the engine keeps
    std::size_t bucket_segments = 1; ///< upper bound on tensors with elements in one bucket

    std::size_t device_bytes = 0;  ///< device memory
    std::size_t device_bucket = 0; ///< bytes of the largest range that one load takes from a device
    std::size_t device_loads = 0;  ///< upper bound on outstanding loads; a split bucket is one load

    /// The path of a buffer of `bytes` bytes.
    constexpr memory_path path_of_buffer(std::size_t bytes) const noexcept {
        return buffers == memory_path::bounced && bytes <= mailbox_bytes ? memory_path::mailbox : buffers;
    }
    /// Elements of the pieces of a buffer of `elements`: on a device one piece a slot, within the bounds of a
    /// piece.
    constexpr std::size_t piece_of(std::size_t elements) const noexcept {
        if (buffers != memory_path::device) return piece_elements;
        return std::clamp(detail::round_up((elements + bounce_slots - 1) / bounce_slots, 64), least_piece,
                          piece_elements);
    }
};

namespace detail {

/// Calls `with(tensor, from, count)` for the elements of each tensor in the bucket; `from` counts from the
/// tensor's start.
template <class With>
constexpr void for_each_tensor_in(plan const& p, bucket const& of, With const& with) noexcept {
    std::size_t const end = of.offset + of.elements;
    for (std::size_t i = of.first_tensor; i < p.tensors.size() && p.tensors[i].offset < end; ++i) {
        placed_tensor const& t = p.tensors[i];
        std::size_t const from = std::max(t.offset, of.offset), to = std::min(t.offset + t.elements, end);
        if (from < to) with(i, from - t.offset, to - from);
    }
}

} // namespace detail

/// The memory map of a rank that exchanges with `peers` ranks of other nodes. `local_bytes(executions,
/// mailbox_bytes)` is the size of the engine's memory that local ranks read.
///
/// Cost: O(tensors); usable in a constant expression.
HERRING_SETUP constexpr memory_map
make_memory_map(plan const& p, memory_traits const& traits, std::size_t peers,
                std::size_t (*local_bytes)(std::size_t, std::size_t) noexcept) {
    memory_map map;
    bool const split = p.tuning.split_bytes > 0;
    std::size_t largest = 0; // elements of a bucket, in whole cache lines
    for (bucket const& b : p.buckets) {
        largest = std::max(largest, detail::round_up(b.elements, p.line_elements));
        map.device_loads += b.tensors > 0;
        std::size_t segments = 0;
        detail::for_each_tensor_in(p, b, [&](std::size_t, std::size_t, std::size_t) { ++segments; });
        map.bucket_segments = std::max(map.bucket_segments, segments);
    }
    map.executions = std::max(p.buckets.size(), map.bounce_slots) + traits.votes;
    // Another rank of the node may not have read the last `bounce_slots` executions that this rank has
    // released.
    map.executions_kept = map.executions + map.bounce_slots;
    if (traits.command_bytes > 0) {
        ++map.executions; // the command
        // The sums of norms are in flight beside the second phase.
        if (traits.norms_bytes > 0) ++map.executions;
        // A worker may be a step ahead of a server that has done its part of a step and not polled since.
        map.executions_kept = 2 * map.executions + map.bounce_slots;
    }
    map.staging_bytes = p.staging_bytes(peers);
    map.mailbox_bytes = p.nodes == 1 ? p.tuning.mailbox_bytes : 0;
    if (traits.on_device) {
        map.tensors = map.buffers = memory_path::device;
        std::size_t const piece = p.call_piece_elements();
        map.piece_elements = piece;
        map.least_piece = std::min(piece, detail::round_up((split ? 256_KiB : 4_MiB) / p.element_bytes, 64));
        map.bounce_offset = detail::round_up(p.tensor_bytes(), 256) / p.element_bytes * p.element_bytes;
        // The host copies any memory of the caller; other devices do not reach all of it, and need slots.
        map.slot_elements = traits.reads_peers ? piece : 0;
        map.device_bytes = map.bounce_offset + map.bounce_slots * map.slot_elements * p.element_bytes;
        map.device_bucket = std::max(largest, piece) * p.element_bytes;
        map.device_loads = std::max(map.device_loads, map.bounce_slots);
    } else {
        map.device_loads = 0;
        // The caller's memory is visible to neither local ranks nor the network adapter.
        if (p.largest_node > 1 || (traits.registers_memory && p.nodes > 1)) {
            map.buffers = memory_path::bounced;
            map.piece_elements = detail::piece_elements_of(p);
        }
        // Only calls may touch the caller's tensors: a step that is left by an exception frees them.
        if (map.buffers == memory_path::in_place && !traits.background && !traits.works_between_calls)
            map.tensors = memory_path::in_place;
        if (split && !traits.background) map.tensors = memory_path::bounced;
        // With background progress too: regions are alike on all ranks of a node, and ranks may differ in
        // progress.
        map.slot_elements = std::max(map.piece_elements, split ? largest : 0);
        map.bounce_offset = detail::round_up(p.tensor_bytes(), 4096);
        map.local_offset = map.bounce_offset + map.bounce_slots * map.slot_elements * p.element_bytes;
    }
    std::size_t const local_memory =
        p.largest_node > 1 ? local_bytes(map.executions_kept, p.tuning.mailbox_bytes) : 0;
    map.region_bytes = detail::round_up(map.local_offset + local_memory, 64);
    if (traits.command_bytes > 0) {
        map.command_offset = map.region_bytes;
        map.region_bytes += detail::round_up(traits.command_bytes, 64);
    }
    if (traits.norms_bytes > 0) {
        map.norms_offset = map.region_bytes;
        map.region_bytes += detail::round_up(traits.norms_bytes, 64);
    }
    if (traits.keeps_weights) {
        map.weights_offset = detail::round_up(map.region_bytes, 4096);
        map.region_bytes = map.weights_offset + detail::round_up(p.tensor_bytes(), 64);
    }
    return map;
}

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail {

/// Cuts any range of a rank's tensor memory where the tensor changes, or its group. The gap behind a tensor
/// belongs to the tensor's run.
///
/// Units: elements from the start of the tensor memory, as the plan places tensors.
/// Cost:  O(log runs) and one call a run.
class tensor_runs {
  public:
    enum class of { tensors, groups };
    struct run {
        std::size_t begin = 0;
        std::size_t tensor = 0; ///< the first tensor of the run
        std::size_t group = 0;
    };

    tensor_runs() = default;
    tensor_runs(plan const& from, layout const& tensors, of what) {
        for (std::size_t i = 0; i < from.tensors.size(); ++i) {
            if (from.tensors[i].elements == 0) continue;
            run const next{runs_.empty() ? 0 : from.tensors[i].offset, i, tensors[i].group};
            if (runs_.empty() || what == of::tensors || next.group != runs_.back().group)
                runs_.push_back(next);
        }
    }

    /// Calls `with(begin, end, run)` for the parts of [begin, end), in order.
    template <class With>
    HERRING_ALWAYS_INLINE void for_each(std::size_t begin, std::size_t end, With const& with) const noexcept {
        auto next = std::upper_bound(runs_.begin(), runs_.end(), begin,
                                     [](std::size_t at, run const& one) { return at < one.begin; });
        while (begin < end) {
            run const& here = *(next - 1);
            std::size_t const stop = next == runs_.end() ? end : std::min(end, (next++)->begin);
            with(begin, stop, here);
            begin = stop;
        }
    }

  private:
    std::vector<run> runs_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_PLAN_MEMORY_MAP_HPP

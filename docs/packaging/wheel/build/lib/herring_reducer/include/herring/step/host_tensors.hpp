// herring: tensors in memory of the host, and bounce slots behind them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_HOST_TENSORS_HPP
#define HERRING_STEP_HOST_TENSORS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/control/world.hpp"
#include "herring/kernel/copies.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"
#include "herring/step/bounce_buffers.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Streams and devices of a store of host memory: it has none.
class unordered_memory {
  public:
    static constexpr bool on_device = false;
    static constexpr char const* wait_call = "wait()"; ///< for errors
    /// Orders nothing: the caller's copies are done when it calls.
    struct stream {};

    /// Why the caller's memory or stream cannot be used, or nullptr.
    char const* check_memory(void const*) const noexcept { return nullptr; }
    char const* check_stream(stream) const noexcept { return nullptr; }
    /// Has all that is gathered from now on come after the present work in this stream.
    void order_after(stream) noexcept {}
    /// The first failure of a device, or nullptr.
    failure const* failed() const noexcept { return nullptr; }
};

/// Where the tensors of a reducer lie: its own in the rank's region, external ones in the caller's memory.
///
/// A tensor store brings a bucket to where it is reduced (`gather`), and results to external tensors
/// (`scatter`); it copies the pieces of a list to bounce slots and out of them.
/// gpu/pipeline/device_tensors.hpp is the other one. This one copies bytes: a program has it once, whatever
/// its reducers' elements are.
///
/// Lifetime: refers to the plan, the memory map and the node's memory.
class host_tensors : public unordered_memory {
  public:
    using pointer = std::byte*;

    /// Makes the node's memory; returns its bytes.
    template <class Node>
    static std::size_t make_node(manual_lifetime<Node>& node, world& ranks, plan const&,
                                 memory_map const& map, std::size_t, bool) {
        node.emplace(ranks, map.region_bytes);
        return map.region_bytes;
    }

    template <class Node>
    host_tensors(Node& node, plan const& from, memory_map const& map, int local_rank)
        : memory_(node.memory()), plan_(from), element_bytes_(from.element_bytes), path_(map.tensors),
          external_(from.tensors.size()), listed_(from.tensors.size()) {
        for (std::size_t i = 0; i < map.bounce_slots; ++i)
            slots_[i] = {memory_ + map.bounce_offset + i * map.slot_elements * element_bytes_, local_rank};
    }

    /// The reducer's own tensor i.
    std::byte* tensor(std::size_t i) const noexcept {
        return memory_ + plan_.tensors[i].offset * element_bytes_;
    }

    // ---- external tensors of the step under way -----------------------------------------------------------

    /// Tensor i of the step lies in the caller's memory.
    void lend(std::size_t i, std::byte* at) noexcept {
        if (is_copied(i)) std::memcpy(tensor(i), at, plan_.tensors[i].elements * element_bytes_);
        external_[i] = at;
        listed_.push(i);
    }
    bool any_lent() const noexcept { return !listed_.empty(); }
    bool is_lent(std::size_t i) const noexcept { return external_[i] != nullptr; }
    /// Element `from` of tensor i, wherever it lies.
    std::byte* origin(std::size_t i, std::size_t from) const noexcept {
        return (is_lent(i) ? external_[i] : tensor(i)) + from * element_bytes_;
    }

    /// Where a bucket that is not bounced lies. It is execution `number`.
    std::byte* gather(bucket const& of, std::size_t, std::uint64_t) const noexcept {
        std::size_t i = of.first_tensor;
        while (plan_.tensors[i].elements == 0) ++i;
        return is_lent(i) && !is_copied(i) ? external_[i] : memory_ + of.offset * element_bytes_;
    }
    /// Ends the step: external tensors get their results, unless they have them, and none is external from
    /// now on.
    void scatter(stream, std::uint64_t) noexcept {
        for (std::size_t const i : listed_) {
            if (is_copied(i))
                std::memcpy(external_[i], tensor(i), plan_.tensors[i].elements * element_bytes_);
            external_[i] = nullptr;
        }
        listed_.clear();
    }

    // ---- bounce slots -------------------------------------------------------------------------------------

    piece_place copy_in(std::size_t slot, bounced_piece const& piece, std::uint64_t) noexcept {
        std::span<segment const> const segments = piece.all();
        slot_place& here = slots_[slot];
        bool const filled = std::exchange(here.filled, false);
        for (std::size_t i = 0; i < segments.size(); ++i) {
            segment const& part = segments[i];
            std::size_t const end = part.offset + part.elements;
            std::size_t const next = i + 1 < segments.size() ? segments[i + 1].offset : piece.elements;
            if (part.from == nullptr || part.copying == copy_mode::none) continue;
            if (!filled)
                fill(here.own + part.offset * piece.element_bytes, part, part.elements * piece.element_bytes);
            if (end < next) // up to the next tensor's cache line
                std::memset(here.own + end * piece.element_bytes, 0, (next - end) * piece.element_bytes);
        }
        return {here.own, here.home, segments};
    }

    /// After `ended`, which was the last of `released` executions. Where two ranks exchanged it, its results
    /// are in the caller's memory already, and the slot is another from now on.
    void copy_out(std::size_t slot, std::span<segment const> segments, execution const& ended,
                  std::uint64_t) noexcept {
        if (ended.how == lending::swap) {
            slots_[slot] = {ended.own, ended.home, !ended.next.empty()};
            return;
        }
        if (ended.how == lending::read) return; // the results are in the caller's memory
        for (segment const& part : segments)
            if (part.to != nullptr)
                std::memcpy(part.to, slots_[slot].own + ended.bytes(part.offset), ended.bytes(part.elements));
    }

  private:
    // True if a lent tensor passes the reducer's own tensor. In place it does unless its bucket has no other
    // elements.
    bool is_copied(std::size_t i) const noexcept {
        placed_tensor const& of = plan_.tensors[i];
        return path_ == memory_path::copied ||
               (path_ == memory_path::in_place && plan_.buckets[of.bucket].elements != of.elements);
    }
    static void fill(std::byte* to, segment const& part, std::size_t bytes) noexcept {
        if (part.copying == copy_mode::streamed)
            kernel::stream_copy(to, part.from, bytes);
        else
            std::memcpy(to, part.from, bytes);
    }

    struct slot_place {
        std::byte* own = nullptr;
        int home = -1;       // local rank whose region it lies in
        bool filled = false; // by the exchange that left it to this rank
    };

    std::byte* const memory_;
    plan const& plan_;
    std::size_t const element_bytes_;
    memory_path const path_; // of external tensors
    fixed_array<std::byte*> external_;
    append_buffer<std::size_t> listed_; // whose external_ is not nullptr
    slot_place slots_[memory_map::bounce_slots];
};

/// The tensor store of elements under an intra_node policy: the policy's own, if its tensors lie on devices.
template <class Element, class IntraNode> struct tensor_store { using type = host_tensors; };
template <class Element, class IntraNode>
requires(IntraNode::facts.device_memory) struct tensor_store<Element, IntraNode> {
    using type = typename IntraNode::template tensor_store<Element>;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_HOST_TENSORS_HPP

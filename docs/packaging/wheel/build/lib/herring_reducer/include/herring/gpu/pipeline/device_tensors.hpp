// herring: tensors in device memory, followed by bounce slots.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_DEVICE_TENSORS_HPP
#define HERRING_GPU_PIPELINE_DEVICE_TENSORS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/control/world.hpp"
#include "herring/engine/execution.hpp"
#include "herring/gpu/runtime.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"
#include "herring/step/bounce_buffers.hpp"
#include "herring/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::gpu {

/// The tensor store of the GPU pipelines; step/host_tensors.hpp has the store for host memory. Every copy is
/// enqueued on a stream; the host waits for none.
///
/// Lifetime: refers to the node, the plan and the memory map. Keeps the caller's stream until the call that
///           ends the step.
/// Errors:   device errors are kept: `failed()`.
template <class Element, class Node> class device_tensors {
  public:
    static constexpr bool on_device = true;
    using pointer = Element*;
    using stream = typename Node::stream_handle;
    static constexpr char const* wait_call = "wait(stream)";

    static std::size_t make_node(herring::detail::manual_lifetime<Node>& node, world& ranks,
                                 plan const& step_plan, memory_map const& map, std::size_t tensors,
                                 bool parts_on_device) {
        node.emplace(ranks, map.region_bytes,
                     device_needs{.tensor_bytes = map.device_bytes,
                                  .bucket_bytes = map.device_bucket,
                                  .part_ratio = step_plan.parts.element_bytes / sizeof(Element),
                                  .executions = map.executions,
                                  .loads = map.device_loads,
                                  .separate_results = map.bounce_slots,
                                  .tensors = tensors,
                                  .nodes = step_plan.nodes,
                                  .parts_on_device = parts_on_device});
        return node->memory_bytes();
    }

    device_tensors(Node& node, plan const& step_plan, memory_map const& map, int)
        : node_(node), plan_(step_plan), map_(map), external_(step_plan.tensors.size()),
          listed_(step_plan.tensors.size()), copies_(step_plan.tensors.size()) {}

    Element* tensor(std::size_t i) const noexcept { return memory() + plan_.tensors[i].offset; }

    char const* check_memory(Element const* of) const noexcept {
        if (reinterpret_cast<std::uintptr_t>(of) % alignof(Element) != 0)
            return "it is not aligned to its elements";
        return node_.device().check_tensor(of);
    }
    char const* check_stream(stream given) const noexcept {
        if (char const* const wrong = node_.device().check_stream(given)) return wrong;
        if (unrecorded_ && !(given == stream_) && node_.device().check_stream(stream_) != nullptr)
            return "the stream of an earlier tensor cannot be recorded any more: let no capture of it begin "
                   "before `wait`";
        return nullptr;
    }
    /// Orders later `gather`s after the present contents of the stream. The node records the stream once per
    /// bucket, and when the stream changes.
    void order_after(stream given) noexcept {
        if (unrecorded_ && !(given == stream_)) node_.after(stream_);
        stream_ = given;
        unrecorded_ = true;
        if (node_.device().per_thread(given))
            record_stream(); // in another thread the handle means another stream
    }
    failure const* failed() const noexcept { return node_.failed(); }

    // ---- external tensors of the current step -------------------------------------------------------------

    void lend(std::size_t i, Element* at) noexcept {
        external_[i] = at;
        listed_.push(i);
    }
    bool any_lent() const noexcept { return !listed_.empty(); }
    bool is_lent(std::size_t i) const noexcept { return external_[i] != nullptr; }
    Element* origin(std::size_t i, std::size_t from) const noexcept {
        return (is_lent(i) ? external_[i] : tensor(i)) + from;
    }

    /// Loads bucket `label` as execution `number`. Returns the bucket's address on the host.
    std::byte* gather(bucket const& of, std::size_t label, std::uint64_t number) noexcept {
        record_stream();
        node_.pack(static_cast<std::uint32_t>(label), of.first_tensor,
                   copies(of.first_tensor, of.first_tensor + of.tensors, false));
        return node_.load(number, static_cast<std::uint32_t>(label), of.offset * sizeof(Element),
                          of.elements * sizeof(Element), of.tensors == 0);
    }
    /// Copies results to the caller's tensors, in the stream, after the first `released` executions.
    void scatter(stream read_in, std::uint64_t released) noexcept {
        node_.results(read_in, released);
        node_.template inspect<Element>(read_in, plan_.elements);
        // In layout order: the order of calls may change from step to step, and with it the list.
        node_.unpack(read_in, copies(0, plan_.tensors.size(), true));
        node_.taken(read_in);
        for (std::size_t const i : listed_) external_[i] = nullptr;
        listed_.clear();
    }

    // ---- bounce slots -------------------------------------------------------------------------------------

    herring::detail::piece_place copy_in(std::size_t slot, herring::detail::bounced_piece const& piece,
                                         std::uint64_t number) noexcept {
        record_stream();
        // Only an all_reduce comes here: one segment, in place.
        auto* at = const_cast<std::byte*>(piece.segments[0].from);
        std::size_t const elements = piece.elements;
        lent_[slot] = node_.lend(slot, at);
        if (!lent_[slot]) {
            node_.copy_in({slot_of(slot), at, elements * sizeof(Element)});
            at = reinterpret_cast<std::byte*>(slot_of(slot));
        }
        return {.own = node_.load_piece(number, slot, at,
                                        map_.bounce_offset + slot * map_.slot_elements * sizeof(Element),
                                        elements * sizeof(Element))};
    }
    void copy_out(std::size_t slot, std::span<herring::detail::segment const> segments, execution const&,
                  std::uint64_t released) noexcept {
        node_.results(stream_, released);
        if (lent_[slot]) return;
        node_.copy_out(stream_, {segments[0].to, slot_of(slot), segments[0].elements * sizeof(Element)});
        node_.taken(stream_); // the next piece is copied into this slot only after that
    }
    /// Has every rank close the allocation at this address. Collective.
    void forget(Element* at) { node_.forget(reinterpret_cast<std::byte*>(at)); }

  private:
    Element* memory() const noexcept { return reinterpret_cast<Element*>(node_.tensors()); }
    Element* slot_of(std::size_t slot) const noexcept {
        return memory() + map_.bounce_offset / sizeof(Element) + slot * map_.slot_elements;
    }
    void record_stream() noexcept {
        if (std::exchange(unrecorded_, false)) node_.after(stream_);
    }
    // Returns the copies between callers' tensors [first, end) and the reducer's. `back`: to the caller's.
    std::span<copy_item const> copies(std::size_t first, std::size_t end, bool back) noexcept {
        std::size_t count = 0;
        for (std::size_t i = first; i < end; ++i) {
            if (!is_lent(i)) continue;
            void* const own = tensor(i);
            void* const callers = external_[i];
            copies_[count++] = {back ? callers : own, back ? own : callers,
                                plan_.tensors[i].elements * sizeof(Element)};
        }
        return {copies_.data(), count};
    }

    Node& node_;
    plan const& plan_;
    memory_map const& map_;
    herring::detail::fixed_array<Element*> external_;
    herring::detail::append_buffer<std::size_t> listed_; // tensors with an entry in external_
    herring::detail::fixed_array<copy_item> copies_;
    stream stream_{};         // the caller's: of ready tensors whose bucket has not left, or of a buffer
    bool unrecorded_ = false; // the node has not recorded the stream yet
    bool lent_[memory_map::bounce_slots] = {}; // the piece in this slot lies in the caller's memory
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_DEVICE_TENSORS_HPP

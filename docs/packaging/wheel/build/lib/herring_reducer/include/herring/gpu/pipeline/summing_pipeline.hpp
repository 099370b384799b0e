// herring: the base of the pipelines whose devices sum: the places of a rank's sums and results in its slots.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_SUMMING_PIPELINE_HPP
#define HERRING_GPU_PIPELINE_SUMMING_PIPELINE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/engine/execution.hpp"
#include "herring/gpu/pipeline/pipeline.hpp"
#include "herring/gpu/runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

/// The base of `nvlink` and `nccl`. With several nodes a slot has room for a bucket's results and, if sums
/// travel in another type than results, for its sums behind them. With one node there are no slots.
///
/// Params:   those of `pipeline`.
template <class Runtime, bool Inspects, bool Graphs>
class summing_pipeline : public pipeline<Runtime, Inspects, Graphs> {
    using base = pipeline<Runtime, Inspects, Graphs>;

  public:
    /// True: devices read tensors where they lie.
    bool loaded(std::uint64_t, std::uint64_t) noexcept { return true; }

    /// Returns the address of this rank's sum for the address `own` of a result.
    std::byte* part(std::byte* own) noexcept {
        if (alone_ || part_ratio_ == 1) return own; // one node has no slots
        std::size_t const from_first = static_cast<std::size_t>(own - region_.slot(0));
        std::size_t const inside = from_first % region_.slot_stride();
        return own - inside + bucket_bytes_ + inside * part_ratio_;
    }

    /// Returns the device memory that the transport takes in place of host memory, for chunks that another
    /// node serves. It mirrors the slots. `on_device` returns its bytes for bytes of a slot.
    std::span<std::byte> parts() const noexcept {
        return {parts_.data(), parts_.data() == nullptr ? 0 : region_.slots() * region_.slot_stride()};
    }
    template <class Byte> std::span<Byte> on_device(std::span<Byte> on_host) noexcept {
        return {parts_.data() + (on_host.data() - region_.slot(0)), on_host.size()};
    }

  protected:
    using base::region_;
    using typename base::event;

    /// `bytes` and `shared`: as for `pipeline`. `slots`: number of slots with several nodes.
    HERRING_SETUP summing_pipeline(world& ranks, device_needs const& needs, std::size_t bytes,
                                   std::size_t slots, bool shared)
        : base(ranks, needs, bytes, needs.nodes == 1 ? 0 : slot_bytes(needs),
               needs.nodes == 1 || needs.bucket_bytes == 0 ? 0 : slots, shared),
          ranks_(ranks), device_(base::device()), local_(ranks.local_rank()), size_(ranks.local_size()),
          alone_(needs.nodes == 1), part_ratio_(needs.part_ratio),
          bucket_bytes_(whole_lines(needs.bucket_bytes)),
          parts_(device_, needs.parts_on_device ? region_.slots() * region_.slot_stride() : 0) {
        for (std::size_t i = 0; i < region_.slots(); ++i) summed_.emplace_back(device_, false);
    }
    ~summing_pipeline() = default;

    static std::size_t whole_lines(std::size_t bytes) noexcept {
        return herring::detail::round_up(bytes, 64);
    }

    /// The event that is recorded when this rank's sums of execution e lie in its slot.
    event& summed_event(std::uint64_t e) noexcept { return summed_[e % summed_.size()]; }
    /// True if work that is enqueued now may write the slot of execution e.
    bool is_free(std::uint64_t e) const noexcept { return alone_ || e < stored_count_ + region_.slots(); }
    /// Returns the slot of execution e as the device sees it. The slot lies on the device if the transport
    /// takes device memory and another node serves this shard; the host sums chunks that this node serves.
    std::byte* seen_slot(std::uint64_t e, execution const& x, shard const& of) const noexcept {
        std::byte* const on_host = region_.slot(e);
        if (parts_.data() != nullptr && x.path == route::two_hop && of.server.value != ranks_.node())
            return parts_.data() + (on_host - region_.slot(0));
        return region_.on_device(on_host);
    }
    /// Returns the address of the sums in a slot.
    std::byte* part_in(std::byte* slot) const noexcept {
        return part_ratio_ == 1 ? slot : slot + bucket_bytes_;
    }

    world& ranks_;
    Runtime& device_;
    int const local_, size_;
    bool const alone_; // one node: results do not pass through the host
    std::size_t const part_ratio_;
    std::size_t const bucket_bytes_;
    typename Runtime::memory parts_; // mirror of the slots on the device
    std::uint64_t launched_ = 0;     // executions whose sums are enqueued
    std::uint64_t stored_count_ = 0; // executions whose results are enqueued

  private:
    static std::size_t slot_bytes(device_needs const& needs) noexcept {
        return whole_lines(needs.bucket_bytes) * (1 + (needs.part_ratio == 1 ? 0 : needs.part_ratio));
    }

    std::vector<event> summed_; // execution e uses event e mod slots
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_SUMMING_PIPELINE_HPP

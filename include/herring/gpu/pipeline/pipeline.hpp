// herring: what the pipelines of `nvlink` and `pcie_staging` have in common: a rank's tensors on its device, and how they come in.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_PIPELINE_HPP
#define HERRING_GPU_PIPELINE_PIPELINE_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/device_span.hpp"
#include "herring/gpu/pipeline/copy_lists.hpp"
#include "herring/gpu/pipeline/graph_cache.hpp"
#include "herring/gpu/pipeline/region.hpp"
#include "herring/gpu/runtime.hpp"
#include "herring/intra_node/intra_node.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

/// The base of both pipelines: the device, tensors, packing, the node's flags and slots, what is loaded, and the inspection
/// of results. What happens to a bucket once it is loaded is the pipelines' own.
///
/// Inspects: `inspect` looks at results. Graphs: work that is the same in every step is captured, and replayed.
/// Threads:  `after`, `pack`, `load`, `unpack`, `taken` the caller's; all else the one that polls.
template <class Runtime, bool Inspects, bool Graphs> class pipeline {
  public:
    using axis = axes::intra_node;
    using runtime = Runtime;
    using stream_handle = typename Runtime::stream_handle;

    pipeline(pipeline const&) = delete;
    pipeline& operator=(pipeline const&) = delete;

    // ---- the node, as for ranks without devices --------------------------------------------------------------------

    std::byte* memory() noexcept { return region_.flags().memory(); }
    std::byte* peer(int local, std::byte* own) noexcept { return region_.flags().peer(local, own); }
    void arrive(std::uint64_t e) noexcept { region_.flags().arrive(e); }
    int first_not_arrived(std::uint64_t e) noexcept { return region_.flags().first_not_arrived(e); }
    void finish(std::uint64_t e, bool notify) noexcept { region_.flags().finish(e, notify); }
    int first_not_finished(std::uint64_t e) noexcept { return region_.flags().first_not_finished(e); }
    bool has_left(int local) noexcept { return region_.flags().has_left(local); }
    std::uint32_t listen() noexcept { return region_.flags().listen(); }
    void sleep(std::uint32_t heard, time_point until) noexcept { region_.flags().sleep(heard, until); }
    void wake() noexcept { region_.flags().wake(); }

    // ---- the device ------------------------------------------------------------------------------------------------

    /// Of this rank's host memory, from `memory()` on.
    std::size_t memory_bytes() const noexcept { return region_.bytes(); }
    runtime& device() noexcept { return device_; }
    /// This rank's tensors.
    std::byte* tensors() const noexcept { return tensors_.data(); }
    /// The first failure of the device, or nullptr.
    failure const* failed() const noexcept { return device_.failed(); }
    time_point nap(time_point until) noexcept { return region_.nap(until); }

    /// What is loaded from now on comes after what is in this stream now.
    void after(stream_handle stream) noexcept {
        device_.record(caller_event_, stream);
        device_.wait(pack_stream_->handle(), caller_event_);
    }

    /// Copies into this rank's tensors, for this bucket, which come after what `after` was told of. `at`: the number of the
    /// first tensor of the bucket.
    void pack(std::uint32_t bucket, std::size_t at, std::span<copy_item const> items) noexcept {
        if (items.empty()) return;
        stream_handle const queue = pack_stream_->handle();
        auto const [list, same] = packing_.prepare(bucket, at, items);
        repeat(packs_, 2 * std::size_t{bucket} + list, queue, same,
               [&] { packing_.put(queue, bucket, at, items); });
        packing_.used(queue, bucket);
    }
    /// What is in this stream now is all that is done with results there: what is loaded from now on comes after it.
    void taken(stream_handle stream) noexcept {
        device_.record(consumed_event_, stream);
        device_.wait(pack_stream_->handle(), consumed_event_);
    }
    /// Copies back, after `results`, in the caller's stream.
    void unpack(stream_handle stream, std::span<copy_item const> items) noexcept {
        if (items.empty()) return;
        unpacking_.prepare(0, 0, items);
        unpacking_.put(stream, 0, 0, items);
        unpacking_.used(stream, 0);
    }
    /// One copy within the device, before what is loaded next or in the caller's stream.
    void copy_in(copy_item const& what) noexcept { device_.copy(pack_stream_->handle(), what); }
    void copy_out(stream_handle stream, copy_item const& what) noexcept { device_.copy(stream, what); }

    /// Execution e, the next one, is this range of the tensors. `with_last`: it came in with the one before it. Returns where
    /// it, or its result, will lie on the host.
    std::byte* load(std::uint64_t e, std::uint32_t bucket, std::size_t offset, std::size_t bytes,
                    bool with_last = false) noexcept {
        loads_ += with_last ? 0 : 1;
        jobs_[e % jobs_.size()] = {offset, bytes, bucket, !with_last, loads_ % packed_events_.size()};
        if (!with_last) device_.record(packed_event(e), pack_stream_->handle());
        return region_.slot(e);
    }

    /// After `results`: looks at the first `elements` of this rank's tensors, in the stream, if the tuning says so.
    template <class Element> void inspect(stream_handle stream, std::size_t elements) noexcept {
        if constexpr (Inspects)
            device_.inspect(stream, reinterpret_cast<Element const*>(tensors()), elements, *counter_);
    }
    /// How many results were infinite or NaN, in all steps whose streams have got past `wait`. 0 without `inspect`.
    std::uint64_t not_finite() const noexcept { return counter_ ? counter_->value().not_finite : 0; }
    /// The sum of the squares of all results of the last such step: the norm's square. The same bits on every rank of the same
    /// kind of device, and in every run. 0 without `inspect`.
    double squared_norm() const noexcept { return counter_ ? counter_->value().squares : 0; }
    /// How often a graph was launched in place of its operations. 0 without `graphs`.
    std::uint64_t replays() const noexcept { return replays_.load(std::memory_order_relaxed); }

  protected:
    using event = typename Runtime::event;
    using graph_caches = herring::detail::fixed_array<graph_cache<Runtime>>;
    struct job {
        std::size_t offset = 0;
        std::size_t bytes = 0;
        std::uint32_t bucket = 0;
        bool first = false; // of those that came in together: it waits for them, and the others are behind it
        std::size_t load = 0; // number of their event
    };

    /// `bytes` of the region for others, then slots. `shared`: other ranks wait for events of this one's.
    HERRING_SETUP pipeline(world& ranks, device_needs const& needs, std::size_t bytes, std::size_t slot_bytes,
                           std::size_t slots, bool shared)
        : device_(ranks), tensors_(device_, needs.tensor_bytes),
          packing_(device_, needs.tensors, needs.executions), unpacking_(device_, needs.tensors, 1),
          region_(ranks, device_, bytes, slot_bytes, slots), jobs_(needs.executions),
          caller_event_(device_, false), consumed_event_(device_, false),
          packs_(Graphs ? 2 * needs.executions : 0), pack_stream_(std::in_place, device_) {
        for (std::size_t i = 0; i < needs.loads; ++i) packed_events_.emplace_back(device_, shared);
        for (std::size_t i = 0; i < std::max(needs.separate_results, slots); ++i)
            reduced_events_.emplace_back(device_, shared);
        if constexpr (Inspects) counter_.emplace(device_);
    }
    ~pipeline() = default;

    job const& job_of(std::uint64_t e) const noexcept { return jobs_[e % jobs_.size()]; }
    /// When execution e is packed.
    event& packed_event(std::uint64_t e) noexcept { return packed_events_[job_of(e).load]; }
    std::vector<event>& packed_events() noexcept { return packed_events_; }
    /// When this rank has done all that it does of execution e, and of those before. Kept until e + `separate_results` and
    /// e + slots are.
    event& reduced_event(std::uint64_t e) noexcept { return reduced_events_[e % reduced_events_.size()]; }
    std::vector<event>& reduced_events() noexcept { return reduced_events_; }

    /// As many as there are buckets and slots that one may lie in.
    graph_caches for_slots() const {
        return graph_caches(Graphs ? jobs_.size() * std::max<std::size_t>(region_.slots(), 1) : 0);
    }
    std::size_t place_of(std::uint64_t e) const noexcept {
        std::size_t const slots = std::max<std::size_t>(region_.slots(), 1);
        return job_of(e).bucket * slots + e % slots;
    }

    /// Puts what `enqueue()` puts into `queue` there; by a graph if it did so before. `number`: of the work; none of ours: what
    /// does not come again.
    template <class Enqueue>
    void repeat([[maybe_unused]] graph_caches& of, [[maybe_unused]] std::size_t number,
                [[maybe_unused]] stream_handle queue, [[maybe_unused]] bool same,
                Enqueue const& enqueue) noexcept {
        if constexpr (Graphs)
            if (number < of.size()) {
                if (of[number].run(device_, queue, same, enqueue))
                    replays_.fetch_add(1, std::memory_order_relaxed);
                return;
            }
        enqueue();
    }

  private:
    // In this order: queues end before what they use goes.
    Runtime device_;
    typename Runtime::memory tensors_;
    copy_lists<Runtime> packing_, unpacking_; // of buckets; of a step
    std::optional<typename Runtime::counter> counter_;

  protected:
    region<Runtime> region_;

    /// Ends the queue that brings tensors in. For a pipeline whose memory others use.
    void end_loading() noexcept { pack_stream_.reset(); }
    /// The tensors are not freed any more.
    void leave_tensors() noexcept { tensors_.leave(); }
    typename Runtime::memory const& owned_tensors() const noexcept { return tensors_; }

  private:
    herring::detail::fixed_array<job> jobs_; // of execution e: number e mod executions
    std::vector<event> packed_events_, reduced_events_;
    std::size_t loads_ = 0;
    event caller_event_, consumed_event_;
    graph_caches packs_; // of a bucket's packing: by its lists
    std::atomic<std::uint64_t> replays_{0};
    std::optional<typename Runtime::stream> pack_stream_;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_PIPELINE_HPP

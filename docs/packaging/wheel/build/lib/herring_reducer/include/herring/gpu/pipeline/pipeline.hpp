// herring: the base of the GPU pipelines: a rank's device, tensors, slots and streams, and replayed work.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_PIPELINE_HPP
#define HERRING_GPU_PIPELINE_PIPELINE_HPP

#include "herring/base/config.hpp"
#include "herring/base/device_span.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/device_memory.hpp"
#include "herring/gpu/pipeline/copy_lists.hpp"
#include "herring/gpu/pipeline/region.hpp"
#include "herring/gpu/runtime.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/trace/trace.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

/// One piece of work that is the same in every step. The first time it is enqueued, because libraries may not
/// be initialised during a capture; the second time it is captured in a graph, which is replayed from then
/// on.
///
/// Cost:     one launch per replay, whatever the graph holds; some KiB of the driver's device memory per
///           kernel.
/// Lifetime: the streams that replayed the graph end before the graph does.
/// Errors:   those of the runtime: `failed()` names what cannot be captured.
template <class Runtime> class graph_cache {
  public:
    /// Enqueues on `in` the work that `enqueue()` enqueues. `same`: the work is the same as the last time.
    /// Returns true if this was a replay.
    template <class Enqueue>
    bool run(Runtime& device, typename Runtime::stream_handle in, bool same,
             Enqueue const& enqueue) noexcept {
        if (!same || state_ == never) {
            state_ = seen;
            enqueue();
            return false;
        }
        if (state_ == seen) {
            device.capture(in);
            enqueue();
            if (!device.captured(in, graph_)) return false;
            state_ = captured;
        }
        device.replay(in, graph_);
        return true;
    }

  private:
    enum { never, seen, captured } state_ = never;
    typename Runtime::graph graph_;
};

/// The base of the pipelines: the device, tensors, packing, the node's flags and slots, loads, and the
/// inspection of results. The derived pipeline sums a bucket once it is loaded.
///
/// Params:   `Inspects`: `inspect` reads results. `Graphs`: work that is the same in every step is replayed.
/// Threads:  `after`, `pack`, `load`, `unpack`, `taken`: the caller's; all others: the thread that polls.
template <class Runtime, bool Inspects, bool Graphs> class pipeline {
  public:
    using axis = axes::intra_node;
    using runtime = Runtime;
    using stream_handle = typename Runtime::stream_handle;

    pipeline(pipeline const&) = delete;
    pipeline& operator=(pipeline const&) = delete;

    // ---- the node, as in shared_memory --------------------------------------------------------------------

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

    // ---- the device ---------------------------------------------------------------------------------------

    /// Bytes of this rank's host memory, which begins at `memory()`.
    std::size_t memory_bytes() const noexcept { return region_.bytes(); }
    runtime& device() noexcept { return device_; }
    /// This rank's tensors.
    std::byte* tensors() const noexcept { return tensors_.data(); }
    /// The first failure of the device, or nullptr.
    failure const* failed() const noexcept { return device_.failed(); }
    time_point nap(time_point until) noexcept { return region_.nap(until); }

    /// Orders later loads after the present contents of the stream.
    void after(stream_handle stream) noexcept {
        device_.record(caller_event_, stream);
        device_.wait(pack_stream_->handle(), caller_event_);
    }

    /// Enqueues copies into this rank's tensors, for this bucket, after the streams that were given to
    /// `after`. `at`: index of the bucket's first tensor.
    void pack(std::uint32_t bucket, std::size_t at, std::span<copy_item const> items) noexcept {
        if (items.empty()) return;
        stream_handle const queue = pack_stream_->handle();
        auto const [list, same] = packing_.prepare(bucket, at, items);
        repeat(packs_, 2 * std::size_t{bucket} + list, queue, same,
               [&] { packing_.put(queue, bucket, at, items); });
        packing_.used(queue, bucket);
    }
    /// Orders later loads after the present contents of the stream, which read results in a bounce slot last.
    void taken(stream_handle stream) noexcept {
        device_.record(consumed_event_, stream);
        device_.wait(pack_stream_->handle(), consumed_event_);
    }
    /// Enqueues the copies to the caller's tensors on the caller's stream, after `results`.
    void unpack(stream_handle stream, std::span<copy_item const> items) noexcept {
        if (items.empty()) return;
        unpacking_.prepare(0, 0, items);
        unpacking_.put(stream, 0, 0, items);
        unpacking_.used(stream, 0);
    }
    /// Enqueues one copy within the device: before the next load, or in the caller's stream.
    void copy_in(copy_item const& what) noexcept { device_.copy(pack_stream_->handle(), what); }
    void copy_out(stream_handle stream, copy_item const& what) noexcept { device_.copy(stream, what); }

    /// Loads this range of the tensors as execution e, the next one. `with_last`: the range belongs to the
    /// previous execution's load. Returns the address on the host of the elements, and later of the result.
    std::byte* load(std::uint64_t e, std::uint32_t bucket, std::size_t offset, std::size_t bytes,
                    bool with_last = false) noexcept {
        return load({tensors() + offset, offset, bytes, bucket, !with_last}, e);
    }
    /// Loads the piece of a call in bounce slot `slot`, which is at `offset`, as execution e. `at`: address
    /// of the piece's elements.
    std::byte* load_piece(std::uint64_t e, std::size_t slot, std::byte* at, std::size_t offset,
                          std::size_t bytes) noexcept {
        return load({at, offset, bytes, no_bucket, true, static_cast<int>(slot)}, e);
    }

    /// Enqueues the inspection of the first `elements` of this rank's tensors, after `results`, if tuned so.
    template <class Element> void inspect(stream_handle stream, std::size_t elements) noexcept {
        if constexpr (Inspects)
            device_.inspect(stream, reinterpret_cast<Element const*>(tensors()), elements, *counter_);
    }
    /// Returns the number of results that were infinite or NaN, in all steps whose streams have passed
    /// `wait`. 0 without `inspect`.
    std::uint64_t not_finite() const noexcept { return counter_ ? counter_->value().not_finite : 0; }
    /// Returns the squared norm of the results of the last such step: the same bits on every rank with the
    /// same kind of device, and in every run. 0 without `inspect`.
    double squared_norm() const noexcept { return counter_ ? counter_->value().squares : 0; }
    /// Returns the number of graph launches. 0 without `graphs`.
    std::uint64_t replays() const noexcept { return replays_.load(std::memory_order_relaxed); }

  protected:
    using event = typename Runtime::event;
    using graph_caches = herring::detail::fixed_array<graph_cache<Runtime>>;
    struct job {
        std::byte* at = nullptr; // this rank's elements
        std::size_t offset = 0;  // of the range in every rank's device memory
        std::size_t bytes = 0;
        std::uint32_t bucket = 0;
        bool first = false;   // the first execution of a load: waits for the load, the others follow
        int slot = -1;        // bounce slot of a call's piece, for which a rank may lend memory; −1: none
        std::size_t load = 0; // index of the load's event
    };

    /// `bytes`: of the region before its slots, for local ranks. `shared`: other ranks wait for this rank's
    /// events.
    HERRING_SETUP pipeline(world& ranks, device_needs const& needs, std::size_t bytes, std::size_t slot_bytes,
                           std::size_t slots, bool shared)
        : device_(ranks), tensor_bytes_(needs.tensor_bytes), tensors_(device_, needs.tensor_bytes),
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
    /// The event that is recorded when execution e is packed.
    event& packed_event(std::uint64_t e) noexcept { return packed_events_[job_of(e).load]; }
    std::vector<event>& packed_events() noexcept { return packed_events_; }
    /// The event that is recorded when this rank's work for execution e and all before it is done. It is
    /// recorded again for execution e + max(`separate_results`, slots) at the earliest.
    event& reduced_event(std::uint64_t e) noexcept { return reduced_events_[e % reduced_events_.size()]; }
    std::vector<event>& reduced_events() noexcept { return reduced_events_; }

    /// Returns room for one graph per bucket and slot.
    graph_caches for_slots() const {
        return graph_caches(Graphs ? jobs_.size() * std::max<std::size_t>(region_.slots(), 1) : 0);
    }
    std::size_t place_of(std::uint64_t e) const noexcept {
        std::size_t const slots = std::max<std::size_t>(region_.slots(), 1);
        return job_of(e).bucket * slots + e % slots;
    }

    /// Enqueues on `queue` the work that `enqueue()` enqueues, by a graph if it is repeated. `number`: index
    /// of the work's graph; `of.size()` or more for work that is not repeated.
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
    std::byte* load(job what, std::uint64_t e) noexcept {
        loads_ += what.first ? 1 : 0;
        what.load = loads_ % packed_events_.size();
        jobs_[e % jobs_.size()] = what;
        if (what.first) device_.record(packed_event(e), pack_stream_->handle());
        return region_.slot(e);
    }

    // In this order: queues end before the memory and events that they use.
    Runtime device_;
    std::size_t tensor_bytes_;
    typename Runtime::memory tensors_;
    copy_lists<Runtime> packing_, unpacking_; // packing_: one part per bucket; unpacking_: one part
    std::optional<typename Runtime::counter> counter_;

  protected:
    region<Runtime> region_;

    /// Ends the queue of loads: for a pipeline whose memory other ranks access.
    void end_loading() noexcept { pack_stream_.reset(); }
    /// Leaks the tensors until the process ends.
    void leave_tensors() noexcept { tensors_.leave(); }
    typename Runtime::memory const& owned_tensors() const noexcept { return tensors_; }
    std::size_t tensor_bytes() const noexcept { return tensor_bytes_; }

  private:
    herring::detail::fixed_array<job> jobs_; // execution e has number e mod executions
    std::vector<event> packed_events_, reduced_events_;
    std::size_t loads_ = 0;
    event caller_event_, consumed_event_;
    graph_caches packs_; // of packing: one graph per bucket and list
    std::atomic<std::uint64_t> replays_{0};
    std::optional<typename Runtime::stream> pack_stream_;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_PIPELINE_HPP

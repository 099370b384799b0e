// herring: the pipeline of `intra_node::pcie_staging`: device to host, the node's sum there, and back.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_PCIE_STAGING_HPP
#define HERRING_GPU_PIPELINE_PCIE_STAGING_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/gpu/pipeline/device_tensors.hpp"
#include "herring/gpu/pipeline/pipeline.hpp"
#include "herring/gpu/pipeline/summing_threads.hpp"
#include "herring/gpu/runtime.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/model/tunings.hpp"
#include "herring/policy/names.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

/// Sums tensors of devices on the host: buckets are copied to pinned memory that the node shares, summed
/// there, and copied back. Needs no peer access between devices.
///
/// Shape:    L local ranks → 1 contributor, as with shared_memory, and the same bits.
/// Cost:     a bucket's bytes over PCIe in each direction. Pinned memory: `slot_count` times the largest
///           bucket, 32 MiB where buckets are cut to 4 MiB.
/// Order:    execution e uses slot e mod slots. The copy in waits, on the device, for the tensors (an event
///           of the caller's stream) and for the copy out of e − slots, which is enqueued already. A rank
///           arrives at e when the host sees that its copy in is done; the copy out follows when all local
///           ranks have finished e. On one node `sum_threads` threads sum this rank's chunks in between, and
///           the copies of other executions go on.
/// Blocks:   only the destructor waits: up to 30 s, or 2 s after a failure, for the work in this rank's
///           queues and so for the caller's streams on which that work depends. Memory still in use then is
///           leaked until the process ends, with a line on stderr.
/// Threads:  `after`, `load` and `results`: the caller's thread; all others: the thread that polls. Summing
///           threads touch slots only.
/// Errors:   device errors are kept, `failed()`; they end the engine.
template <class Runtime, staging_tuning Tuning>
class basic_pcie_staging : public pipeline<Runtime, Tuning.inspect, Tuning.graphs> {
    using base = pipeline<Runtime, Tuning.inspect, Tuning.graphs>;

  public:
    using typename base::stream_handle;
    template <class Element> using tensor_store = device_tensors<Element, basic_pcie_staging>;
    static constexpr char const* name = "pcie_staging";
    /// The engine sums local ranks' parts; a transport for host memory is enough.
    static constexpr intra_node_facts facts{.device_memory = true,
                                            .host_staging = true,
                                            .sums_in_threads = Tuning.sum_threads != 0,
                                            .tuning = {.local_chunk_bytes = Tuning.local_chunk_bytes,
                                                       .mailbox_bytes = Tuning.mailbox_bytes,
                                                       .split_bytes = Tuning.split_bytes,
                                                       .piece_bytes = Tuning.piece_bytes}};
    static_assert(Tuning.slot_count >= 2 && Tuning.piece_bytes > 0);

    basic_pcie_staging(world& ranks, std::size_t bytes) : basic_pcie_staging(ranks, bytes, device_needs{}) {}
    basic_pcie_staging(world& ranks, std::size_t bytes, device_needs const& needs)
        : base(ranks, needs, bytes, needs.bucket_bytes, needs.bucket_bytes > 0 ? Tuning.slot_count : 0,
               false),
          device_(base::device()), copies_(base::for_slots()), in_(device_), out_(device_),
          sums_(ranks, region_.flags(), threads_for(ranks, needs), Tuning.slot_count) {
        for (std::size_t i = 0; i < Tuning.slot_count; ++i) loaded_.emplace_back(device_, false);
    }

    /// Pieces of calls are copied to the host and back from any memory that the device reaches.
    static constexpr bool lend(std::size_t, std::byte*) noexcept { return true; }
    static void forget(std::byte*) noexcept {}

    /// Starts the summing threads, for executions of this rule and type. At construction.
    template <class Update, class Element> HERRING_SETUP void start_sums() {
        sums_.template start<Update, Element>();
    }

    /// True if execution e has arrived on the host. Called in order of e. Starts the copies in of the
    /// executions below `submitted`.
    bool loaded(std::uint64_t e, std::uint64_t submitted) noexcept {
        for (; started_ < submitted && started_ < stored_count_ + Tuning.slot_count; ++started_)
            start(started_);
        bool const here = e < started_ && device_.done(loaded_[e % Tuning.slot_count]);
        region_.busy = !here;
        if (here) region_.awake();
        return here;
    }

    /// True if the summing threads are done with execution e: they have summed it, and `device_sum` is set,
    /// or the engine sums it. Called in order of e. Hands over executions below `arrived`: this rank has
    /// arrived.
    template <class At> bool summed(std::uint64_t e, std::uint64_t arrived, At const& at) noexcept {
        for (; handed_ < arrived && base::first_not_arrived(handed_) < 0; ++handed_)
            if (sums_.take(at(handed_))) sums_.hand_over(at(handed_));
        execution& x = at(e);
        if (!sums_.take(x)) return true;
        if (!sums_.next_is_summed()) return false;
        x.device_sum = x.own;
        return true;
    }
    /// True if the threads have execution e, the next argument of `summed`.
    bool is_summing(std::uint64_t e) const noexcept { return e < handed_; }

    /// Copies the result of execution e back; all local ranks have finished e. Called in order of e.
    void store(std::uint64_t e) noexcept {
        auto const& what = base::job_of(e);
        device_.to_device(out_.handle(), what.at, region_.slot(e), what.bytes);
        device_.record(base::reduced_event(e), out_.handle());
        stored_count_ = e + 1;
    }

    /// For a trace: the number of copies to the host that are enqueued; true if the copy out of an execution
    /// is done, or the copy out of a later one that uses the same event.
    std::uint64_t copies_begun() const noexcept { return started_; }
    bool stored(std::uint64_t e) noexcept { return device_.done(base::reduced_event(e)); }

    /// Orders later work in this stream after the results of the first `count` executions; they are released.
    void results(stream_handle stream, std::uint64_t count) noexcept {
        if (count > 0) device_.wait(stream, base::reduced_event(count - 1));
    }

  private:
    using base::region_;
    using typename base::event;

    HERRING_SETUP static std::size_t threads_for(world& ranks, device_needs const& needs) {
        static_assert(Tuning.sum_threads >= by_cores && Tuning.sum_threads <= 64,
                      "[HRG-I09] pcie_staging: needs a 'sum_threads' of gpu::by_cores or from 0 to 64; a "
                      "common slip is "
                      "to count those of all ranks, it is of each; leave it out");
        if (needs.nodes > 1 || needs.bucket_bytes == 0) return 0;
        return Tuning.sum_threads == by_cores ? summing_threads::by_cores(ranks)
                                              : static_cast<std::size_t>(Tuning.sum_threads);
    }

    void start(std::uint64_t e) noexcept {
        stream_handle const queue = in_.handle();
        if (base::job_of(e).first) device_.wait(queue, base::packed_event(e));
        if (e >= Tuning.slot_count) device_.wait(queue, base::reduced_event(e - Tuning.slot_count));
        auto const& what = base::job_of(e);
        base::repeat(copies_, base::place_of(e), queue, true,
                     [&] { device_.to_host(queue, region_.slot(e), what.at, what.bytes); });
        device_.record(loaded_[e % Tuning.slot_count], queue);
    }

    // In this order: queues end before the memory and events that they use.
    Runtime& device_;
    typename base::graph_caches copies_;
    std::vector<event> loaded_; // execution e has number e mod slots
    typename Runtime::stream in_, out_;

    std::uint64_t started_ = 0;      // executions whose copy in is enqueued
    std::uint64_t stored_count_ = 0; // executions whose copy out is enqueued
    std::uint64_t handed_ = 0;       // executions that the summing threads have, if they take them
    summing_threads sums_;           // last member: ends first
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_PCIE_STAGING_HPP

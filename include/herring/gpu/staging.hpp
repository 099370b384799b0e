// herring: the pipeline of `intra_node::pcie_staging`: device to host, the node's sum there, and back.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_STAGING_HPP
#define HERRING_GPU_STAGING_HPP

#include "herring/detail/table.hpp"
#include "herring/device_span.hpp"
#include "herring/gpu/region.hpp"
#include "herring/gpu/runtime.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/units.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace herring::gpu {

/// What may be tuned about staging.
struct staging_tuning {
    std::size_t slots =
        4; ///< buckets of a rank's in pinned memory: one on its way in, one out, others being summed
    std::size_t local_chunk_bytes = 64_KiB; ///< as of shared_memory
    std::size_t mailbox_bytes = 4_KiB;
    bool count_not_finite =
        false; ///< results are read once more, and what is infinite or NaN in them is counted

    friend constexpr bool operator==(staging_tuning const&, staging_tuning const&) = default;
};

/// Tensors lie on devices; buckets are copied to pinned memory that the node shares, summed by the host, and copied back.
/// No device needs to reach another.
///
/// Shape:    L local ranks → 1 contributor, as with shared_memory, and the same bits.
/// Cost:     a bucket's bytes over PCIe in each direction; `slots` times the largest bucket of pinned memory.
/// Order:    execution e uses slot e mod slots. The copy in waits for the tensors (an event of the caller's stream), and,
///           on the device, for the copy out of e − slots, which has been put into its queue. A rank arrives at e when
///           its copy in is done, which the host sees; the copy out follows when all local ranks have finished e.
/// Blocks:   never. Threads: `after`, `load` and `results` the caller's; all else the one that polls.
/// Errors:   of the device: kept, `failed()`; the engine ends with them.
template <class Runtime, staging_tuning Tuning = staging_tuning{}> class basic_pcie_staging {
  public:
    using axis = axes::intra_node;
    using runtime = Runtime;
    using stream_handle = typename Runtime::stream_handle;
    using needs_of_device = device_needs;
    using copy = copy_item;
    static constexpr char const* name = "pcie_staging";
    static constexpr bool joins_ranks = true;
    static constexpr bool device_memory = true;
    static constexpr bool host_staging = true;    ///< the transport sees memory of the host
    static constexpr bool sums_on_device = false; ///< the engine sums local ranks' parts
    static constexpr intra_node_tuning tuning{.local_chunk_bytes = Tuning.local_chunk_bytes,
                                              .mailbox_bytes = Tuning.mailbox_bytes};
    static_assert(Tuning.slots >= 2);

    basic_pcie_staging(world& ranks, std::size_t bytes) : basic_pcie_staging(ranks, bytes, device_needs{}) {}
    basic_pcie_staging(world& ranks, std::size_t bytes, device_needs const& needs)
        : device_(ranks), tensors_(device_, needs.tensor_bytes), packing_(device_, needs.tensors),
          unpacking_(device_, needs.tensors),
          region_(ranks, device_, bytes, needs.bucket_bytes, needs.bucket_bytes > 0 ? Tuning.slots : 0),
          jobs_(needs.executions), now_(device_, false), results_(device_, false), gather_(device_),
          in_(device_), out_(device_) {
        for (std::size_t i = 0; i < needs.executions; ++i) produced_.emplace_back(device_, false);
        if constexpr (Tuning.count_not_finite) counter_.emplace(device_);
        for (std::size_t i = 0; i < Tuning.slots; ++i) {
            loaded_.emplace_back(device_, false);
            stored_.emplace_back(device_, false);
        }
    }
    basic_pcie_staging(basic_pcie_staging const&) = delete;
    basic_pcie_staging& operator=(basic_pcie_staging const&) = delete;

    // ---- the node, as for ranks without devices --------------------------------------------------------------------

    std::byte* memory() noexcept { return region_.flags().memory(); }
    std::byte* peer(int local, std::byte* own) noexcept { return region_.flags().peer(local, own); }
    void arrive(std::uint64_t e) noexcept { region_.flags().arrive(e); }
    int absent(std::uint64_t e) noexcept { return region_.flags().absent(e); }
    void finish(std::uint64_t e, bool awaited) noexcept { region_.flags().finish(e, awaited); }
    int unfinished(std::uint64_t e) noexcept { return region_.flags().unfinished(e); }
    bool gone(int local) noexcept { return region_.flags().gone(local); }
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
        device_.record(now_, stream);
        device_.wait(gather_.handle(), now_);
    }

    /// Copies of the caller's tensors into this rank's, which come after what `after` was told of; and back, after `results`,
    /// in the caller's stream. `at`: the first one's tensor.
    void pack(std::size_t at, std::span<copy_item const> items) noexcept {
        device_.copy_many(gather_.handle(), packing_, at, items);
    }
    void unpack(stream_handle stream, std::span<copy_item const> items) noexcept {
        device_.copy_many(stream, unpacking_, 0, items);
    }

    /// Execution e, the next one, is this range of the tensors. Returns where it will lie on the host.
    std::byte* load(std::uint64_t e, std::size_t offset, std::size_t bytes) noexcept {
        jobs_[e % jobs_.size()] = {offset, bytes};
        device_.record(produced_[e % jobs_.size()], gather_.handle());
        return region_.slot(e);
    }

    /// Whether execution e lies on the host; `submitted` are loaded or to be loaded. Asked in order.
    bool loaded(std::uint64_t e, std::uint64_t submitted) noexcept {
        for (; started_ < submitted && started_ < stored_count_ + Tuning.slots; ++started_) start(started_);
        bool const here = e < started_ && device_.done(loaded_[e % Tuning.slots]);
        region_.busy = !here;
        if (here) region_.awake();
        return here;
    }

    /// Execution e is finished by all local ranks: its result goes back. Asked in order.
    void store(std::uint64_t e) noexcept {
        job const& what = jobs_[e % jobs_.size()];
        device_.to_device(out_.handle(), tensors() + what.offset, region_.slot(e), what.bytes);
        device_.record(stored_[e % Tuning.slots], out_.handle());
        stored_count_ = e + 1;
    }

    /// What is put into this stream from now on comes after all results; when all executions are released.
    void results(stream_handle stream) noexcept {
        device_.record(results_, out_.handle());
        device_.wait(stream, results_);
    }

    /// After `results`: counts what is infinite or NaN among the first `elements` of this rank's tensors, in the stream.
    template <class T> void count_not_finite(stream_handle stream, std::size_t elements) noexcept {
        if constexpr (Tuning.count_not_finite)
            device_.count_not_finite(stream, reinterpret_cast<T const*>(tensors()), elements, *counter_);
    }
    /// How many that were, in all steps whose streams have got past `wait`. Always 0 without `count_not_finite`.
    std::uint64_t not_finite() const noexcept { return counter_ ? counter_->value() : 0; }

  private:
    struct job {
        std::size_t offset = 0;
        std::size_t bytes = 0;
    };
    using event = typename Runtime::event;

    void start(std::uint64_t e) noexcept {
        job const& what = jobs_[e % jobs_.size()];
        device_.wait(in_.handle(), produced_[e % jobs_.size()]);
        if (e >= Tuning.slots) device_.wait(in_.handle(), stored_[e % Tuning.slots]); // of e − slots
        device_.to_host(in_.handle(), region_.slot(e), tensors() + what.offset, what.bytes);
        device_.record(loaded_[e % Tuning.slots], in_.handle());
    }

    // In this order: queues end before what they use goes.
    Runtime device_;
    typename Runtime::memory tensors_;
    typename Runtime::batch packing_, unpacking_;
    std::optional<typename Runtime::counter> counter_;
    region<Runtime> region_;
    herring::detail::table<job> jobs_;
    std::vector<event> produced_;        // of execution e: number e mod executions
    std::vector<event> loaded_, stored_; // of execution e: number e mod slots
    event now_, results_;
    typename Runtime::stream gather_, in_, out_;

    std::uint64_t started_ = 0;      // executions whose copy in is in its queue
    std::uint64_t stored_count_ = 0; // executions whose copy out is
};

} // namespace herring::gpu

#endif // HERRING_GPU_STAGING_HPP

// herring: the pipeline of `intra_node::nvlink`: devices sum their shares of each other's tensors.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PEER_SUMS_HPP
#define HERRING_GPU_PEER_SUMS_HPP

#include "herring/detail/table.hpp"
#include "herring/device_span.hpp"
#include "herring/engine/execution.hpp"
#include "herring/gpu/region.hpp"
#include "herring/gpu/runtime.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/units.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace herring::gpu {

/// What may be tuned about sums on devices.
struct peer_sums_tuning {
    std::size_t slots = 4; ///< buckets of a rank's in pinned memory, where there are several nodes
    bool count_not_finite =
        false; ///< results are read once more, and what is infinite or NaN in them is counted

    friend constexpr bool operator==(peer_sums_tuning const&, peer_sums_tuning const&) = default;
};

/// Tensors lie on devices that reach each other. Local rank l's device reads its chunks from all of the node's, sums them
/// in rank order in one kernel, and writes the results to all. With several nodes the sum goes to pinned memory instead,
/// only the 1/L that this rank handles, is exchanged by the transport, and goes from there to all devices.
///
/// Shape:    L local ranks → 1 contributor; local rank l handles the chunks k with k mod L = l; the bits of shared_memory.
/// Cost:     one node: each device reads (L−1)/L of a bucket from others and writes as much to them. Several: 1/L of it over
///           each rank's PCIe in each direction (twice in, of 16-bit types: sums travel in float), and (L−1)/L to others.
/// Order:    a rank arrives at e when its tensors' event is recorded: flags order the host's calls, events the devices.
///           A sum waits for the events of all local ranks and, where it goes to slot e mod slots, for the copy out of
///           e − slots. A rank finishes e when its last write is in its queue and its event recorded; the caller's stream
///           waits for those events of all local ranks.
/// Blocks:   never on the device; with one node the host does not wait for it at all. The destructor waits for the node's
///           other ranks to close this rank's memory, up to 2 s; after that it is left to the end of the process.
/// Threads:  `after`, `load` and `results` the caller's; all else the one that polls.
/// Errors:   `unsupported` at construction when a device cannot reach another, naming the rank; of the device: `failed()`.
template <class Runtime, peer_sums_tuning Tuning = peer_sums_tuning{}> class basic_nvlink {
  public:
    using axis = axes::intra_node;
    using runtime = Runtime;
    using stream_handle = typename Runtime::stream_handle;
    using needs_of_device = device_needs;
    using copy = copy_item;
    static constexpr char const* name = "nvlink";
    static constexpr bool joins_ranks = true;
    static constexpr bool device_memory = true;
    static constexpr bool host_staging = true;
    static constexpr bool sums_on_device = true;
    /// One chunk a rank on one node: a kernel does all of it.
    static constexpr intra_node_tuning tuning{.local_chunk_bytes = std::size_t{1} << 40, .mailbox_bytes = 0};
    static_assert(Tuning.slots >= 2);

    basic_nvlink(world& ranks, std::size_t bytes) : basic_nvlink(ranks, bytes, device_needs{}) {}
    basic_nvlink(world& ranks, std::size_t bytes, device_needs const& needs)
        : ranks_(ranks), local_(ranks.local_rank()), size_(ranks.local_size()), alone_(needs.nodes == 1),
          wide_bytes_(needs.wide_bytes), bucket_bytes_((needs.bucket_bytes + 63) / 64 * 64),
          closed_at_((bytes + 63) / 64 * 64), device_(ranks), tensors_(device_, needs.tensor_bytes),
          packing_(device_, needs.tensors), unpacking_(device_, needs.tensors),
          region_(ranks, device_, closed_at_ + 64, alone_ ? 0 : slot_bytes(),
                  alone_ || bucket_bytes_ == 0 ? 0 : Tuning.slots),
          jobs_(needs.executions), now_(device_, false), done_(device_, true),
          gather_(std::in_place, device_), work_(std::in_place, device_), out_(std::in_place, device_) {
        for (std::size_t i = 0; i < needs.executions; ++i) produced_.emplace_back(device_, true);
        if constexpr (Tuning.count_not_finite) counter_.emplace(device_);
        for (std::size_t i = 0; i < region_.slots(); ++i) {
            summed_.emplace_back(device_, false);
            stored_.emplace_back(device_, false);
        }
        meet();
    }
    basic_nvlink(basic_nvlink const&) = delete;
    basic_nvlink& operator=(basic_nvlink const&) = delete;
    ~basic_nvlink() { close(); }

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
        device_.wait(gather_->handle(), now_);
    }

    /// Copies of the caller's tensors into this rank's, which come after what `after` was told of; and back, after `results`,
    /// in the caller's stream. `at`: the first one's tensor.
    void pack(std::size_t at, std::span<copy_item const> items) noexcept {
        device_.copy_many(gather_->handle(), packing_, at, items);
    }
    void unpack(stream_handle stream, std::span<copy_item const> items) noexcept {
        device_.copy_many(stream, unpacking_, 0, items);
    }

    /// Execution e, the next one, is this range of the tensors. Returns where its result will lie on the host, if it does.
    std::byte* load(std::uint64_t e, std::size_t offset, std::size_t bytes) noexcept {
        jobs_[e % jobs_.size()] = {offset, bytes};
        device_.record(produced_[e % jobs_.size()], gather_->handle());
        return region_.slot(e);
    }
    bool loaded(std::uint64_t, std::uint64_t) noexcept { return true; }

    /// Whether this rank's chunks of execution e are summed: on one node, whether the kernel is in its queue. Asked in
    /// order; puts there what all local ranks have arrived at, of the `arrived` executions that this rank has.
    template <class Update, class T, class At>
    bool summed(std::uint64_t e, std::uint64_t arrived, int ranks, At const& at) noexcept {
        for (; launched_ < arrived && free(launched_) && absent(launched_) < 0; ++launched_)
            launch<Update, T>(launched_, at(launched_), ranks);
        bool const here = e < launched_ && (alone_ || device_.done(summed_[e % Tuning.slots]));
        region_.busy = e < launched_ && !here;
        if (here) region_.awake();
        return here;
    }

    /// Where this rank's sum of the place `own` of a result lies.
    std::byte* part(std::byte* own) noexcept {
        if (wide_bytes_ == 1) return own;
        std::size_t const from_first = static_cast<std::size_t>(own - region_.slot(0));
        std::size_t const inside = from_first % region_.slot_stride();
        return own - inside + bucket_bytes_ + inside * wide_bytes_;
    }

    /// This rank's chunks of execution e are done, on the host or (one node) in its queue. Asked in order.
    template <class T> void spread(std::uint64_t e, execution const& x) noexcept {
        if (alone_) return device_.record(done_, work_->handle());
        for (std::uint32_t s = 0; s < x.shard_count; ++s) {
            fold_work work = to_all(e, x.shards[s]);
            work.sources[0] = region_.on_device(region_.slot(e));
            work.source_count = 1;
            device_.template fold<herring::update::sum, T>(out_->handle(), work);
        }
        device_.record(stored_[e % Tuning.slots], out_->handle());
        device_.record(done_, out_->handle());
        stored_count_ = e + 1;
    }

    /// What is put into this stream from now on comes after all results; when all executions are released.
    void results(stream_handle stream) noexcept {
        device_.wait(stream, done_);
        for (neighbour& n : others_) device_.wait(stream, n.done);
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

    /// Another local rank, as this one's device sees it.
    struct neighbour {
        int local;
        typename Runtime::imported_memory tensors;
        typename Runtime::imported_event done;
        std::vector<typename Runtime::imported_event> produced;
    };

    static std::size_t at(int local) noexcept { return static_cast<std::size_t>(local); }
    std::size_t slot_bytes() const noexcept {
        return bucket_bytes_ * (1 + (wide_bytes_ == 1 ? 0 : wide_bytes_));
    }

    // Whether the slot of execution e may be written to, once what lies in its queues is done.
    bool free(std::uint64_t e) const noexcept { return alone_ || e < stored_count_ + Tuning.slots; }

    template <class Update, class T> void launch(std::uint64_t e, execution const& x, int ranks) noexcept {
        job const& what = jobs_[e % jobs_.size()];
        stream_handle const queue = work_->handle();
        device_.wait(queue, produced_[e % jobs_.size()]);
        for (neighbour& n : others_) device_.wait(queue, n.produced[e % jobs_.size()]);
        if (!alone_ && e >= Tuning.slots) device_.wait(queue, stored_[e % Tuning.slots]); // of e − slots
        for (std::uint32_t s = 0; s < x.shard_count; ++s) {
            fold_work work = to_all(e, x.shards[s]);
            for (int l = 0; l < size_; ++l) work.sources[l] = bases_[at(l)] + what.offset;
            work.source_count = size_;
            if (alone_) {
                work.ranks = ranks;
            } else {
                work.targets[0] = region_.on_device(part(region_.slot(e)));
                work.target_count = 1;
                work.wide = wide_bytes_ != 1;
            }
            device_.template fold<Update, T>(queue, work);
        }
        if (!alone_) device_.record(summed_[e % Tuning.slots], queue);
    }

    // This rank's chunks of a shard, into the tensors of all.
    fold_work to_all(std::uint64_t e, shard const& of) const noexcept {
        fold_work work;
        for (int l = 0; l < size_; ++l) work.targets[l] = bases_[at(l)] + jobs_[e % jobs_.size()].offset;
        work.target_count = size_;
        work.where = {of.offset, of.elements, of.chunk_elements, static_cast<std::uint32_t>(local_),
                      static_cast<std::uint32_t>(size_)};
        return work;
    }

    // ---- the others -------------------------------------------------------------------------------------------------

    using memory_export = typename Runtime::export_of_memory;
    using event_export = typename Runtime::export_of_event;

    // Collective. Nobody leaves before all have opened what the others export, or before all know that one could not.
    HERRING_SETUP void meet() {
        std::vector<std::byte> mine;
        put(mine, device_.exported(tensors_));
        put(mine, device_.exported(done_));
        for (event const& e : produced_) put(mine, device_.exported(e));
        gathered const all = ranks_.all_gather(mine);
        failure why;
        try {
            open(all);
        } catch (error const& failed) {
            why = failed.why();
        }
        gathered const said = ranks_.all_gather(
            std::as_bytes(std::span(&why, why.what == errc::ok ? std::size_t{0} : std::size_t{1})));
        for (int rank = 0; rank < ranks_.size(); ++rank) {
            auto const theirs = said[at(rank)];
            if (theirs.size() != sizeof(failure)) continue;
            std::memcpy(static_cast<void*>(&why), theirs.data(), sizeof why);
            close();
            throw error(herring::detail::as_seen_by(why, ranks_.rank()));
        }
    }

    HERRING_SETUP void open(gathered const& all) {
        if (size_ > most_buffers)
            throw error(errc::unsupported, ranks_.rank(), -1, "construction",
                        {size_, " ranks on this node: a kernel sums at most ", most_buffers,
                         "; use fewer a node, or intra_node::pcie_staging"});
        bases_ = herring::detail::table<std::byte*>(at(size_));
        bases_[at(local_)] = tensors_.data();
        others_.reserve(at(size_));
        for (int l = 0; l < size_; ++l) {
            if (l == local_) continue;
            int const rank = ranks_.map().rank_of(ranks_.node(), l);
            std::byte const* from = all[at(rank)].data();
            std::size_t const due = sizeof(memory_export) + sizeof(event_export) * (1 + produced_.size());
            if (all[at(rank)].size() != due)
                throw error(errc::mismatch, ranks_.rank(), rank, "construction",
                            "it has other buckets; let every rank make the same reducer");
            auto const tensors = take<memory_export>(from);
            auto const done = take<event_export>(from);
            others_.push_back({l, {device_, tensors, rank}, {device_, done, rank}, {}});
            others_.back().produced.reserve(produced_.size());
            for (std::size_t i = 0; i < produced_.size(); ++i)
                others_.back().produced.emplace_back(device_, take<event_export>(from), rank);
            bases_[at(l)] = others_.back().tensors.data();
        }
    }

    template <class Value> static void put(std::vector<std::byte>& to, Value const& value) {
        static_assert(std::is_trivially_copyable_v<Value>);
        auto const* const from = reinterpret_cast<std::byte const*>(&value);
        to.insert(to.end(), from, from + sizeof value);
    }
    template <class Value> static Value take(std::byte const*& from) noexcept {
        Value made;
        std::memcpy(static_cast<void*>(&made), from, sizeof made);
        from += sizeof made;
        return made;
    }

    // ---- the end ----------------------------------------------------------------------------------------------------

    static constexpr std::chrono::seconds patience{2};

    std::atomic<std::uint32_t>& closed(int local) noexcept {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(peer(local, memory() + closed_at_));
    }

    // Ends this rank's queues, closes what the others exported, and waits until they have done the same: memory that is
    // open elsewhere must not be freed.
    HERRING_SETUP void close() noexcept {
        gather_.reset();
        work_.reset();
        out_.reset();
        others_.clear();
        closed(local_).store(1, std::memory_order_release);
        wake();
        time_point const deadline = clock::now() + patience;
        for (int l = 0; l < size_; ++l)
            while (closed(l).load(std::memory_order_acquire) == 0) {
                if (clock::now() >= deadline) return tensors_.leave();
                std::uint32_t const heard = listen();
                bool const now = closed(l).load(std::memory_order_acquire) != 0;
                sleep(heard, now ? time_point{} : clock::now() + std::chrono::milliseconds(20));
            }
    }

    world& ranks_;
    int local_, size_;
    bool alone_; // one node: results do not pass the host
    std::size_t wide_bytes_;
    std::size_t bucket_bytes_;
    std::size_t closed_at_; // of the region: a flag, for the others
    Runtime device_;
    typename Runtime::memory tensors_;
    typename Runtime::batch packing_, unpacking_;
    std::optional<typename Runtime::counter> counter_;
    region<Runtime> region_;
    herring::detail::table<job> jobs_;
    std::vector<event> produced_;        // of execution e: number e mod executions
    std::vector<event> summed_, stored_; // of execution e: number e mod slots
    event now_, done_;
    std::optional<typename Runtime::stream> gather_, work_, out_;
    std::vector<neighbour> others_;
    herring::detail::table<std::byte*> bases_; // local rank → its tensors, as this device sees them

    std::uint64_t launched_ = 0;     // executions whose sums are in the queue
    std::uint64_t stored_count_ = 0; // executions whose results are
};

} // namespace herring::gpu

#endif // HERRING_GPU_PEER_SUMS_HPP

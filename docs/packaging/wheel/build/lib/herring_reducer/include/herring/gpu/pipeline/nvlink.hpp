// herring: the pipeline of `intra_node::nvlink`: devices sum their shares of each other's tensors.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_NVLINK_HPP
#define HERRING_GPU_PIPELINE_NVLINK_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/all_or_none.hpp"
#include "herring/engine/execution.hpp"
#include "herring/gpu/pipeline/device_tensors.hpp"
#include "herring/gpu/pipeline/peer_memory.hpp"
#include "herring/gpu/pipeline/summing_pipeline.hpp"
#include "herring/gpu/runtime.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/tunings.hpp"
#include "herring/policy/names.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

/// Sums tensors on devices with peer access. Local rank l's device reads its chunks from all devices of the
/// node, sums them in rank order in one kernel, and writes the results to all devices. With several nodes the
/// kernel writes the sum of this rank's 1/L to pinned memory, the transport exchanges it, and the results go
/// from there to all devices.
///
/// Shape:    L local ranks → 1 contributor; local rank l handles chunks k ≡ l (mod L); the bits of
///           shared_memory.
/// Cost:     one node: each device reads (L−1)/L of a bucket from other devices and writes as much to them.
///           Several nodes: 1/L of a bucket over each rank's PCIe in each direction (twice that to the host
///           for 16-bit types: sums travel in float), and (L−1)/L to other devices. If the transport takes
///           device memory, only the 1/N of this share that this node serves passes through the host. A
///           process of P ranks opens P · (L − P) · (unsplit buckets + 4) events of other processes; CUDA
///           refuses more than about 20 000.
/// Order:    flags order the host's calls, events order the devices. A rank arrives at e when the event of
///           its tensors is recorded. A sum waits for these events of all local ranks and, with several
///           nodes, for the copy out of e − slots, which used the same slot. A rank finishes e when its last
///           write is enqueued and its event recorded; the caller's stream waits for all local ranks' events.
/// Blocks:   three functions wait for the device: `forget`; a call whose piece cannot be opened before an
///           allocation is closed (see Lends); and the destructor: up to 30 s, or 2 s after a failure, for
///           the work in this rank's queues and so for the caller's streams on which that work depends; then
///           up to 2 s for the node's other ranks to close this rank's memory. Memory and events still in use
///           then are leaked until the process ends, with a line on stderr.
/// Lends:    pieces of a call are read and written where the caller has them. Threads of a process use its
///           addresses. Other processes open the allocation, keep it open for later calls, and close it when
///           its number has changed, when too many are open (`lent_memory`), or in `forget`. Memory that
///           other processes cannot reach (cudaMallocAsync, VMM, managed), or that is not aligned to 16
///           bytes, is copied to bounce slots and back.
/// Threads:  `after`, `load`, `lend` and `results`: the caller's thread; all others: the thread that polls.
/// Errors:   `unsupported` at construction, naming the rank, if a device cannot access another, or if data
///           moved between them is lost (`peer_trial`); device errors: `failed()`.
template <class Runtime, peer_sums_tuning Tuning>
class basic_nvlink : public summing_pipeline<Runtime, Tuning.inspect, Tuning.graphs> {
    using base = summing_pipeline<Runtime, Tuning.inspect, Tuning.graphs>;

  public:
    using typename base::stream_handle;
    template <class Element> using tensor_store = device_tensors<Element, basic_nvlink>;
    static constexpr char const* name = "nvlink";
    /// On one node each rank has one chunk, which one kernel sums.
    static constexpr intra_node_facts facts{.device_memory = true,
                                            .host_staging = true,
                                            .sums_on_device = true,
                                            .reads_peers = true,
                                            .leaves_parts = true,
                                            .tuning = {.local_chunk_bytes = std::size_t{1} << 40,
                                                       .mailbox_bytes = 0,
                                                       .split_bytes = Tuning.split_bytes,
                                                       .piece_bytes = Tuning.piece_bytes}};
    static_assert(Tuning.slot_count >= 2 && Tuning.piece_bytes > 0);

    basic_nvlink(world& ranks, std::size_t bytes) : basic_nvlink(ranks, bytes, device_needs{}) {}
    basic_nvlink(world& ranks, std::size_t bytes, device_needs const& needs)
        : base(ranks, needs, offers_at(bytes) + memory_map::bounce_slots * offer_stride, Tuning.slot_count,
               true),
          closed_at_(closed_at(bytes)), sums_(base::for_slots()), spreads_(base::for_slots()),
          work_(std::in_place, device_), out_(std::in_place, device_) {
        meet();
    }
    ~basic_nvlink() { close(); }

    /// Shows local ranks the place of the piece with this bounce slot: at `from` (true), or in the slot, to
    /// which the caller then copies it (false).
    bool lend(std::size_t slot, std::byte* from) noexcept {
        offer<Runtime> mine{device_.lent(from), from, false};
        mine.lent = reinterpret_cast<std::uintptr_t>(from) % access_bytes == 0 &&
                    (one_device_ || device_.openable(mine.allocation));
        std::memcpy(static_cast<void*>(base::memory() + offer_at(slot)), &mine, sizeof mine);
        return mine.lent;
    }
    /// Closes the allocation at this address on all local ranks, so that it can be freed. Collective.
    ///
    /// Blocks:   until the device has done earlier calls, at most half of `default_timeout`, so that the
    ///           other ranks still wait for this rank.
    HERRING_SETUP void forget(std::byte* from) {
        std::byte* const first = device_.lent(from).first();
        gather_result const all = ranks_.all_gather(std::as_bytes(std::span(&first, 1)));
        together("forget", [&] {
            time_point const deadline = herring::detail::deadline_in(ranks_.default_timeout() / 2);
            while (!is_quiet()) {
                if (failure const* const why = device_.failed()) throw error(*why);
                if (ranks_.failed() != nullptr || clock::now() >= deadline)
                    throw error(errc::timeout, ranks_.rank(), -1, "forget",
                                "this rank's device has not done the calls before; forget memory when the "
                                "streams that it was given in have come to them");
                herring::detail::sleep_for(std::chrono::microseconds(50));
            }
            for (neighbour const& n : others_) {
                int const rank = ranks_.topology().rank_of(ranks_.node(), n.local);
                std::byte* gone = nullptr;
                if (all[at(rank)].size() != sizeof gone)
                    throw error(
                        errc::mismatch, ranks_.rank(), rank, "forget",
                        "it is in another collective; let every rank make the same calls in the same order");
                std::memcpy(&gone, all[at(rank)].data(), sizeof gone);
                lent_[at(n.local)].close(gone);
            }
        });
    }

    /// True if this rank's chunks of execution e are summed or, on one node, if their kernel is enqueued.
    /// Called in order of e. Enqueues sums below `arrived` at which all local ranks have arrived.
    template <class Update, class Element, class At>
    bool summed(std::uint64_t e, std::uint64_t arrived, int ranks, At const& at) noexcept {
        if (launched_ == 0) prepare<Update, Element>(ranks);
        bool seen = true;
        for (; launched_ < arrived && base::is_free(launched_) && base::first_not_arrived(launched_) < 0;
             ++launched_) {
            seen = !is_left() && see(launched_);
            if (!seen) break;
            launch<Update, Element>(launched_, at(launched_), ranks);
        }
        bool const here = e < launched_ && (alone_ || device_.done(base::summed_event(e)));
        region_.busy = !seen || (e < launched_ && !here);
        if (here) region_.awake();
        return here;
    }

    /// Returns the local rank whose device execution e waits for.
    int slowest_local_rank(std::uint64_t e) noexcept {
        if (device_.done(base::packed_event(e)))
            for (neighbour& n : others_)
                if (!device_.done(n.packed[base::job_of(e).load])) return n.local;
        return local_;
    }

    /// Writes this rank's chunks of execution e, which are reduced, to all devices; on one node the kernel of
    /// the sums does that. Called in order of e. False: the device failed.
    template <class Element> bool spread(std::uint64_t e, execution const& x) noexcept {
        if (alone_) return device_.failed() == nullptr;
        if (is_left()) return false;
        if (parts_.data() != nullptr) device_.flush();
        stream_handle const queue = out_->handle();
        base::repeat(spreads_, base::place_of(e), queue, true, [&] {
            for (std::uint32_t s = 0; s < x.shard_count; ++s) {
                fold_args work = to_all(e, x.shards[s]);
                work.sources[0] = base::seen_slot(e, x, x.shards[s]);
                work.source_count = 1;
                device_.template fold<herring::update::sum, Element>(queue, work);
            }
        });
        device_.record(base::reduced_event(e), queue);
        stored_count_ = e + 1;
        return device_.failed() == nullptr;
    }

    /// Orders later work in this stream after the results of the first `count` executions; they are released.
    void results(stream_handle stream, std::uint64_t count) noexcept {
        if (count == 0) return;
        device_.wait(stream, base::reduced_event(count - 1));
        for (neighbour& n : others_) device_.wait(stream, n.reduced[(count - 1) % n.reduced.size()]);
    }

  private:
    using base::alone_, base::device_, base::local_, base::part_ratio_, base::parts_, base::ranks_,
        base::region_, base::size_;
    using base::launched_, base::stored_count_;
    using typename base::event;

    /// Another local rank's tensors and events, as this device sees them.
    struct neighbour {
        int local;
        typename Runtime::imported_memory tensors;
        std::vector<typename Runtime::imported_event> reduced, packed; // indices of this rank's events
    };

    static std::size_t at(int local) noexcept { return static_cast<std::size_t>(local); }
    static std::size_t closed_at(std::size_t bytes) noexcept { return base::whole_lines(bytes); }
    // One offer per bounce slot lies behind the flag.
    static std::size_t offers_at(std::size_t bytes) noexcept { return closed_at(bytes) + 64; }
    static constexpr std::size_t offer_stride = (sizeof(offer<Runtime>) + 63) / 64 * 64;
    std::size_t offer_at(std::size_t slot) const noexcept { return closed_at_ + 64 + slot * offer_stride; }

    // True if a local rank may have freed its memory after it had arrived, by an error in its call.
    bool is_left() noexcept {
        bool left = ranks_.failed() != nullptr;
        for (int l = 0; l < size_; ++l) left = left || closed(l).load(std::memory_order_acquire) != 0;
        return left;
    }
    // Finds the places of local ranks' pieces, if execution e is a piece of a call; false: ask again.
    bool see(std::uint64_t e) noexcept {
        int const slot = base::job_of(e).slot;
        for (int l = 0; slot >= 0 && l < size_; ++l) {
            std::byte*& place = seen_[at(slot) * at(size_) + at(l)];
            place = l == local_ ? base::job_of(e).at : bases_[at(l)] + base::job_of(e).offset;
            if (l == local_) continue;
            offer<Runtime> shown;
            std::memcpy(static_cast<void*>(&shown), base::peer(l, base::memory() + offer_at(at(slot))),
                        sizeof shown);
            if (!shown.lent) continue;
            place = lent_[at(l)].see(device_, shown, ranks_.topology().rank_of(ranks_.node(), l), e,
                                     [this] { return is_quiet(); });
            if (place == nullptr) return false;
        }
        return true;
    }
    // True if all enqueued work that reads or writes other ranks' memory is done.
    bool is_quiet() noexcept {
        return launched_ == 0 ||
               ((alone_ || stored_count_ == launched_) && device_.done(base::reduced_event(launched_ - 1)));
    }
    // Returns the address of local rank l's elements of execution e for this device.
    std::byte* place_of_rank(std::uint64_t e, int l) const noexcept {
        auto const& what = base::job_of(e);
        return what.slot < 0 ? bases_[at(l)] + what.offset : seen_[at(what.slot) * at(size_) + at(l)];
    }

    // Loads the kernels, before any work in a stream waits for a peer.
    template <class Update, class Element> HERRING_SETUP void prepare(int ranks) noexcept {
        fold_args like;
        like.source_count = size_;
        like.ranks = alone_ ? ranks : 0;
        like.in_accumulator = !alone_ && part_ratio_ != 1;
        for (std::uint8_t rule = 0; rule <= herring::detail::rule_count<Update>(); ++rule)
            herring::detail::with_rule<Update>(rule, [&]<class Rule>(std::type_identity<Rule>) {
                device_.template prepare_fold<Rule, Element>(like);
            });
        like = {};
        like.source_count = 1;
        if (!alone_) device_.template prepare_fold<herring::update::sum, Element>(like);
    }

    template <class Update, class Element>
    void launch(std::uint64_t e, execution const& x, int ranks) noexcept {
        stream_handle const queue = work_->handle();
        if (base::job_of(e).first) {
            device_.wait(queue, base::packed_event(e));
            for (neighbour& n : others_) device_.wait(queue, n.packed[base::job_of(e).load]);
        }
        if (!alone_ && e >= Tuning.slot_count)
            device_.wait(queue, base::reduced_event(e - Tuning.slot_count));
        base::repeat(sums_, base::place_of(e), queue, true, [&] {
            for (std::uint32_t s = 0; s < x.shard_count; ++s) {
                fold_args work = to_all(e, x.shards[s]);
                for (int l = 0; l < size_; ++l) work.sources[l] = work.targets[l];
                work.source_count = size_;
                if (alone_) {
                    work.ranks = ranks;
                } else {
                    work.targets[0] = base::part_in(base::seen_slot(e, x, x.shards[s]));
                    work.target_count = 1;
                    work.in_accumulator = part_ratio_ != 1;
                }
                herring::detail::with_rule<Update>(x.rule, [&]<class Rule>(std::type_identity<Rule>) {
                    device_.template fold<Rule, Element>(queue, work);
                });
            }
        });
        device_.record(alone_ ? base::reduced_event(e) : base::summed_event(e), queue);
    }

    // Returns a sum, without sources, that writes this rank's chunks of a shard to all local ranks' tensors.
    fold_args to_all(std::uint64_t e, shard const& of) const noexcept {
        fold_args work;
        for (int l = 0; l < size_; ++l) work.targets[l] = place_of_rank(e, l);
        work.target_count = size_;
        work.where = {of.offset, of.elements, of.chunk_elements, static_cast<std::uint32_t>(local_),
                      static_cast<std::uint32_t>(size_)};
        return work;
    }

    // ---- other local ranks --------------------------------------------------------------------------------

    using memory_export = typename Runtime::export_of_memory;
    using event_export = typename Runtime::export_of_event;

    // Opens the other ranks' exports and tries them. Throws on every rank if one rank fails. Collective.
    HERRING_SETUP void meet() {
        std::vector<std::byte> mine;
        put(mine, device_.exported(base::owned_tensors()));
        for (event const& e : base::reduced_events()) put(mine, device_.exported(e));
        for (event const& e : base::packed_events()) put(mine, device_.exported(e));
        gather_result const all = ranks_.all_gather(mine);
        try {
            together("construction", [&] { open(all); });
            std::span<std::byte* const> const memory(
                bases_.data(), base::tensor_bytes() >= peer_trial<Runtime>::bytes(at(size_)) ? at(size_) : 0);
            peer_trial<Runtime> trial(device_, ranks_, memory);
            together("construction", [&] { trial.write(); });
            together("construction", [&] { trial.check(); });
            together("construction", [&] { trial.clear(); });
        } catch (...) {
            close();
            throw;
        }
    }
    // Runs the step on every rank; throws on every rank if it failed on one rank.
    template <class Step> HERRING_SETUP void together(char const* operation, Step&& step) {
        (void)herring::detail::all_or_none(
            ranks_.rank(), operation, herring::detail::failure_of(ranks_.rank(), operation, step), {},
            [this](std::span<std::byte const> how) { return ranks_.all_gather(how); });
    }

    HERRING_SETUP void open(gather_result const& all) {
        if (size_ > most_buffers)
            throw error(errc::unsupported, ranks_.rank(), -1, "construction",
                        {size_, " ranks on this node: a kernel sums at most ", most_buffers,
                         "; use fewer a node, or intra_node::pcie_staging"});
        bases_ = herring::detail::fixed_array<std::byte*>(at(size_));
        bases_[at(local_)] = base::tensors();
        seen_ = herring::detail::fixed_array<std::byte*>(memory_map::bounce_slots * at(size_));
        lent_ = herring::detail::fixed_array<lent_memory<Runtime>>(at(size_));
        others_.reserve(at(size_));
        for (int l = 0; l < size_; ++l) {
            if (l == local_) continue;
            int const rank = ranks_.topology().rank_of(ranks_.node(), l);
            std::byte const* from = all[at(rank)].data();
            std::size_t const due =
                sizeof(memory_export) +
                sizeof(event_export) * (base::reduced_events().size() + base::packed_events().size());
            if (all[at(rank)].size() != due)
                throw error(errc::mismatch, ranks_.rank(), rank, "construction",
                            "it has other buckets; let every rank make the same reducer");
            auto const tensors = take<memory_export>(from);
            others_.push_back({l, {device_, tensors, rank}, {}, {}});
            auto const fetch = [&](auto& to, std::size_t count) {
                to.reserve(count);
                while (to.size() < count) to.emplace_back(device_, take<event_export>(from), rank);
            };
            fetch(others_.back().reduced, base::reduced_events().size());
            fetch(others_.back().packed, base::packed_events().size());
            bases_[at(l)] = others_.back().tensors.data();
            one_device_ = one_device_ && device_.on_same_device(tensors);
        }
    }

    template <class Value> static void put(std::vector<std::byte>& to, Value const& value) {
        static_assert(std::is_trivially_copyable_v<Value>);
        auto const* const from = reinterpret_cast<std::byte const*>(&value);
        to.insert(to.end(), from, from + sizeof value);
    }
    template <class Value> static Value take(std::byte const*& from) noexcept {
        Value value;
        std::memcpy(static_cast<void*>(&value), from, sizeof value);
        from += sizeof value;
        return value;
    }

    // ---- the end ------------------------------------------------------------------------------------------

    static constexpr std::chrono::seconds close_timeout{2};

    std::atomic<std::uint32_t>& closed(int local) noexcept {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(base::peer(local, base::memory() + closed_at_));
    }

    // Ends this rank's queues, closes other ranks' memory, and waits until they have closed this rank's
    // memory: memory that is open in another process must not be freed.
    HERRING_SETUP void close() noexcept {
        base::end_loading();
        work_.reset();
        out_.reset();
        others_.clear();
        lent_ = {};
        if (!device_.stuck()) // else its queues may still access other ranks' memory
            closed(local_).store(1, std::memory_order_release);
        base::wake();
        time_point const deadline = clock::now() + close_timeout;
        for (int l = 0; l < size_; ++l)
            while (l != local_ && closed(l).load(std::memory_order_acquire) == 0) {
                if (clock::now() >= deadline) return leave(l);
                std::uint32_t const heard = base::listen();
                bool const now = closed(l).load(std::memory_order_acquire) != 0;
                base::sleep(heard, now ? time_point{} : clock::now() + std::chrono::milliseconds(20));
            }
    }

    HERRING_SETUP void leave(int not_closed) noexcept {
        std::fprintf(
            stderr,
            "herring: rank %d: nvlink: local rank %d has not closed this rank's tensors within %d s: "
            "their memory is left to the end of this process\n",
            ranks_.rank(), not_closed, static_cast<int>(close_timeout.count()));
        base::leave_tensors();
        for (event& e : base::reduced_events()) e.leave();
        for (event& e : base::packed_events()) e.leave();
    }

    std::size_t closed_at_; // offset in the region of a flag: this rank has closed other ranks' memory
    typename base::graph_caches sums_, spreads_;
    std::optional<typename Runtime::stream> work_, out_;
    std::vector<neighbour> others_;
    herring::detail::fixed_array<std::byte*> bases_; // local rank → its tensors, for this device
    herring::detail::fixed_array<std::byte*> seen_;  // bounce slot, local rank → its piece of a call
    herring::detail::fixed_array<lent_memory<Runtime>> lent_; // local rank → its open allocations
    bool one_device_ = true; // local ranks are threads of a process, on one device: each reaches all memory
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_NVLINK_HPP

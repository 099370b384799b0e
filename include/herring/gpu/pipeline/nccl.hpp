// herring: the pipeline of `intra_node::nccl`: NCCL sums within a node, Herring between nodes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_NCCL_HPP
#define HERRING_GPU_PIPELINE_NCCL_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/all_or_none.hpp"
#include "herring/engine/execution.hpp"
#include "herring/gpu/nccl.hpp"
#include "herring/gpu/pipeline/device_tensors.hpp"
#include "herring/gpu/pipeline/summing_pipeline.hpp"
#include "herring/gpu/runtime.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/tunings.hpp"
#include "herring/policy/names.hpp"
#include "herring/policy/needs.hpp"
#include "herring/update/rules.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::need {

/// The need of a rule that NCCL has.
struct rule_of_nccl {
    template <class Pack> struct check {
        static constexpr bool value = [] {
            bool all = true;
            for (std::uint8_t number = 0; number <= herring::detail::rule_count<typename Pack::update>();
                 ++number)
                herring::detail::with_rule<typename Pack::update>(
                    number, [&]<class Rule>(std::type_identity<Rule>) {
                        all = all && gpu::reduction_of<Rule> != gpu::reduction::none;
                    });
            return all;
        }();
        static_assert(value,
                      "[HRG-M24] update: intra_node::nccl has NCCL combine the ranks of a node, which knows "
                      "sum, average, min, max and product only; a common slip is a rule of your own that was "
                      "used with nvlink; name herring::intra_node::nvlink or pcie_staging, or one of these "
                      "rules");
    };
};

} // namespace HERRING_NAMESPACE::need

namespace HERRING_NAMESPACE::gpu {

/// Sums the tensors of a node's ranks by NCCL, one rank per device. One node: an all-reduce in place. Several
/// nodes: a reduce-scatter leaves each rank the sums of its chunks, the transport exchanges them through
/// pinned memory, and an all-gather takes the results to all ranks of the node.
///
/// Shape:    L local ranks → 1 contributor; local rank l handles chunks k ≡ l (mod L), so L chunks in a row
///           are one reduce-scatter. A row that ends early is copied to a buffer of full rows, and back.
/// Bits:     NCCL's: in no order of ranks, each partial sum rounded to the element type; NCCL's choice for a
///           NaN in a minimum or maximum. So they differ from the bits of other policies, and may differ from
///           run to run. Averages: on one node, which is the world, NCCL divides; with several nodes NCCL
///           sums and Herring divides.
/// Cost:     each rank's link to the other ranks: (L−1)/L of a bucket out and in, twice; several nodes: over
///           PCIe as nvlink.
/// Order:    one communicator and one stream, so that the device works in the order of NCCL's calls. With
///           several nodes all-gathers follow the network, whose pace differs between ranks: local rank 0
///           calls in any order, writes this order into the node's memory, and the other local ranks repeat
///           it. A rank calls when all local ranks have arrived.
/// Blocks:   the constructor: until NCCL has connected the node's ranks, at most `default_timeout` of the
///           world or 5 minutes. The destructor: up to 30 s for the work in this rank's queues, and as long
///           again if it waits for the caller's work, not NCCL's; up to 2 s for the ends of the other ranks.
///           It aborts NCCL if these do not come, and at once if a rank failed, as the end of the engine
///           does. Memory still in use is leaked as with nvlink.
/// Threads:  `after`, `load` and `results`: the caller's thread; all others: the thread that polls.
/// Errors:   `unsupported` at construction if two ranks of a node share a device. An error of NCCL: `device`,
///           naming this rank, the call and NCCL's words; or the failure of the world, if a rank is gone.
template <class Runtime, class Nccl, peer_sums_tuning Tuning>
class basic_nccl : public summing_pipeline<Runtime, Tuning.inspect, Tuning.graphs> {
    using base = summing_pipeline<Runtime, Tuning.inspect, Tuning.graphs>;
    static_assert(nccl_policy<Nccl, Runtime>);

  public:
    using typename base::stream_handle;
    using needs = herring::needs<need::rule_of_nccl>;
    template <class Element> using tensor_store = device_tensors<Element, basic_nccl>;
    static constexpr char const* name = "nccl";
    static constexpr intra_node_facts facts{.device_memory = true,
                                            .host_staging = true,
                                            .sums_on_device = true,
                                            .leaves_parts = true,
                                            .rank_order = false,
                                            .tuning = {.local_chunk_bytes = std::size_t{1} << 40,
                                                       .mailbox_bytes = 0,
                                                       .split_bytes = Tuning.split_bytes,
                                                       .piece_bytes = Tuning.piece_bytes}};
    static_assert(Tuning.slot_count >= 2 && Tuning.piece_bytes > 0);

    basic_nccl(world& ranks, std::size_t bytes) : basic_nccl(ranks, bytes, device_needs{}) {}
    basic_nccl(world& ranks, std::size_t bytes, device_needs const& due)
        : base(ranks, due, base::whole_lines(bytes) + sizeof(shared), Tuning.slot_count, false),
          shared_at_(base::whole_lines(bytes)), rows_(device_, alone_ || size_ == 1 ? 0 : rows_bytes(due)),
          nccl_(device_), last_(device_, false), work_(std::in_place, device_) {
        if (ranks.topology().largest_node() > 1) meet();
    }
    ~basic_nccl() { close(); }

    /// NCCL reduces a caller's memory where it lies; no other rank opens it.
    static bool lend(std::size_t, std::byte*) noexcept { return true; }
    static void forget(std::byte*) noexcept {}

    /// The first failure of the device or of NCCL, or nullptr.
    failure const* failed() const noexcept {
        return failing_.load(std::memory_order_acquire) ? &why_ : base::failed();
    }

    /// True if this rank's chunks of execution e are summed or, on one node, if their all-reduce is enqueued.
    /// Called in order of e. Enqueues sums below `arrived` at which all local ranks have arrived.
    template <class Update, class Element, class At>
    bool summed(std::uint64_t e, std::uint64_t arrived, int, At const& at) noexcept {
        if (launched_ == 0 && !alone_) prepare<Element>();
        while (launched_ < arrived && base::is_free(launched_) && base::first_not_arrived(launched_) < 0) {
            if (calling_ == call::none && is_turn_of_sum()) start_sum<Update, Element>(at(launched_));
            if (calling_ != call::sum || !has_called()) break;
            end_sum<Element>(at(launched_));
        }
        if (!alone_ && of(local_).loaded.load(std::memory_order_relaxed) <= e &&
            device_.done(base::packed_event(e)))
            of(local_).loaded.store(e + 1, std::memory_order_release);
        bool const here = e < launched_ && (alone_ || device_.done(base::summed_event(e)));
        region_.busy = !here;
        if (here)
            region_.awake();
        else if (calling_ == call::none)
            (void)look(nccl_.state()); // for an error of work in flight
        return here;
    }

    /// Returns the local rank whose device execution e waits for.
    int slowest_local_rank(std::uint64_t e) noexcept {
        if (of(local_).loaded.load(std::memory_order_acquire) > e)
            for (int l = 0; l < size_; ++l)
                if (of(l).loaded.load(std::memory_order_acquire) <= e) return l;
        return local_;
    }

    /// Has NCCL take this rank's chunks of execution e, which are reduced, to all ranks of the node. Called
    /// in order of e, until it returns true: the all-gather is enqueued.
    template <class Element> bool spread(std::uint64_t e, execution const& x) noexcept {
        if (alone_) return failed() == nullptr;
        if (calling_ == call::none && is_turn_of_spread()) start_spread<Element>(e, x);
        region_.busy = calling_ != call::spread || !has_called();
        if (region_.busy) return false;
        end_spread<Element>(e, x);
        return failed() == nullptr;
    }

    /// Orders later work in this stream after the results of the first `count` executions; they are released.
    void results(stream_handle stream, std::uint64_t count) noexcept {
        if (count > 0) device_.wait(stream, base::reduced_event(count - 1));
    }

    /// Ends the work on the device that waits for other ranks: the engine has failed.
    HERRING_SETUP void give_up() noexcept { nccl_.abort(); }

  private:
    using base::alone_, base::device_, base::local_, base::part_ratio_, base::parts_, base::ranks_,
        base::region_, base::size_;
    using base::launched_, base::stored_count_;
    using typename base::event;

    enum class call : std::uint8_t { none, sum, spread };

    // State that a rank shows the others in the node's memory; zero at first.
    struct alignas(64) shared {
        std::atomic<std::uint64_t> loaded;   // executions whose tensors this rank has seen loaded
        std::atomic<std::uint64_t> launched; // executions whose reduce-scatter was called
        std::atomic<std::uint32_t> gone;     // 1: this rank could not join
        // Entry e mod slots: executions whose reduce-scatter was called before all-gather e. A value of at
        // most e is that of e − slots, because a reduce-scatter is called at most `slots` executions ahead.
        std::atomic<std::uint64_t> before[Tuning.slot_count];
    };

    shared& of(int local) noexcept {
        return *reinterpret_cast<shared*>(base::peer(local, base::memory() + shared_at_));
    }

    // ---- the order of NCCL's calls: that of local rank 0 --------------------------------------------------

    std::atomic<std::uint64_t>& sums_before(std::uint64_t e) noexcept {
        return of(0).before[e % Tuning.slot_count];
    }
    bool is_turn_of_sum() noexcept {
        if (alone_ || local_ == 0) return true;
        if (of(0).launched.load(std::memory_order_acquire) <= launched_) return false;
        std::uint64_t const before = sums_before(stored_count_).load(std::memory_order_acquire);
        return before <= stored_count_ || launched_ < before;
    }
    bool is_turn_of_spread() noexcept {
        return local_ == 0 || (sums_before(stored_count_).load(std::memory_order_acquire) == launched_ &&
                               launched_ > stored_count_);
    }

    // ---- one call after the other -------------------------------------------------------------------------

    // True if the last call is enqueued.
    bool has_called() noexcept { return look(nccl_.state()) == call_state::done; }
    call_state look(call_state is) noexcept {
        if (is == call_state::failed) keep(nccl_.why());
        return failed() != nullptr ? call_state::failed : is;
    }
    HERRING_SETUP void keep(char const* why) noexcept {
        if (failing_.load(std::memory_order_relaxed)) return;
        failure const* const of_world = ranks_.failed(); // the cause of NCCL's error, if it exists
        why_ = of_world != nullptr ? *of_world : nccl_failure("reduce", why);
        failing_.store(true, std::memory_order_release);
    }
    HERRING_SETUP failure nccl_failure(char const* operation, char const* why) const noexcept {
        return failure::make(errc::device, ranks_.rank(), -1, operation,
                             {"device ", device_.number(), ": ", why, "; NCCL_DEBUG=WARN says more"});
    }

    /// Rows of L chunks, one per local rank: in the tensors, or one row that ends early, in `rows_`.
    struct row_block {
        std::byte* at;        // address of the first element on the device
        std::size_t first;    // its index in the bucket
        std::size_t elements; // without the missing end of the last row
        std::size_t chunk;
        std::size_t rows;   // for NCCL; 0: this rank is alone on its node
        std::byte* callers; // place in the tensors of a row that was copied; nullptr: not copied
    };
    template <class Element, class Each>
    void for_blocks(std::uint64_t e, execution const& x, Each const& each) noexcept {
        std::byte* spare = rows_.data();
        for (std::uint32_t s = 0; s < x.shard_count; ++s) {
            shard const& one = x.shards[s];
            std::byte* const from = base::job_of(e).at + one.offset * sizeof(Element);
            std::size_t const row = one.chunk_elements * static_cast<std::size_t>(size_);
            std::size_t const rows = size_ > 1 ? one.elements / row : 0;
            std::size_t const even = size_ > 1 ? rows * row : one.elements;
            if (even > 0) each(one, row_block{from, one.offset, even, one.chunk_elements, rows, nullptr});
            if (even == one.elements) continue;
            each(one, row_block{spare, one.offset + even, one.elements - even, one.chunk_elements, 1,
                                from + even * sizeof(Element)});
            spare += row * sizeof(Element);
        }
    }
    // Bytes for one row per shard, whose last chunk is at most a cache line longer than its part.
    std::size_t rows_bytes(device_needs const& due) const noexcept {
        return base::whole_lines(due.bucket_bytes) +
               std::size_t{128} * static_cast<std::size_t>(size_) * static_cast<std::size_t>(due.nodes);
    }
    static copy_item copied(row_block const& b, std::size_t element_bytes, bool back) noexcept {
        return {back ? b.callers : b.at, back ? b.at : b.callers, b.elements * element_bytes};
    }

    // Loads the kernels, before any work in a stream waits for a peer.
    template <class Element> HERRING_SETUP void prepare() noexcept {
        fold_args like;
        like.source_count = 1;
        device_.template prepare_fold<herring::update::sum, Element>(like);
        like.in_accumulator = part_ratio_ != 1;
        device_.template prepare_fold<herring::update::sum, Element>(like);
    }
    template <class Update, class Element> void start_sum(execution const& x) noexcept {
        calling_ = call::sum;
        std::uint64_t const e = launched_;
        if (local_ == 0) of(0).launched.store(e + 1, std::memory_order_release);
        stream_handle const queue = work_->handle();
        if (base::job_of(e).first) device_.wait(queue, base::packed_event(e));
        if (size_ == 1) return;
        reduction by = reduction::none;
        herring::detail::with_rule<Update>(
            x.rule, [&]<class Rule>(std::type_identity<Rule>) { by = reduction_of<Rule>; });
        if (alone_) {
            nccl_.begin();
            nccl_.template all_reduce<Element>(by, base::job_of(e).at, x.elements, queue);
        } else {
            for_blocks<Element>(e, x, [&](shard const&, row_block const& b) {
                if (b.callers != nullptr) device_.copy(queue, copied(b, sizeof(Element), false));
            });
            nccl_.begin();
            for_blocks<Element>(e, x, [&](shard const&, row_block const& b) {
                for (std::size_t r = 0; r < b.rows; ++r)
                    nccl_.template reduce_scatter<Element>(by == reduction::average ? reduction::sum : by,
                                                           row_of<Element>(b, r), b.chunk, queue);
            });
        }
        (void)look(nccl_.end());
    }
    template <class Element> void end_sum(execution const& x) noexcept {
        std::uint64_t const e = launched_;
        if (!alone_)
            for_blocks<Element>(e, x, [&](shard const& s, row_block const& b) {
                std::byte* const to = base::part_in(base::seen_slot(e, x, s));
                fold_own<Element>(b, b.at, to + b.first * sizeof(Element) * part_ratio_, part_ratio_ != 1);
            });
        device_.record(alone_ ? base::reduced_event(e) : base::summed_event(e), work_->handle());
        calling_ = call::none;
        ++launched_;
    }
    template <class Element> void start_spread(std::uint64_t e, execution const& x) noexcept {
        calling_ = call::spread;
        if (local_ == 0) sums_before(e).store(launched_, std::memory_order_release);
        if (parts_.data() != nullptr) device_.flush();
        for_blocks<Element>(e, x, [&](shard const& s, row_block const& b) {
            fold_own<Element>(b, base::seen_slot(e, x, s) + b.first * sizeof(Element), b.at, false);
        });
        if (size_ == 1) return;
        nccl_.begin();
        for_blocks<Element>(e, x, [&](shard const&, row_block const& b) {
            for (std::size_t r = 0; r < b.rows; ++r)
                nccl_.template all_gather<Element>(row_of<Element>(b, r), b.chunk, work_->handle());
        });
        (void)look(nccl_.end());
    }
    template <class Element> void end_spread(std::uint64_t e, execution const& x) noexcept {
        for_blocks<Element>(e, x, [&](shard const&, row_block const& b) {
            if (b.callers != nullptr) device_.copy(work_->handle(), copied(b, sizeof(Element), true));
        });
        device_.record(base::reduced_event(e), work_->handle());
        calling_ = call::none;
        stored_count_ = e + 1;
    }

    template <class Element> std::byte* row_of(row_block const& b, std::size_t r) const noexcept {
        return b.at + r * b.chunk * static_cast<std::size_t>(size_) * sizeof(Element);
    }
    // Copies this rank's chunks of a block. `widened`: to accumulators.
    template <class Element>
    void fold_own(row_block const& b, std::byte const* from, std::byte* to, bool widened) noexcept {
        fold_args work;
        work.sources[0] = from;
        work.source_count = 1;
        work.targets[0] = to;
        work.target_count = 1;
        work.in_accumulator = widened;
        work.where = {0, b.elements, b.chunk, static_cast<std::uint32_t>(local_),
                      static_cast<std::uint32_t>(size_)};
        device_.template fold<herring::update::sum, Element>(work_->handle(), work);
    }

    // ---- the communicator ---------------------------------------------------------------------------------

    // Has NCCL connect the ranks of each node, or throws on every rank. Collective.
    HERRING_SETUP void meet() {
        refuse_shared_devices(ranks_.all_gather(nccl_.device()));
        typename Nccl::unique_id mine{};
        auto const ids = together(std::as_bytes(std::span(&mine, 1)), [&] {
            if (local_ == 0 && size_ > 1 && nccl_.make_id(mine) != call_state::done)
                throw error(nccl_failure("construction", nccl_.why()));
        });
        (void)together({}, [&] {
            if (size_ == 1) return;
            auto const first = static_cast<std::size_t>(ranks_.topology().rank_of(ranks_.node(), 0));
            typename Nccl::unique_id id{};
            if (ids[first].size() == sizeof id)
                std::memcpy(static_cast<void*>(&id), ids[first].data(), sizeof id);
            join(id);
        });
    }
    template <class Step>
    HERRING_SETUP herring::detail::given_by_all together(std::span<std::byte const> bytes, Step&& step) {
        failure const how = herring::detail::failure_of(ranks_.rank(), "construction", step);
        return herring::detail::all_or_none(
            ranks_.rank(), "construction", how, bytes,
            [this](std::span<std::byte const> all) { return ranks_.all_gather(all); });
    }
    // Throws if ranks of a node share a device, with which NCCL would fail or wait for ever. Looks at all
    // nodes, so that every rank throws.
    HERRING_SETUP void refuse_shared_devices(gather_result const& devices) const {
        auto const& map = ranks_.topology();
        auto const device = [&](int rank) { return devices[static_cast<std::size_t>(rank)]; };
        for (int node = 0; node < map.nodes(); ++node)
            for (int const b : map.members(node))
                for (int const a : map.members(node)) {
                    if (a == b) break;
                    if (!std::equal(device(a).begin(), device(a).end(), device(b).begin(), device(b).end()))
                        continue;
                    throw error(errc::unsupported, ranks_.rank(), b, "construction",
                                {"it has the device of rank ", a,
                                 ", and NCCL takes one rank a device; start one rank a device, or use "
                                 "intra_node::nvlink or pcie_staging"});
                }
    }
    HERRING_SETUP void join(typename Nccl::unique_id const& id) {
        call_state is = nccl_.join(id, size_, local_);
        std::chrono::milliseconds const most = std::chrono::minutes(5);
        time_point const deadline = clock::now() + std::min(most, ranks_.default_timeout());
        while (is == call_state::under_way && clock::now() < deadline && ranks_.failed() == nullptr) {
            for (int l = 0; l < size_; ++l)
                if (of(l).gone.load(std::memory_order_acquire) != 0) return nccl_.abort(); // rank l throws
            herring::detail::sleep_for(std::chrono::microseconds(100));
            is = nccl_.state();
        }
        if (is == call_state::done) return;
        of(local_).gone.store(1, std::memory_order_release);
        failure const why =
            is == call_state::failed
                ? nccl_failure("construction", nccl_.why())
                : failure::make(errc::timeout, ranks_.rank(), -1, "construction",
                                "NCCL has not connected the ranks of this node; NCCL_DEBUG=INFO says what it "
                                "waits for");
        nccl_.abort();
        throw error(why);
    }

    // ---- the end ------------------------------------------------------------------------------------------

    bool is_well() const noexcept {
        return calling_ == call::none && failed() == nullptr && ranks_.failed() == nullptr;
    }
    // Waits for this rank's work, then for the ends of the other ranks; aborts NCCL if one of these does not
    // come. Waits for no stream before: the caller's may wait for NCCL, and the stream of loads for the
    // caller's.
    HERRING_SETUP void close() noexcept {
        device_.record(last_, work_->handle());
        bool const ended = wait_until(std::chrono::seconds(30), [&] { return device_.done(last_); });
        call_state is = ended && is_well() ? nccl_.finish() : call_state::failed;
        (void)wait_until(std::chrono::seconds(2), [&] {
            if (is == call_state::under_way) is = nccl_.state();
            return is != call_state::under_way;
        });
        if (is == call_state::done)
            nccl_.close();
        else
            nccl_.abort();
        work_.reset();
    }
    template <class Holds>
    HERRING_SETUP bool wait_until(std::chrono::seconds most, Holds const& holds) noexcept {
        for (time_point const deadline = clock::now() + most; !holds();) {
            if (!is_well() || clock::now() >= deadline) return false;
            herring::detail::sleep_for(std::chrono::microseconds(50));
        }
        return true;
    }

    std::size_t shared_at_; // offset of `shared` in the region
    typename Runtime::memory rows_;
    Nccl nccl_;                 // without a communicator if this rank is alone on its node
    call calling_ = call::none; // the call that is under way, or whose following work is not enqueued
    std::atomic<bool> failing_{false};
    failure why_{};
    event last_; // behind all work, for `close`
    std::optional<typename Runtime::stream> work_;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_NCCL_HPP

// herring: the state machine that runs executions over an intra-node reducer and a transport.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ENGINE_HPP
#define HERRING_ENGINE_ENGINE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/context.hpp"
#include "herring/engine/counters.hpp"
#include "herring/engine/routes/local.hpp"
#include "herring/engine/routes/mailbox.hpp"
#include "herring/engine/routes/one_hop.hpp"
#include "herring/engine/routes/two_hop.hpp"
#include "herring/trace/trace.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE {

/// Runs executions, in order, each by its route and its operation.
///
/// A state machine: `poll` does what can be done now and returns how much that was; it never waits. It knows no clock
/// and no thread; memory, messages and flags come from the policies. An execution is *submitted*; it has *arrived*
/// when this rank's data is in place, has *all arrived* when all local ranks' is, is *finished* when this rank has done its
/// chunks, and *released* when all local ranks have.
///
/// Threads:  `submit`, `requested`, `released`, `failed`: any one thread; all else: one (other) thread.
/// Memory:   plan.staging_bytes(peers) and O(ranks + executions); nothing is allocated after construction.
/// Errors:   the first one stays (`failed`); nothing moves after it.
template <class Transport, class IntraNode, class Trace, operation... Operations> class engine {
    using context = detail::engine_context<Transport, IntraNode, Operations...>;
    using mailbox_route = detail::mailbox_route<context>;
    using local_route = detail::local_route<context>;

  public:
    /// `peers`: ranks of other nodes that this rank shares chunks with. `local_memory`: local_bytes(...) of this rank's region.
    engine(failure_sink sink, int rank, topology const& map, herring::plan const& from, Transport& transport,
           IntraNode& node, Trace& trace, std::span<int const> peers, std::size_t executions,
           std::byte* local_memory, std::span<std::byte> staging)
        : shared_(sink, rank, map, from, transport, node, peers, executions, staging), trace_(trace),
          networked_(map.nodes() > 1), local_(shared_, local_memory),
          mailbox_(shared_, from.tuning.mailbox_bytes,
                   local_memory == nullptr ? nullptr : local_memory + local_route::memory_bytes(executions)),
          one_hop_(shared_), two_hop_(shared_) {}
    engine(engine const&) = delete;
    engine& operator=(engine const&) = delete;

    /// Bytes of every rank's region that an engine needs for its local ranks: `local_memory` at construction.
    static constexpr std::size_t local_bytes(std::size_t executions, std::size_t mailbox_bytes) noexcept {
        return local_route::memory_bytes(executions) + mailbox_route::memory_bytes(mailbox_bytes);
    }

    /// Posts the receives of the first window; the caller then waits for all ranks, so that nobody sends before.
    void open() noexcept {
        two_hop_.open();
        one_hop_.open();
    }

    /// Hands over an execution; its memory belongs to the engine until it is released. At most as many may be
    /// outstanding as was said at construction. Returns its number.
    std::uint64_t submit(execution const& e) noexcept { return shared_.ledger.request(e); }

    /// The number by which executions name an operation of the engine's.
    template <class Operation> static constexpr std::uint8_t number_of() noexcept {
        static_assert((std::same_as<Operation, Operations> || ...));
        return detail::operation_list<Operations...>::template number_of<Operation>();
    }
    /// An operation of the engine's: what it keeps is set and read between executions.
    template <class Operation> Operation& get() noexcept {
        return shared_.operations.template get<Operation>();
    }

    /// Executions that were submitted.
    std::uint64_t requested() const noexcept { return submissions().load(std::memory_order_acquire); }
    /// Executions whose results lie in this rank's memory; nobody reads or writes it for them any more.
    std::uint64_t released() const noexcept { return releases().load(std::memory_order_acquire); }

    /// The same counts, for whoever looks from outside.
    ///
    /// Lifetime: the engine's.
    std::atomic<std::uint64_t> const& submissions() const noexcept { return shared_.ledger.requested(); }
    std::atomic<std::uint64_t> const& releases() const noexcept { return shared_.ledger.released(); }

    /// A released execution as it ended, until as many others as may be outstanding are submitted: how its ranks combined it,
    /// and the place that is this rank's now.
    execution const& ended(std::uint64_t number) noexcept { return shared_.ledger.at(number); }

    /// The first failure, or nullptr.
    failure const* failed() const noexcept { return shared_.failures.seen(); }
    /// Ends everything with this failure, here and, if `announce`, on every rank.
    void fail(failure const& why, bool announce = true) noexcept { shared_.end(why, announce); }

    /// What does not depend on operations: whom this rank waits for, and who it suspects.
    ///
    /// Threads: of the one that polls.
    detail::engine_core<Transport, IntraNode>& core() noexcept { return shared_; }

    /// Does what can be done now. Returns 0 when there was nothing.
    std::size_t poll() noexcept {
        if (failing()) return 0;
        shared_.ledger.take_requests();
        std::size_t progress = 0;
        if (networked_) progress += shared_.poll_transport();
        if (!failing()) progress += arrive();
        if (!failing()) progress += mailbox_.step();
        if (!failing()) progress += local_.step();
        if (networked_) {
            if (!failing()) progress += two_hop_.step();
            if (!failing()) progress += one_hop_.step();
        }
        if (!failing()) return progress + finish();
        shared_.publish(); // nothing is released any more
        return 0;
    }

    herring::counters counters() const noexcept { return shared_.counters(); }
    /// Ends the statistics of one wait: who was waited for longest.
    void finish_wait_stats() noexcept { shared_.finish_wait_stats(); }

  private:
    bool failing() const noexcept { return shared_.failures.is_failing(); }

    std::uint32_t pending_in(route path) const noexcept {
        switch (path) {
        case route::mailbox:
            return mailbox_route::cursors();
        case route::local:
            return local_route::cursors();
        case route::one_hop:
            return one_hop_.cursors();
        case route::two_hop:
            return two_hop_.cursors();
        }
        return 0;
    }

    std::size_t arrive() noexcept {
        detail::execution_ledger& ledger = shared_.ledger;
        std::size_t progress = 0;
        if constexpr (context::on_device)
            if (failure const* const why = shared_.node.failed())
                return shared_.failures.fail(*why, true), progress;
        for (; ledger.arrived() < ledger.submitted(); ledger.arrive(), ++progress) {
            std::uint64_t const number = ledger.arrived();
            execution& e = ledger.at(number);
            if constexpr (context::on_device)
                if (!shared_.node.loaded(number, ledger.submitted())) break;
            if (e.path == route::mailbox && !mailbox_.fill(e, number)) break;
            if constexpr (context::sums_on_device) e.device_sum = shared_.node.part(e.own);
            e.local_offsets = shared_.local_offsets(number);
            ledger.add(number, pending_in(e.path));
            local_.declare(e, number);
            shared_.node.arrive(number);
        }
        for (; ledger.arrived() > ledger.all_arrived() &&
               shared_.node.first_not_arrived(ledger.all_arrived()) < 0;
             ledger.arrive_all(), ++progress) {
            std::uint64_t const number = ledger.all_arrived();
            execution& e = ledger.at(number);
            if (int const other = local_.differs(e, number); other >= 0) {
                shared_.mismatch_on_node(other, e);
                break;
            }
            if constexpr (context::sums_on_device)
                if (!summed_on_device<Operations...>()) break;
        }
        return progress;
    }

    // Whether the devices have summed the next execution; has them sum what all local ranks have arrived at.
    template <class Reduce, class...> bool summed_on_device() noexcept {
        return shared_.node.template summed<typename Reduce::update, typename Reduce::element>(
            shared_.ledger.all_arrived(), shared_.ledger.arrived(), shared_.contributing_ranks,
            [this](std::uint64_t number) -> execution const& { return shared_.ledger.at(number); });
    }
    template <class Reduce, class...> void spread_on_device(std::uint64_t number) noexcept {
        shared_.node.template spread<typename Reduce::element>(number, shared_.ledger.at(number));
    }

    // Whether the result is complete when this rank has made it.
    static bool is_alone(execution const& e) noexcept {
        return e.path == route::mailbox || e.how == lending::swap;
    }

    std::size_t finish() noexcept {
        detail::execution_ledger& ledger = shared_.ledger;
        std::size_t progress = 0;
        for (; ledger.finished() < ledger.arrived() && !ledger.is_pending(ledger.finished()); ++progress) {
            std::uint64_t const number = ledger.finished();
            if constexpr (context::sums_on_device) {
                spread_on_device<Operations...>(number);
                if (shared_.node.failed() != nullptr) break; // nobody may take this for finished
            }
            shared_.node.finish(number, !is_alone(ledger.at(number)));
            ledger.finish();
        }
        for (std::uint64_t done = ledger.released().load(std::memory_order_relaxed);
             done < ledger.finished() &&
             (is_alone(ledger.at(done)) || shared_.node.first_not_finished(done) < 0);
             ++done, ++progress) {
            trace_(trace_event::bucket_reduced, ledger.at(done).label);
            if constexpr (context::on_device && !context::sums_on_device) shared_.node.store(done);
            ledger.release();
        }
        return progress;
    }

    context shared_;
    Trace& trace_;
    bool const networked_;
    local_route local_;
    mailbox_route mailbox_;
    detail::one_hop_route<context> one_hop_;
    detail::two_hop_route<context> two_hop_;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENGINE_ENGINE_HPP

// herring: the state machine that runs executions over an intra-node reducer and a transport.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ENGINE_HPP
#define HERRING_ENGINE_ENGINE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/counters.hpp"
#include "herring/engine/machine.hpp"
#include "herring/engine/operation.hpp"

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE {

/// Runs executions, in order, each by its route and its operation.
///
/// A state machine: `poll` does what can be done now and returns how much that was; it never waits. It knows
/// no clock and no thread; memory, messages and flags come from the policies. An execution is *submitted*; it
/// has *arrived* when this rank's data is in place, has *all arrived* when all local ranks' is, is *finished*
/// when this rank has done its chunks, and *released* when all local ranks have.
///
/// Threads:  `submit`, `requested`, `released`, `failed`: any one thread; all else: one (other) thread.
/// Memory:   plan.staging_bytes(peers) and O(ranks + executions); nothing is allocated after construction.
/// Errors:   the first one stays (`failed`); nothing moves after it.
template <class Transport, class IntraNode, class Trace, operation... Operations> class engine {
    using machine = detail::machine<Transport, IntraNode, Trace, typename Operations::traffic...>;

  public:
    /// `peers`: ranks of other nodes that this rank shares chunks with. `local_memory`: local_bytes(...) of
    /// this rank's region.
    HERRING_SETUP engine(failure_sink sink, int rank, topology const& map, herring::plan const& from,
                         Transport& transport, IntraNode& node, Trace& trace, std::span<int const> peers,
                         std::size_t executions, std::byte* local_memory, std::span<std::byte> staging)
        : machine_(sink, rank, map, from, transport, node, trace, peers, executions, local_memory, staging),
          operations_(std::in_place, static_cast<detail::engine_state&>(machine_.core),
                      machine_.core.traffic) {}
    engine(engine const&) = delete;
    engine& operator=(engine const&) = delete;

    /// Bytes of every rank's region that an engine needs for its local ranks: `local_memory` at construction.
    static constexpr std::size_t local_bytes(std::size_t executions, std::size_t mailbox_bytes) noexcept {
        return machine::local_bytes(executions, mailbox_bytes);
    }

    /// Posts the receives of the first window; the caller then waits for all ranks, so that no rank sends
    /// before.
    void open() noexcept { machine_.open(); }

    /// Hands over an execution; its memory belongs to the engine until it is released. At most as many may be
    /// outstanding as construction allowed. Returns its number.
    std::uint64_t submit(execution const& e) noexcept { return machine_.core.ledger.request(e); }

    /// The number by which executions name an operation of the engine's.
    template <class Operation> static constexpr std::uint8_t number_of() noexcept {
        static_assert((std::same_as<Operation, Operations> || ...));
        std::uint8_t number = 0;
        (void)((std::same_as<Operation, Operations> || (++number, false)) || ...);
        return number;
    }
    /// An operation of the engine's, and its traffic: what they keep is set and read between executions.
    template <class Operation> Operation& get() noexcept {
        return operations_.template at<number_of<Operation>()>();
    }
    template <class Operation> typename Operation::traffic& traffic_of() noexcept {
        return machine_.core.traffic.template at<number_of<Operation>()>();
    }

    /// Executions that were submitted.
    std::uint64_t requested() const noexcept { return submissions().load(std::memory_order_acquire); }
    /// Executions whose results lie in this rank's memory, which no rank reads or writes for them.
    std::uint64_t released() const noexcept { return releases().load(std::memory_order_acquire); }

    /// The same counts, for other threads.
    ///
    /// Lifetime: the engine's.
    std::atomic<std::uint64_t> const& submissions() const noexcept {
        return machine_.core.ledger.requested();
    }
    std::atomic<std::uint64_t> const& releases() const noexcept { return machine_.core.ledger.released(); }

    /// A released execution as it ended, until as many others as may be outstanding are submitted: how its
    /// ranks combined it, and the place that is this rank's now.
    execution const& ended(std::uint64_t number) noexcept { return machine_.core.ledger.at(number); }

    /// The first failure, or nullptr.
    failure const* failed() const noexcept { return machine_.core.failures.seen(); }
    /// Ends everything with this failure, here and, if `announce`, on every rank.
    void fail(failure const& why, bool announce = true) noexcept { machine_.core.end(why, announce); }

    /// The part that does not depend on operations: the rank that this rank waits for, and its suspicion.
    ///
    /// Threads: of the one that polls.
    typename machine::core_type::core& core() noexcept { return machine_.core; }

    /// Does what can be done now. Returns 0 when there was nothing.
    std::size_t poll() noexcept {
        if (machine_.is_failing()) return 0;
        auto& shared = machine_.core;
        std::size_t progress = machine_.receive();
        while (!machine_.is_failing() && machine_.next_has_arrived()) {
            if (!shared.memory.template sum<Operations...>(shared.ledger, shared.contributing_ranks)) break;
            shared.ledger.arrive_all();
            ++progress;
        }
        for (bool more = true; more && !machine_.is_failing();) {
            wanted_.what = detail::wanted_work::kind::none;
            progress += machine_.step(wanted_);
            more = wanted_.any();
            if (more) perform(wanted_);
        }
        for (; !machine_.is_failing() && machine_.next_is_done(); machine_.finish_next(), ++progress)
            if (!shared.memory.template spread<Operations...>(shared.ledger)) break;
        if (!machine_.is_failing()) return progress + machine_.release();
        machine_.core.publish(); // nothing is released from now on
        return 0;
    }

    herring::counters counters() const noexcept { return machine_.core.counters(); }
    /// Ends the statistics of one wait: who was waited for longest.
    void finish_wait_stats() noexcept { machine_.core.finish_wait_stats(); }

  private:
    void perform(detail::wanted_work const& wanted) noexcept {
        execution const& e = machine_.core.ledger.at(wanted.number);
        if constexpr (machine::core_type::is_traced) trace_fold(trace_event::fold_begin, wanted, e);
        operations_.with(e.operation, [&](auto& operation) {
            using kind = detail::wanted_work::kind;
            switch (wanted.what) {
            case kind::make_part:
                return operation.make_part(e, wanted.of, wanted.stage);
            case kind::sum_rack:
                if constexpr (requires { operation.sum_rack(e, wanted.of, wanted.parts, wanted.stage); })
                    operation.sum_rack(e, wanted.of, wanted.parts, wanted.stage);
                return;
            case kind::combine:
                return operation.combine(e, wanted.of, wanted.parts);
            case kind::combine_mailboxes:
                return operation.combine_mailboxes(e, wanted.boxes);
            case kind::combine_lent:
                return operation.combine_lent(e);
            case kind::none:
                return;
            }
        });
        if constexpr (machine::core_type::is_traced) trace_fold(trace_event::fold_end, wanted, e);
    }
    // Traces work that combines: one contribution alone is no sum, and is sent from where it lies.
    void trace_fold(trace_event event, detail::wanted_work const& wanted, execution const& e) noexcept {
        using kind = detail::wanted_work::kind;
        auto& core = machine_.core;
        if (wanted.what == kind::make_part && !core.is_staged()) return;
        bool const chunked = wanted.what <= kind::combine;
        core.trace.work(event, e, wanted.number, e.bytes(chunked ? wanted.of.elements : e.elements));
    }

    machine machine_;
    detail::wanted_work
        wanted_; // kept: to clear all of it in each poll costs as much as the rest of one that finds nothing
    detail::list_of<Operations...> operations_;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENGINE_ENGINE_HPP

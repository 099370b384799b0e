// herring: an engine without operations: executions, messages and routes, which return the work they want.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_MACHINE_HPP
#define HERRING_ENGINE_MACHINE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/core.hpp"
#include "herring/engine/failure_state.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/routes/dissemination.hpp"
#include "herring/engine/routes/local.hpp"
#include "herring/engine/routes/mailbox.hpp"
#include "herring/engine/routes/one_hop.hpp"
#include "herring/engine/routes/two_hop.hpp"
#include "herring/engine/routes/two_levels.hpp"
#include "herring/plan/plan.hpp"
#include "herring/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The routes between nodes over their windows (engine/core.hpp), in the order in which a step visits them. A
/// route is made from a core. It has `open()`, which posts the receives of the first window, `step(wanted)`,
/// and `cursors()`: what is pending for an execution besides messages.
template <class Core, class... Windows> class network_routes : Windows::template route_type<Core>... {
  public:
    HERRING_ALWAYS_INLINE explicit network_routes(Core& core) noexcept
        : Windows::template route_type<Core>(core)... {}

    HERRING_ALWAYS_INLINE void open() noexcept { (route_of<Windows>::open(), ...); }

    /// Does what can be done now; stops at the first work that it wants done, and when the engine fails.
    HERRING_ALWAYS_INLINE std::size_t step(failure_state const& failures, wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        (void)((progress += route_of<Windows>::step(wanted), wanted.any() || failures.is_failing()) || ...);
        return progress;
    }

    HERRING_ALWAYS_INLINE std::uint32_t cursors(route path) const noexcept {
        return ((path == Windows::path ? route_of<Windows>::cursors() : 0) + ...);
    }

  private:
    template <class Of> using route_of = typename Of::template route_type<Core>;
};

/// The routes between nodes, by their windows.
template <template <class...> class Of, class... First>
using with_network = Of<First..., two_hop_windows, one_hop_windows, dissemination_windows, two_level_windows>;

/// A core and what its operations send and receive: what the routes share.
template <class Transport, class IntraNode, class Trace, operation_traffic... Traffic>
struct traffic_core : with_network<engine_core, Transport, IntraNode, Trace> {
    using core = with_network<engine_core, Transport, IntraNode, Trace>;

    traffic_core(failure_sink sink, int rank, topology const& map, plan const& from, Transport& messages,
                 IntraNode& local_ranks, Trace& told, std::span<int const> with, std::size_t executions,
                 std::span<std::byte> staging)
        : core(sink, rank, map, from, messages, local_ranks, told, with, executions, staging),
          traffic(static_cast<engine_state&>(*this)) {}

    /// Bytes that node `from` sends of a chunk to node `to`.
    std::size_t part_bytes(execution const& e, chunk const& c, int from, int to) noexcept {
        return traffic.with(e.operation, [&](auto const& of) {
            return of.format(e, from).bytes(of.sends(e, c, from, to).elements);
        });
    }
    /// The bytes of this node's part of a chunk that go to node `to`.
    std::span<std::byte const> part(execution const& e, chunk const& c, int to, std::byte* stage) noexcept {
        return traffic.with(e.operation, [&](auto const& of) -> std::span<std::byte const> {
            range const what = of.sends(e, c, this->who.node, to);
            if (what.elements == 0) return {};
            return {of.part(e, c, what, stage), of.format(e, this->who.node).bytes(what.elements)};
        });
    }
    /// Returns the part of a chunk's result that a node gets.
    std::span<std::byte const> result_for(execution const& e, chunk const& c, int to) noexcept {
        return traffic.with(e.operation, [&](auto const& of) -> std::span<std::byte const> {
            if (!of.returns(e, c, to)) return {};
            if constexpr (returns_other_ranges<decltype(of)>)
                return of.result_to(e, c, to);
            else
                return {of.result(e, c), e.bytes(c.elements)};
        });
    }
    std::span<std::byte> landing(execution const& e, chunk const& c) noexcept {
        return traffic.with(e.operation, [&](auto const& of) -> std::span<std::byte> {
            if (!of.returns(e, c, this->who.node)) return {};
            if constexpr (returns_other_ranges<decltype(of)>)
                return {of.landing(e, c), e.bytes(of.returned(e, c, this->who.node).elements)};
            else
                return {of.landing(e, c), e.bytes(c.elements)};
        });
    }
    void take_result(execution const& e, chunk const& c) noexcept {
        traffic.with(e.operation, [&](auto const& of) { of.take_result(e, c); });
    }

    /// All parts of a chunk are here; `data(node)` is where that of another node lies.
    template <class Data>
    void want_combined(wanted_work& wanted, std::uint64_t number, chunk const& c, Data const& data) noexcept {
        std::size_t count = 0, before = 0;
        for (int const n : this->who.contributors()) {
            if (n == this->who.node)
                before = count;
            else
                this->node_parts[count++] = {n, data(n)};
        }
        std::span<node_part const> const parts(this->node_parts.data(), count);
        wanted.combine_parts(number, c, parts_view{parts.first(before), parts.subspan(before)});
    }

    list_of<Traffic...> traffic;
};

/// Moves executions along their routes. A step ends with the work on a chunk that it wants (`wanted_work`);
/// the engine does it at once, and the next step takes it for done. So nothing here depends on the type of
/// elements, and reducers of several types have it once.
template <class Transport, class IntraNode, class Trace, operation_traffic... Traffic> class machine {
  public:
    using core_type = traffic_core<Transport, IntraNode, Trace, Traffic...>;
    using mailbox_type = mailbox_route<core_type>;
    using local_type = local_route<core_type>;

    HERRING_SETUP machine(failure_sink sink, int rank, topology const& map, herring::plan const& from,
                          Transport& transport, IntraNode& node, Trace& trace, std::span<int const> peers,
                          std::size_t executions, std::byte* local_memory, std::span<std::byte> staging);

    static constexpr std::size_t local_bytes(std::size_t executions, std::size_t mailbox_bytes) noexcept {
        return local_type::memory_bytes(executions) + mailbox_type::memory_bytes(mailbox_bytes);
    }

    HERRING_SETUP void open() noexcept;

    bool is_failing() const noexcept { return core.failures.is_failing(); }

    /// Takes in what was submitted and what has come; has this rank arrive where it can.
    std::size_t receive() noexcept;

    /// True if all local ranks have arrived at one more execution, and it is the same for all.
    bool next_has_arrived() noexcept;

    /// Does what can be done now; stops at the first work that it wants done.
    std::size_t step(wanted_work& wanted) noexcept;

    /// True if nothing of the oldest unfinished execution is pending on this rank.
    bool next_is_done() const noexcept {
        return core.ledger.finished() < core.ledger.arrived() &&
               !core.ledger.is_pending(core.ledger.finished());
    }
    void finish_next() noexcept;
    /// Releases what all local ranks have finished.
    std::size_t release() noexcept;

    core_type core;

  private:
    // True if the result is complete when this rank has computed it.
    static bool is_alone(execution const& e) noexcept {
        return e.path == route::mailbox || e.how == lending::swap;
    }

    HERRING_ALWAYS_INLINE std::uint32_t pending_in(route path) const noexcept {
        if (path == route::mailbox) return mailbox_type::cursors();
        return path == route::local ? local_type::cursors() : network_.cursors(path);
    }

    std::size_t arrive() noexcept;

    Trace& trace_;
    bool const networked_;
    local_type local_;
    mailbox_type mailbox_;
    with_network<network_routes, core_type> network_;
};

template <class Transport, class IntraNode, class Trace, operation_traffic... Traffic>
void machine<Transport, IntraNode, Trace, Traffic...>::open() noexcept {
    network_.open();
}

template <class Transport, class IntraNode, class Trace, operation_traffic... Traffic>
std::size_t machine<Transport, IntraNode, Trace, Traffic...>::receive() noexcept {
    bool const was_idle = core.ledger.is_idle();
    core.ledger.take_requests();
    // An execution that begins is sent before anything is read: it needs nothing that has come.
    bool const begins = was_idle && !core.ledger.is_idle();
    std::size_t const progress = networked_ && !begins ? core.poll_transport() : 0;
    return is_failing() ? 0 : progress + arrive();
}

template <class Transport, class IntraNode, class Trace, operation_traffic... Traffic>
bool machine<Transport, IntraNode, Trace, Traffic...>::next_has_arrived() noexcept {
    std::uint64_t const number = core.ledger.all_arrived();
    if (core.ledger.arrived() <= number || core.node.first_not_arrived(number) >= 0) return false;
    int const other = local_.differs(core.ledger.at(number), number);
    if (other >= 0) core.mismatch_on_node(other, core.ledger.at(number), local_.stamp_of_rank(other, number));
    return other < 0;
}

template <class Transport, class IntraNode, class Trace, operation_traffic... Traffic>
std::size_t machine<Transport, IntraNode, Trace, Traffic...>::step(wanted_work& wanted) noexcept {
    std::size_t progress = mailbox_.step(wanted);
    if (!wanted.any() && !is_failing()) progress += local_.step(wanted);
    if (networked_ && !wanted.any() && !is_failing()) progress += network_.step(core.failures, wanted);
    return progress;
}

template <class Transport, class IntraNode, class Trace, operation_traffic... Traffic>
void machine<Transport, IntraNode, Trace, Traffic...>::finish_next() noexcept {
    std::uint64_t const number = core.ledger.finished();
    core.node.finish(number, !is_alone(core.ledger.at(number)));
    core.ledger.finish();
}

template <class Transport, class IntraNode, class Trace, operation_traffic... Traffic>
std::size_t machine<Transport, IntraNode, Trace, Traffic...>::release() noexcept {
    std::size_t progress = 0;
    for (std::uint64_t done = core.ledger.released().load(std::memory_order_relaxed);
         done < core.ledger.finished() &&
         (is_alone(core.ledger.at(done)) || core.node.first_not_finished(done) < 0);
         ++done, ++progress) {
        std::uint32_t const label = core.ledger.at(done).label;
        if constexpr (core_type::is_traced)
            trace_.record(trace_event::bucket_reduced, {.index = label, .execution = done});
        else
            trace_(trace_event::bucket_reduced, label);
        core.memory.store(done);
        core.ledger.release();
    }
    if constexpr (requires { core.memory.trace_copies(core); }) core.memory.trace_copies(core);
    return progress;
}

template <class Transport, class IntraNode, class Trace, operation_traffic... Traffic>
std::size_t machine<Transport, IntraNode, Trace, Traffic...>::arrive() noexcept {
    execution_ledger& ledger = core.ledger;
    std::size_t progress = 0;
    if (failure const* const why = core.memory.failed()) return core.failures.fail(*why, true), progress;
    for (; ledger.arrived() < ledger.submitted(); ledger.arrive(), ++progress) {
        std::uint64_t const number = ledger.arrived();
        execution& e = ledger.at(number);
        if (e.element_bytes == 0) e.element_bytes = core.element_bytes;
        if (!core.memory.is_loaded(number, ledger.submitted())) break;
        if (e.path == route::mailbox && !mailbox_.fill(e, number)) break;
        core.memory.place_sum(e);
        e.local_offsets = core.local_offsets(number);
        ledger.add(number, pending_in(e.path));
        if (e.path != route::mailbox) local_.declare(e, number); // mailboxes have stamps of their own
        core.node.arrive(number);
    }
    if constexpr (requires { core.memory.trace_copies(core); }) core.memory.trace_copies(core);
    return progress;
}

template <class Transport, class IntraNode, class Trace, operation_traffic... Traffic>
machine<Transport, IntraNode, Trace, Traffic...>::machine(failure_sink sink, int rank, topology const& map,
                                                          herring::plan const& from, Transport& transport,
                                                          IntraNode& node, Trace& trace,
                                                          std::span<int const> peers, std::size_t executions,
                                                          std::byte* local_memory,
                                                          std::span<std::byte> staging)
    : core(sink, rank, map, from, transport, node, trace, peers, executions, staging), trace_(trace),
      networked_(map.nodes() > 1), local_(core, local_memory),
      mailbox_(core, from.tuning.mailbox_bytes,
               local_memory == nullptr ? nullptr : local_memory + local_type::memory_bytes(executions)),
      network_(core) {}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_MACHINE_HPP

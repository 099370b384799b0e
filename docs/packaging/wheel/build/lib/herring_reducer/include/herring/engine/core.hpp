// herring: an engine's messages: posts and completions, its peers, and the rank that this rank waits for.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_CORE_HPP
#define HERRING_ENGINE_CORE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/messages.hpp"
#include "herring/engine/node_memory.hpp"
#include "herring/engine/state.hpp"
#include "herring/engine/tracer.hpp"
#include "herring/engine/window.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/model/roles.hpp"
#include "herring/trace/trace.hpp"
#include "herring/transport/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE {

/// The rank that an engine waits for, and the reason.
struct wait_target {
    int rank = -1;
    bool gone = false; ///< and it never will: it has left
    char const* text = "";
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail {

/// An engine's state with its transport, the flags of its node and the windows of its routes between nodes:
/// the part that does not depend on operations.
///
/// `Windows`: the messages of one route, constructed from the state, the plan and the staging memory, from
/// whose front it takes its slots. A completion goes to the route whose message it is by branches.
/// - `path`: the route; `route_type<Core>`: what moves executions over the windows (`network_routes`).
/// - `kinds`: of messages (`kind_bit`); a kind has one route.
/// - `received(about, what)`: a message has come into the slot that its receive named.
/// - `sent(about)`: a message is out, and its memory may be written again.
/// - `only_awaited()`, where a route has it: whose message it waits for, if one is all that can move it on;
///   else nullptr.
/// - `awaited(ask)`: calls ask(place among the peers, execution, text) for each peer without which the route
///   cannot go on, as long as that returns true.
template <class Transport, class IntraNode, class Trace, class... Windows>
struct engine_core : engine_state, Windows... {
    static constexpr bool is_traced = traces_details<Trace>; ///< by a policy that takes messages and waits
    engine_core(failure_sink sink, int rank, topology const& map, plan const& from, Transport& messages,
                IntraNode& local_ranks, Trace& told, std::span<int const> with, std::size_t executions,
                std::span<std::byte> staging)
        : engine_state(sink, rank, map, from, with, executions), Windows(*this, from, staging)...,
          transport(messages), node(local_ranks), memory(local_ranks), trace(told, with.size()) {}
    engine_core(engine_core const&) = delete;
    engine_core& operator=(engine_core const&) = delete;

    // ---- chunks -------------------------------------------------------------------------------------------

    /// Brings a cursor to its next chunk in an execution of its route that all local ranks have arrived at;
    /// ends what is pending for it in each one of that route that it has no more chunks of.
    bool next_chunk(chunk_cursor& cursor, route path) noexcept {
        for (; cursor.at < ledger.all_arrived(); cursor.next_execution()) {
            execution const& e = ledger.at(cursor.at);
            if (e.path != path) continue;
            if (cursor.stream.any() && cursor.settle(e)) return true;
            ledger.done(cursor.at);
        }
        return false;
    }

    // ---- messages -----------------------------------------------------------------------------------------

    /// False: not now, or never because the peer is lost.
    bool send(std::size_t to, message what, std::uint64_t number, std::span<std::byte const> from,
              std::size_t slot, std::uint64_t execution_number) noexcept {
        peer& p = peers[to];
        // Counted first: the completion may come before the post returns.
        ledger.add(execution_number);
        ++p.sends;
        if constexpr (is_traced)
            trace.sends(to, what, number, p.rank, ledger.at(execution_number), execution_number, from.size());
        if (transport.post_send(peer_id::at(to),
                                tag_of(what, number, ledger.at(execution_number).fingerprint,
                                       ledger.network_number(execution_number)),
                                from, token{what, to, slot, execution_number}.packed()))
            return true;
        ledger.done(execution_number);
        --p.sends;
        require_peer(p);
        return false;
    }
    /// False: not now. The caller says if the peer is needed now (`require_peer`): a receive may be for a
    /// message that is never sent.
    bool receive(std::size_t from, message what, std::uint64_t number, std::span<std::byte> into,
                 std::size_t slot) noexcept {
        return transport.post_receive(peer_id::at(from), tag_of(what, number), into,
                                      token{what, from, slot, 0}.packed());
    }

    /// Called when nothing moves without this peer. If it is lost, the engine fails, unless there is a
    /// failure elsewhere because of which the peer has left: the driver looks for that first.
    void require_peer(peer const& p) noexcept {
        if (p.lost && failures.suspicion.what == errc::ok)
            failures.suspicion =
                failure::make(p.why, who.rank, p.rank, "reduce",
                              transport.describe(peer_id::at(static_cast<std::size_t>(&p - peers.data()))));
    }

    // ---- failures -----------------------------------------------------------------------------------------

    /// Shows the failure to the caller's thread. From now on nothing touches the caller's memory.
    HERRING_SETUP void publish() noexcept {
        if (failures.is_published()) return;
        memory.give_up();
        if constexpr (Transport::facts.abandons) transport.abandon();
        failures.publish();
    }
    /// Both: nothing of this engine's is under way beside the call.
    void end(failure const& why, bool announce = true) noexcept {
        failures.fail(why, announce);
        publish();
    }

    // ---- what the transport reports -----------------------------------------------------------------------

    /// Where all that is under way waits for one message, most polls look at its sender alone: every further
    /// connection may cost a system call, and what others have sent early is for later. TCP acknowledges what
    /// was read on its own; what is read when its answer is out needs no packet for that.
    // Out of line: else each type would have the transport's loops of its own.
    [[gnu::noinline]] std::size_t poll_transport() noexcept {
        auto const take = [this](completion const& done) noexcept { on(done); };
        if constexpr (clauses::transport::polls_from<Transport>) {
            awaited_peer const* const one = only_awaited();
            if (one != nullptr && ++narrow_polls_ < polls_for_all)
                return transport.poll_from(peer_id::at(one->place), take);
            narrow_polls_ = 0;
        }
        return transport.poll(take);
    }

    /// Sleeps until the transport has something from any peer, or `until`. The next poll looks at all.
    void sleep_on_transport(time_point until) noexcept {
        narrow_polls_ = polls_for_all;
        transport.wait(until);
    }

    // ---- whom this rank waits for -------------------------------------------------------------------------

    /// Returns the rank that this rank waits for right now; rank −1: none.
    // Names a rank for the oldest execution that waits: a rank that is late for a younger one may itself be
    // held up by the rank that is late for the older. So a chain of «waits for» never leads to a younger
    // execution, and has an end.
    [[gnu::noinline]] wait_target waiting_for() noexcept {
        std::uint64_t const first = ledger.released().load(std::memory_order_relaxed);
        std::uint64_t const gathered = ledger.all_arrived();
        wait_target found;
        std::uint64_t oldest = ledger.submitted();
        // False: no other peer can say more. One of many mostly says all.
        auto const consider = [&](std::size_t place, std::uint64_t execution, char const* text) noexcept {
            require_peer(peers[place]);
            if (execution < oldest) {
                found = {peers[place].rank, false, text};
                oldest = execution;
            }
            return oldest > first || any_lost_;
        };
        auto const consider_local = [&](int l, std::uint64_t execution, char const* text) noexcept {
            if (l < 0 || execution >= oldest) return;
            found = {who.map.rank_of(who.node, l), node.has_left(l), text};
            oldest = execution;
        };
        if (first >= oldest) return found;
        memory.awaited(ledger, who.local, consider_local);
        if (gathered < ledger.submitted())
            consider_local(node.first_not_arrived(gathered), gathered, "it has not submitted this operation");
        (Windows::awaited(consider), ...);
        if (found.rank >= 0 && oldest <= first) return found;
        consider_local(node.first_not_finished(first), first,
                       "it has not finished its share of the node's sum");
        for (std::size_t i = 0; i < peers.size(); ++i)
            if (peers[i].sends > 0 && !consider(i, first, "it takes no data")) break;
        return found;
    }

    Transport& transport;
    IntraNode& node;
    [[no_unique_address]] node_memory<IntraNode, Transport> memory;
    [[no_unique_address]] tracer<Trace> trace;

  private:
    /// At least one in so many polls looks at all peers: some may be lost, and early messages must not fill
    /// their connections.
    static constexpr std::uint32_t polls_for_all = 16;

    template <class Of> awaited_peer const* only_awaited_in(std::uint64_t execution) const noexcept {
        if constexpr (requires(Of const& windows) { windows.only_awaited(); })
            if (awaited_peer const* const one = Of::only_awaited();
                one != nullptr && one->execution == execution)
                return one;
        return nullptr;
    }
    awaited_peer const* only_awaited() const noexcept {
        if (ledger.submitted() != ledger.released().load(std::memory_order_relaxed) + 1) return nullptr;
        std::uint64_t const at = ledger.released().load(std::memory_order_relaxed);
        awaited_peer const* found = nullptr;
        (void)(((found = only_awaited_in<Windows>(at)) != nullptr) || ...);
        return found;
    }

    std::uint32_t narrow_polls_ = 0; // since one that looked at all
    bool any_lost_ = false;          // peer

    void on(completion const& done) noexcept {
        if (failures.is_failing()) return;
        if (done.what == completion::lost) {
            peer& gone = peers[done.peer.place()];
            gone.lost = any_lost_ = true;
            gone.why = done.why;
            return;
        }
        token const about = token::unpacked(done.token);
        std::uint64_t const kind = kind_bit(about.what);
        if (done.what == completion::received) {
            messages_received.add(1);
            bytes_received.add(done.bytes);
            if constexpr (is_traced) trace.arrived(about, done, peers[about.peer].rank, ledger);
            arrival const what = arrival_of(done);
            (void)(((kind & Windows::kinds) != 0 && (Windows::received(about, what), true)) || ...);
        } else {
            messages_sent.add(1);
            bytes_sent.add(done.bytes);
            (void)(((kind & Windows::kinds) != 0 && (Windows::sent(about), true)) || ...);
            ledger.done(about.execution);
            --peers[about.peer].sends;
        }
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_CORE_HPP

// herring: the route of a large bucket over several nodes: push to the chunk's server, combine there, return.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_TWO_HOP_HPP
#define HERRING_ENGINE_ROUTES_TWO_HOP_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/core.hpp"
#include "herring/engine/messages.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/routes/pushes.hpp"
#include "herring/engine/window.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

template <class Core> class two_hop_route;

/// The memory of two hops: for each peer the pushes to it, its own pushes, and the results that have arrived.
///
/// Memory: window · chunk for the pushes of each peer; as much where this rank's parts are staged.
struct two_hop_windows {
    template <class Core> using route_type = two_hop_route<Core>;
    static constexpr route path = route::two_hop;
    static constexpr std::uint64_t kinds = kind_bit(message::push) | kind_bit(message::result);

    HERRING_SEPARABLE two_hop_windows(engine_state& state, plan const& from, std::span<std::byte>& staging);

    HERRING_ALWAYS_INLINE void received(token const& about, arrival const& what) noexcept {
        if (about.what == message::result) {
            results[results_in++] = {about.peer, about.slot, what};
        } else {
            pairs[about.peer].served.arrives(about.slot, what);
            stale.came(about.peer);
        }
    }
    HERRING_ALWAYS_INLINE void sent(token const&) noexcept {}
    awaited_peer const* only_awaited() const noexcept { return only.any ? &only : nullptr; }
    template <class Ask> HERRING_ALWAYS_INLINE void awaited(Ask const& ask) noexcept {
        if (missing.any && !ask(missing.place, missing.execution, "its part has not come")) return;
        for (std::size_t i = 0; i < pairs.size(); ++i)
            if (push_window const& out = pairs[i].pushes;
                out.any_unanswered() &&
                !ask(i, out.oldest_unanswered().execution, "it has not returned the sum"))
                return;
    }

    /// Posts a push to a server that belongs to no execution and gets no result; no push to this server
    /// follows it. False: not now, or never because the peer is lost.
    template <class Core>
    bool send_unanswered(Core& core, std::size_t to, std::uint32_t fingerprint,
                         std::span<std::byte const> from) noexcept {
        // Counted as a message of the execution that would be the next one.
        std::uint64_t const number = core.ledger.submitted();
        core.ledger.add(number);
        ++core.peers[to].sends;
        if (core.transport.post_send(peer_id::at(to),
                                     tag_of(message::push, pairs[to].pushes.next(), fingerprint,
                                            core.ledger.networked_before(number)),
                                     from, token{message::push, to, 0, number}.packed()))
            return true;
        core.ledger.done(number);
        --core.peers[to].sends;
        return false;
    }

    /// The exchange with one peer.
    struct pair {
        chunk_cursor push_cursor; ///< chunks that this rank pushes to the peer
        push_order order;         ///< of these chunks, among the pushes to all peers
        push_window pushes;       ///< of this rank
        serve_window served;      ///< pushes of the peer
        slot_row slot_memory;     ///< of the peer's pushes
        slot_row stages;          ///< of this rank's parts
    };
    fixed_array<pair> pairs; ///< one for each peer

    /// Results that have arrived and are not taken yet; no more than pushes are in flight.
    struct result_arrival {
        std::size_t peer = 0;
        std::size_t slot = 0;
        arrival what;
    };
    fixed_array<result_arrival> results;
    std::size_t results_in = 0;

    /// Peers that something may be pushed to: all when an execution has arrived, and those whose results
    /// come.
    peer_queue ready;

    std::uint32_t const window;
    bool const ordered;     ///< servers have unequal shares
    awaited_peer missing{}; ///< the peer whose push the service waits for
    awaited_peer
        only{};        ///< the only peer whose message a narrow execution waits for, or the last one sent to
    stale_watch stale; ///< of the pushes of peers
};

/// As a contributor this rank pushes its node's part of a chunk to the rank that serves the chunk, at most
/// `window` chunks a peer ahead of the results. As a server it keeps one slot for each contributor and chunk,
/// combines all parts in the order of the nodes once the last has arrived, and returns the result, which is
/// the credit for the next push. A part or a result that the operation leaves empty is sent too, for the
/// credit.
///
/// Cost:   2(n−1)/n of the bucket out and in, for each of n nodes; two messages a chunk and peer.
/// Source: Herring, SC'20; k-way sums in rank order for the same bits in every run.
template <class Core> class two_hop_route {
  public:
    explicit two_hop_route(Core& core) noexcept
        : shared_(core), windows_(core), serving_(core.who.own_chunks(), core.who.server) {
        while (first_ < core.peers.size() && core.peers[first_].rank < core.who.rank) ++first_;
        if (first_ == core.peers.size()) first_ = 0;
    }

    /// Posts the receives of the first window; `step` posts those that the transport refuses now.
    void open() noexcept { receives_owed_ = !open_windows(); }

    /// Cursors that have to pass before an execution of this route is complete, besides its messages.
    std::uint32_t cursors() const noexcept { return 1 + static_cast<std::uint32_t>(shared_.peers.size()); }

    std::size_t step(wanted_work& wanted) noexcept {
        if (receives_owed_) receives_owed_ = !open_windows();
        take_results();
        if (shared_.failures.is_failing()) return 0;
        std::size_t const progress = serve(wanted);
        return wanted.any() ? progress : progress + push(wanted);
    }

  private:
    static constexpr std::size_t most_narrow_bytes =
        16 << 10; // fits a socket's buffer, so that no sender waits for its reader

    std::size_t serve(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        windows_.missing.any = false;
        while (shared_.next_chunk(serving_, route::two_hop)) {
            execution const& e = shared_.ledger.at(serving_.at);
            chunk const c = serving_.here(e);
            if (!combined_) {
                if (!is_complete(e, c)) return progress;
                combined_ = true; // at the next call
                shared_.want_combined(wanted, serving_.at, c, [&](int n) {
                    two_hop_windows::pair& from = windows_.pairs[shared_.who.handler(n, c)];
                    return from.slot_memory.at(from.served.next() % windows_.window).data();
                });
                return progress + 1;
            }
            // Results leave in order of the nodes from behind this node on, so that servers do not all send
            // to one node.
            for (; answered_ < shared_.who.contributors().size(); ++answered_) {
                int const to = shared_.who.contributor_behind(answered_);
                if (to == shared_.who.node) continue;
                std::size_t const peer = shared_.who.handler(to, c);
                two_hop_windows::pair& answered = windows_.pairs[peer];
                if (!answer_push(shared_, peer, answered.served, answered.slot_memory, message::push,
                                 message::result, shared_.result_for(e, c, to), serving_.at))
                    return progress;
                ++progress;
            }
            shared_.ledger.handled(serving_.at);
            combined_ = false;
            answered_ = 0;
            complete_ = 0;
            serving_.next_chunk();
        }
        find_stale();
        return progress;
    }

    // A push may lie here for an execution that took another route on this rank.
    void find_stale() noexcept {
        windows_.stale.look(serving_.at, [this](std::size_t i) noexcept {
            return shared_.is_stale(shared_.peers[i].rank, windows_.pairs[i].served.arrived(), serving_.at);
        });
    }

    // True if all parts of the chunk are here; goes on at the contributor that was missing last time.
    bool is_complete(execution const& e, chunk const& c) noexcept {
        for (; complete_ < shared_.who.contributors().size(); ++complete_) {
            int const from = shared_.who.contributors()[complete_];
            if (from == shared_.who.node) continue;
            std::size_t const peer = shared_.who.handler(from, c);
            arrival const& got = windows_.pairs[peer].served.arrived();
            if (!got.here) {
                windows_.missing = {true, peer, serving_.at};
                if (is_narrow(e)) windows_.only = windows_.missing;
                shared_.require_peer(shared_.peers[peer]);
                return false;
            }
            if (!shared_.matches(shared_.peers[peer].rank, got, e,
                                 shared_.part_bytes(e, c, from, shared_.who.node)))
                return false;
        }
        return true;
    }

    // True if the execution waits for one small message at a time on this rank. Larger messages arrive
    // concurrently.
    bool is_narrow(execution const& e) const noexcept {
        return e.shard_count == 1 && e.shards->chunks == 1 &&
               shared_.sum_parts.bytes(e.elements) <= most_narrow_bytes;
    }

    bool open_windows() noexcept {
        for (std::size_t i = 0; i < shared_.peers.size(); ++i)
            if (two_hop_windows::pair& from = windows_.pairs[i];
                !post_pushes(shared_, i, from.served, from.slot_memory, message::push, from.served.size()))
                return false;
        return true;
    }

    // Takes the results that have arrived, in place.
    void take_results() noexcept {
        for (std::size_t i = 0; i < windows_.results_in && !shared_.failures.is_failing(); ++i) {
            auto const& [from, slot, what] = windows_.results[i];
            push_window& pushes = windows_.pairs[from].pushes;
            push_window::flight const& back = pushes.in_slot(slot);
            execution const& e = shared_.ledger.at(back.execution);
            if (!shared_.matches(shared_.peers[from].rank, what, e, shared_.landing(e, back.what).size()))
                break;
            shared_.take_result(e, back.what);
            shared_.ledger.done(back.execution);
            pushes.answered(slot);
            windows_.ready.add(from);
        }
        windows_.results_in = 0;
    }

    // Pushes one chunk a peer and turn, from behind this rank on, so that every server has work at once.
    // Among servers of unequal shares a small share waits for the large ones, so that all end together.
    // Looks at peers alone that have something to do: a walk over all would cost each poll as many peers.
    std::size_t push(wanted_work& wanted) noexcept {
        peer_queue& ready = windows_.ready;
        if (std::uint64_t const all = shared_.ledger.all_arrived(); all != listed_) {
            listed_ = all;
            for (std::size_t i = first_; i < ready.room(); ++i) ready.add(i);
            for (std::size_t i = 0; i < first_; ++i) ready.add(i);
        }
        if (windows_.ordered) furthest_back_ = find_furthest_back();
        return push_in_turn(ready, [&](std::size_t to) { return push_one(to, wanted); });
    }

    // The place of the push that is due first, in the order that all contributors share.
    std::uint64_t find_furthest_back() noexcept {
        std::uint64_t least = ~std::uint64_t{0};
        for (two_hop_windows::pair& to : windows_.pairs)
            if (shared_.next_chunk(to.push_cursor, route::two_hop)) least = std::min(least, place_of(to));
        return least;
    }
    std::uint64_t place_of(two_hop_windows::pair& to) noexcept {
        std::uint64_t const number = to.push_cursor.at;
        return to.order.place(to.push_cursor, shared_.ledger.at(number),
                              shared_.ledger.elements_before(number));
    }
    // True if the peer's next push is ahead of the push that is due first by as much as a window. The push
    // that is due first in the order that all contributors share is never held up, so there is no ring of
    // ranks that wait for each other (docs/design/engine.md).
    bool is_ahead(two_hop_windows::pair& to) noexcept {
        std::uint64_t const place = place_of(to);
        return place > furthest_back_ &&
               place - furthest_back_ > (windows_.window - 1) * to.order.stride(to.push_cursor.stream);
    }

    push_turn push_one(std::size_t to, wanted_work& wanted) noexcept {
        auto& [cursor, order, pushes, served, slot_memory, stages] = windows_.pairs[to];
        if (!shared_.next_chunk(cursor, route::two_hop)) return push_turn::nothing;
        if (!pushes.has_credit()) {
            shared_.require_peer(shared_.peers[to]);
            if constexpr (Core::is_traced)
                shared_.trace.stalled(to, shared_.peers[to].rank, pushes.next(), shared_.ledger.at(cursor.at),
                                      cursor.at);
            return push_turn::nothing;
        }
        if (windows_.ordered && !pushes.is_prepared() && is_ahead(windows_.pairs[to]))
            return push_turn::refused;
        std::uint64_t const number = cursor.at;
        push_turn const ended =
            push_part(shared_, to, shared_.who.map.node(shared_.peers[to].rank), cursor, pushes,
                      stages.at(pushes.slot()).data(), message::push, message::result, wanted);
        if (ended == push_turn::pushed && is_narrow(shared_.ledger.at(number)))
            windows_.only = {true, to, number};
        return ended;
    }

    Core& shared_;
    two_hop_windows& windows_;
    std::size_t first_ = 0;           // the peer to begin with
    std::uint64_t listed_ = 0;        // executions that all peers were listed for
    std::uint64_t furthest_back_ = 0; // place of the push that was due first when this call began
    chunk_cursor serving_;
    bool combined_ = false;      // the chunk under the cursor
    std::size_t answered_ = 0;   // contributors, counted from this node
    std::size_t complete_ = 0;   // contributors whose part is here
    bool receives_owed_ = false; // receives of the first window could not be posted yet
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/engine/routes/two_hop_impl.hpp"
#endif

#endif // HERRING_ENGINE_ROUTES_TWO_HOP_HPP

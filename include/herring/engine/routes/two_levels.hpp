// herring: the route of a large sum over racks: nodes' parts to their rack's sum, these to the sum, and back.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_TWO_LEVELS_HPP
#define HERRING_ENGINE_ROUTES_TWO_LEVELS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/core.hpp"
#include "herring/engine/messages.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/routes/pushes.hpp"
#include "herring/engine/window.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

template <class Core> class two_level_route;

/// The memory of two levels: exchanges with the other nodes of the rack, and with the node at the same place
/// of each other rack; the window of chunks that this rank sums for its rack.
///
/// Memory: window · chunk for each other node of the rack, twice where parts are staged; window · chunk of
///         accumulators for the sums of this rack, and as much for those of all others.
struct two_level_windows {
    template <class Core> using route_type = two_level_route<Core>;
    static constexpr route path = route::two_levels;
    static constexpr std::uint64_t kinds = kind_bit(message::near_push) | kind_bit(message::near_result) |
                                           kind_bit(message::rack_push) | kind_bit(message::rack_result);

    HERRING_SEPARABLE two_level_windows(engine_state& state, plan const& from, std::span<std::byte>& staging);

    HERRING_ALWAYS_INLINE void received(token const& about, arrival const& what) noexcept {
        if (about.what == message::near_result || about.what == message::rack_result) {
            results[results_in++] = {about.peer, about.slot, what};
        } else {
            links[link_of_peer[about.peer]].served.arrives(about.slot, what);
            stale.came(about.peer);
        }
    }
    HERRING_ALWAYS_INLINE void sent(token const&) noexcept {}
    template <class Ask> HERRING_ALWAYS_INLINE void awaited(Ask const& ask) const noexcept {
        if (missing.any && !ask(missing.place, missing.execution, "its part has not come")) return;
        for (link const& to : links)
            if (to.pushes.any_unanswered() &&
                !ask(to.peer, to.pushes.oldest_unanswered().execution, "it has not returned the sum"))
                return;
    }

    /// The exchange with one peer: a near one, of this rack, or a far one.
    struct link {
        std::size_t peer = 0; ///< place among the peers
        int node = 0;
        chunk_cursor cursor;  ///< near: chunks that this rank pushes to the peer
        push_window pushes;   ///< of this rank
        serve_window served;  ///< pushes of the peer
        slot_row slot_memory; ///< of these
        slot_row stages;      ///< near: of this rank's parts
    };
    fixed_array<link> links; ///< near ones, then far ones, by node
    fixed_array<std::uint32_t> link_of_peer;
    std::size_t near = 0; ///< number of near ones

    struct result_arrival {
        std::size_t peer = 0;
        std::size_t slot = 0;
        arrival what;
    };
    fixed_array<result_arrival> results; ///< that have arrived and are not taken yet
    std::size_t results_in = 0;

    /// A chunk that this rank sums for its rack.
    struct summed_chunk {
        std::uint64_t execution = 0;
        chunk what;
        int results = 0; ///< racks whose part of the result is here
    };
    fixed_array<summed_chunk> chunks; ///< the window
    slot_row sums;                    ///< of these chunks, in accumulators
    peer_queue ready;                 ///< near links that something may be pushed to

    part_format const rack_parts; ///< of the sum of a rack
    std::size_t const line_elements;
    awaited_peer missing{}; ///< the peer whose part is missing
    stale_watch stale;      ///< of the pushes of peers
};

/// Every shard has a column: one node in each rack, all at the same place. A rank pushes its node's part of a
/// chunk to the column's node of its rack, which sums the rack's parts in their order. The column's nodes
/// divide the chunk among the racks (`rack_share`): each gets the sums of all racks for its share, in
/// accumulators, combines them in the order of the racks, and returns the result to the other racks. A rank
/// that has all shares of a chunk returns it within its rack. A result is the credit for the next push.
///
/// A rank has a window of the chunks that it sums for its rack, in one order on all nodes of the column. So
/// the first chunk in it that is not complete waits for no later one, on any rank.
///
/// Shape:  racks of as many nodes each, nodes of as many ranks each, which exchange messages with those of
///         their local number.
/// Cost:   2(m−1)/m of the bucket out and in within a rack of m nodes; between r racks (r−1)/(r·m) of it in
///         accumulators, and as much of results; two messages a chunk to each of m−1 + r−1 peers; four
///         latencies.
/// Source: Parameter Hub, SoCC'18 (hierarchical reduction across racks).
template <class Core> class two_level_route {
    using link = two_level_windows::link;
    using summed_chunk = two_level_windows::summed_chunk;

  public:
    explicit two_level_route(Core& core) noexcept
        : shared_(core), windows_(core), near_(windows_.near), far_(windows_.links.size() - near_),
          racks_(static_cast<int>(far_) + 1), rack_(core.who.map.rack(core.who.node)),
          place_(core.who.node % static_cast<int>(near_ + 1)),
          summing_(core.who.own_chunks(), server_id{place_}) {}

    /// Posts the receives of the first window; `step` posts those that the transport refuses now.
    void open() noexcept { receives_owed_ = !open_windows(); }

    /// Cursors that have to pass before an execution of this route is complete, besides messages and chunks.
    std::uint32_t cursors() const noexcept { return 1 + static_cast<std::uint32_t>(near_); }

    std::size_t step(wanted_work& wanted) noexcept {
        if (receives_owed_) receives_owed_ = !open_windows();
        take_results();
        if (shared_.failures.is_failing()) return 0;
        windows_.missing.any = false;
        std::size_t progress = begin() + sum_rack(wanted);
        if (!wanted.any()) progress += sum_racks(wanted);
        if (!wanted.any()) progress += return_results();
        if (!wanted.any()) find_stale();
        return wanted.any() ? progress : progress + push(wanted);
    }

  private:
    summed_chunk& at(std::uint64_t number) noexcept { return windows_.chunks[slot_of(number)]; }
    std::size_t slot_of(std::uint64_t number) const noexcept { return number % windows_.chunks.size(); }
    execution const& execution_of(summed_chunk const& x) noexcept { return shared_.ledger.at(x.execution); }
    link& far_behind(std::size_t steps) noexcept {
        return windows_.links[near_ + (static_cast<std::size_t>(rack_) + steps) % far_];
    }
    // A rack's share of a chunk, and the bytes of its sum.
    chunk share_of(chunk const& c, int rack) const noexcept {
        range const part = rack_share(c.range(), rack, racks_, windows_.line_elements);
        return {part.offset, part.elements, c.turn};
    }
    std::size_t sum_bytes(execution const& e, chunk const& c, int from, int to) noexcept {
        return shared_.part_bytes(e, c, from, to) > 0 ? windows_.rack_parts.bytes(c.elements) : 0;
    }
    std::byte* sum_at(std::uint64_t number, chunk const& c) noexcept {
        return windows_.sums.at(slot_of(number)).data() +
               windows_.rack_parts.bytes(c.offset - at(number).what.offset);
    }

    std::size_t begin() noexcept {
        std::size_t progress = 0;
        for (; begun_ - returned_ < windows_.chunks.size() && shared_.next_chunk(summing_, route::two_levels);
             ++begun_, ++progress, summing_.next_chunk()) {
            at(begun_) = {summing_.at, summing_.here(shared_.ledger.at(summing_.at))};
            shared_.ledger.add(summing_.at); // until its result is returned
        }
        return progress;
    }

    // True if push `number` of a peer is here.
    bool is_here(link const& from, std::uint64_t number, std::size_t bytes) noexcept {
        arrival const& got = from.served.arrived(number);
        summed_chunk const& x = at(number);
        if (!got.here) {
            if (!windows_.missing.any || x.execution < windows_.missing.execution)
                windows_.missing = {true, from.peer, x.execution};
            shared_.require_peer(shared_.peers[from.peer]);
            return false;
        }
        return shared_.matches(shared_.peers[from.peer].rank, got, execution_of(x), bytes);
    }

    // Sums the rack's parts of a chunk, and pushes the racks' shares of the sum.
    std::size_t sum_rack(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        for (; summed_ < begun_; ++summed_, summing_now_ = false, near_here_ = told_ = 0) {
            summed_chunk const& x = at(summed_);
            execution const& e = execution_of(x);
            if (!summing_now_) {
                for (; near_here_ < near_; ++near_here_)
                    if (link const& from = windows_.links[near_here_];
                        !is_here(from, summed_, shared_.part_bytes(e, x.what, from.node, shared_.who.node)))
                        return progress;
                summing_now_ = true; // at the next call
                for (std::size_t i = 0; i < near_; ++i)
                    shared_.node_parts[i] = {windows_.links[i].node,
                                             windows_.links[i].slot_memory.at(slot_of(summed_)).data()};
                std::span<node_part const> const parts(shared_.node_parts.data(), near_);
                auto const before = static_cast<std::size_t>(place_);
                wanted.sum_rack_of(x.execution, x.what, {parts.first(before), parts.subspan(before)},
                                   sum_at(summed_, x.what));
                return progress + 1;
            }
            for (; told_ < far_; ++told_, ++progress) {
                link& to = far_behind(told_);
                chunk const share = share_of(x.what, shared_.who.map.rack(to.node));
                if (!to.pushes.is_prepared()) {
                    if (!shared_.receive(to.peer, message::rack_result, summed_, shared_.landing(e, share),
                                         slot_of(summed_))) {
                        shared_.require_peer(shared_.peers[to.peer]);
                        return progress;
                    }
                    shared_.ledger.add(x.execution);
                    to.pushes.prepare(share, x.execution);
                }
                if (!shared_.send(to.peer, message::rack_push, summed_,
                                  {sum_at(summed_, share), sum_bytes(e, share, shared_.who.node, to.node)},
                                  slot_of(summed_), x.execution))
                    return progress;
                to.pushes.sent();
            }
        }
        return progress;
    }

    // Combines this rack's share of a chunk, and returns the result to the other racks.
    std::size_t sum_racks(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        for (; combined_ < summed_; ++combined_, combining_now_ = false, here_ = returned_to_ = 0) {
            summed_chunk& x = at(combined_);
            execution const& e = execution_of(x);
            chunk const share = share_of(x.what, rack_);
            for (; here_ < far_; ++here_)
                if (link const& from = windows_.links[near_ + here_];
                    !is_here(from, combined_, sum_bytes(e, share, from.node, shared_.who.node)))
                    return progress;
            if (!combining_now_) {
                combining_now_ = true; // at the next call
                std::size_t count = 0;
                for (int rack = 0; rack < racks_; ++rack) {
                    bool const own = rack == rack_;
                    link const* const from = own ? nullptr : &windows_.links[near_ + count - (rack > rack_)];
                    shared_.node_parts[count++] = {own ? shared_.who.node : from->node,
                                                   own ? sum_at(combined_, share)
                                                       : from->slot_memory.at(slot_of(combined_)).data()};
                }
                wanted.combine_parts(x.execution, share, {{shared_.node_parts.data(), count}, {}, true});
                return progress + 1;
            }
            for (; returned_to_ < far_; ++returned_to_, ++progress) {
                link& to = far_behind(returned_to_);
                if (!answer_push(shared_, to.peer, to.served, to.slot_memory, message::rack_push,
                                 message::rack_result, shared_.result_for(e, share, to.node), x.execution))
                    return progress;
            }
            ++x.results;
        }
        return progress;
    }

    // Returns the results of whole chunks within the rack, from the node behind this one on.
    std::size_t return_results() noexcept {
        std::size_t progress = 0;
        for (; returned_ < combined_ && at(returned_).results == racks_; ++returned_, ++progress, to_ = 0) {
            summed_chunk const& x = at(returned_);
            for (; to_ < near_; ++to_, ++progress) {
                link& to = windows_.links[(static_cast<std::size_t>(place_) + to_) % near_];
                if (!answer_push(shared_, to.peer, to.served, to.slot_memory, message::near_push,
                                 message::near_result, shared_.result_for(execution_of(x), x.what, to.node),
                                 x.execution))
                    return progress;
            }
            shared_.ledger.handled(x.execution);
            shared_.ledger.done(x.execution);
        }
        return progress;
    }

    // Takes the results that have arrived, in place.
    void take_results() noexcept {
        for (std::size_t i = 0; i < windows_.results_in && !shared_.failures.is_failing(); ++i) {
            auto const& [peer, slot, what] = windows_.results[i];
            std::size_t const place = windows_.link_of_peer[peer];
            push_window& pushes = windows_.links[place].pushes;
            push_window::flight const& back = pushes.in_slot(slot);
            execution const& e = shared_.ledger.at(back.execution);
            if (!shared_.matches(shared_.peers[peer].rank, what, e, shared_.landing(e, back.what).size()))
                break;
            shared_.take_result(e, back.what);
            shared_.ledger.done(back.execution);
            pushes.answered(slot);
            if (place < near_)
                windows_.ready.add(place);
            else
                ++at(slot).results;
        }
        windows_.results_in = 0;
    }

    // Pushes this node's parts to the other nodes of the rack, one chunk a node and turn.
    std::size_t push(wanted_work& wanted) noexcept {
        if (std::uint64_t const all = shared_.ledger.all_arrived(); all != listed_) {
            listed_ = all;
            for (std::size_t i = 0; i < near_; ++i)
                windows_.ready.add((static_cast<std::size_t>(place_) + i) % near_);
        }
        return push_in_turn(windows_.ready, [&](std::size_t i) {
            link& to = windows_.links[i];
            if (!shared_.next_chunk(to.cursor, route::two_levels)) return push_turn::nothing;
            if (!to.pushes.has_credit()) {
                shared_.require_peer(shared_.peers[to.peer]);
                return push_turn::nothing;
            }
            return push_part(shared_, to.peer, to.node, to.cursor, to.pushes,
                             to.stages.at(to.pushes.slot()).data(), message::near_push, message::near_result,
                             wanted);
        });
    }

    bool open_windows() noexcept {
        for (std::size_t i = 0; i < windows_.links.size(); ++i)
            if (link& from = windows_.links[i];
                !post_pushes(shared_, from.peer, from.served, from.slot_memory,
                             i < near_ ? message::near_push : message::rack_push, from.served.size()))
                return false;
        return true;
    }

    // A push may lie here for an execution that took another route on this rank.
    void find_stale() noexcept {
        windows_.stale.look(summing_.at, [this](std::size_t peer) noexcept {
            link const& from = windows_.links[windows_.link_of_peer[peer]];
            return from.peer == peer && begun_ - returned_ < windows_.chunks.size() &&
                   shared_.is_stale(shared_.peers[peer].rank, from.served.arrived(begun_), summing_.at);
        });
    }

    Core& shared_;
    two_level_windows& windows_;
    std::size_t const near_, far_;
    int const racks_, rack_, place_; // of all, of this node, in its rack
    chunk_cursor summing_;           // over the chunks that this rank sums for its rack
    std::uint64_t listed_ = 0;       // executions that all near links were listed for
    // Chunks that this rank sums: begun; summed and pushed; combined, its share, and returned to racks; done.
    std::uint64_t begun_ = 0, summed_ = 0, combined_ = 0, returned_ = 0;
    bool summing_now_ = false;    // the chunk behind those summed
    std::size_t near_here_ = 0;   // near links whose part of it is here
    std::size_t told_ = 0;        // racks that its sum is pushed to
    bool combining_now_ = false;  // the chunk behind those combined
    std::size_t here_ = 0;        // racks whose sum of it is here
    std::size_t returned_to_ = 0; // racks that its result is returned to
    std::size_t to_ = 0;          // near links that the oldest chunk is returned to
    bool receives_owed_ = false;  // receives of the first window could not be posted yet
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/engine/routes/two_levels_impl.hpp"
#endif

#endif // HERRING_ENGINE_ROUTES_TWO_LEVELS_HPP

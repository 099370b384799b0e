// herring: the route of a large bucket over several nodes: push to the chunk's server, combine there, return.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_TWO_HOP_HPP
#define HERRING_ENGINE_ROUTES_TWO_HOP_HPP

#include "herring/base/config.hpp"
#include "herring/engine/core.hpp"
#include "herring/engine/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// As a contributor this rank pushes its node's part of a chunk to the rank that serves it, at most `window` chunks a
/// peer ahead of the results. As a server it keeps one slot for each contributor and chunk, combines all in the order of
/// the nodes once the last is there, and returns the result: which is the credit for the next push. A part or a result that
/// the operation leaves empty is sent as well, for the credit.
///
/// Cost:   2(n−1)/n of the bucket out and in, for each of n nodes; two messages a chunk and peer.
/// Memory: window · (n−1) slots.
/// Source: Herring, SC'20; k-way sums in rank order for the same bits in every run.
template <class Core> class two_hop_route {
  public:
    explicit two_hop_route(Core& core) noexcept
        : shared_(core), serving_(core.who.own_chunks(), core.who.server) {
        while (first_ < core.peers.size() && core.peers[first_].rank < core.who.rank) ++first_;
        if (first_ == core.peers.size()) first_ = 0;
    }

    /// Posts the receives of the first window; what is refused now is posted by `step`.
    void open() noexcept { receives_owed_ = !open_windows(); }

    /// What is pending for an execution of this route besides messages: the cursors that have to pass.
    std::uint32_t cursors() const noexcept { return 1 + static_cast<std::uint32_t>(shared_.peers.size()); }

    std::size_t step(wanted_work& wanted) noexcept {
        if (receives_owed_) receives_owed_ = !open_windows();
        take_results();
        if (shared_.failures.is_failing()) return 0;
        std::size_t const progress = serve(wanted);
        return wanted.any() ? progress : progress + push(wanted);
    }

  private:
    std::size_t serve(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        shared_.pushes_in.missing = -1;
        while (shared_.next_chunk(serving_, route::two_hop)) {
            execution const& e = shared_.ledger.at(serving_.at);
            chunk const c = serving_.here(e);
            if (!combined_) {
                if (!is_complete(e, c)) return progress;
                combined_ = true; // when this comes back
                shared_.want_combined(wanted, serving_.at, c, [&](int n) {
                    peer& p = shared_.peers[shared_.who.handler(n, c)];
                    return p.slot(p.served.next());
                });
                return progress + 1;
            }
            // Results leave one after the other from behind this rank on, so that servers do not gang up on one.
            for (; answered_ < shared_.who.contributors().size(); ++answered_) {
                int const to = shared_.who.contributor_behind(answered_);
                if (to == shared_.who.node) continue;
                if (!answer(shared_.who.handler(to, c), to, e, c)) return progress;
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
        if (looked_at_ == serving_.at && !shared_.pushes_in.news) return;
        looked_at_ = serving_.at;
        shared_.pushes_in.news = false;
        for (peer& p : shared_.peers)
            if (shared_.is_stale(p, p.served.arrived(), looked_at_)) return;
    }

    // Whether all parts of the chunk are here; looks only from whom was missing last time on.
    bool is_complete(execution const& e, chunk const& c) noexcept {
        for (; complete_ < shared_.who.contributors().size(); ++complete_) {
            int const from = shared_.who.contributors()[complete_];
            if (from == shared_.who.node) continue;
            peer& p = shared_.peers[shared_.who.handler(from, c)];
            arrival const& got = p.served.arrived();
            if (!got.here) {
                shared_.pushes_in.missing = p.rank;
                shared_.pushes_in.missing_in = serving_.at;
                shared_.require_peer(p);
                return false;
            }
            if (!shared_.matches(p.rank, got, e, shared_.part_bytes(e, c, from, shared_.who.node)))
                return false;
        }
        return true;
    }

    bool answer(std::size_t to, int node, execution const& e, chunk const& c) noexcept {
        peer& p = shared_.peers[to];
        // First the receive for the push that this result allows.
        if (!p.served.is_reposted()) {
            p.served.vacate();
            if (!expect(to, p.served.to_repost())) {
                shared_.require_peer(p);
                return false;
            }
            p.served.reposted();
        }
        if (!shared_.send(to, message::result, p.served.next(), shared_.result_for(e, c, node), 0,
                          serving_.at))
            return false;
        p.served.answered();
        return true;
    }

    bool open_windows() noexcept {
        for (std::size_t i = 0; i < shared_.peers.size(); ++i)
            for (serve_window& window = shared_.peers[i].served; !window.is_open(); window.opened())
                if (!expect(i, window.to_open())) return false;
        return true;
    }

    bool expect(std::size_t from, std::uint64_t number) noexcept {
        return shared_.receive(from, message::push, number, shared_.peers[from].slot_bytes(number),
                               number % shared_.window);
    }

    // Results have come in, to where they belong.
    void take_results() noexcept {
        for (std::size_t i = 0; i < shared_.results_in && !shared_.failures.is_failing(); ++i) {
            auto const& [from, slot, what] = shared_.results[i];
            peer& p = shared_.peers[from];
            push_window::flight const& back = p.pushes.in_slot(slot);
            execution const& e = shared_.ledger.at(back.execution);
            if (!shared_.matches(p.rank, what, e, shared_.landing(e, back.what).size())) break;
            shared_.take_result(e, back.what);
            shared_.ledger.done(back.execution);
            p.pushes.answered(slot);
        }
        shared_.results_in = 0;
    }

    // One chunk a peer and turn, from behind this rank on: every server gets work at once, and none all of it.
    std::size_t push(wanted_work& wanted) noexcept {
        std::size_t const count = shared_.peers.size();
        std::size_t progress = 0;
        for (;;) {
            for (; turn_ < count; ++turn_) {
                if (push_one(first_ + turn_ < count ? first_ + turn_ : first_ + turn_ - count, wanted)) {
                    pushed_ = true;
                    ++progress;
                }
                if (wanted.any()) return progress; // and comes back to this peer
            }
            turn_ = 0;
            if (!std::exchange(pushed_, false)) return progress;
        }
    }

    bool push_one(std::size_t to, wanted_work& wanted) noexcept {
        peer& p = shared_.peers[to];
        if (!shared_.next_chunk(p.push_cursor, route::two_hop)) return false;
        if (!p.pushes.has_credit()) {
            shared_.require_peer(p);
            return false;
        }
        std::uint64_t const number = p.push_cursor.at;
        execution const& e = shared_.ledger.at(number);
        chunk const c = p.push_cursor.here(e);
        std::size_t const slot = p.pushes.slot();
        if (!p.pushes.is_prepared()) {
            // The result lands where it belongs: it cannot come before all of the push has been taken in.
            std::span<std::byte> into = shared_.landing(e, c);
            if constexpr (Core::parts_on_device) into = shared_.node.on_device(into);
            if (!shared_.receive(to, message::result, p.pushes.next(), into, slot)) {
                shared_.require_peer(p);
                return false;
            }
            shared_.ledger.add(number);
            p.pushes.prepare(c, number);
            wanted.make_part_of(number, c, p.stage(slot));
            return false;
        }
        std::span<std::byte const> from = shared_.part(e, c, shared_.who.map.node(p.rank), p.stage(slot));
        if constexpr (Core::parts_on_device) from = shared_.node.on_device(from);
        if (!shared_.send(to, message::push, p.pushes.next(), from, slot, number)) return false;
        p.pushes.sent();
        shared_.ledger.handled(number);
        p.push_cursor.next_chunk();
        return true;
    }

    Core& shared_;
    std::size_t first_ = 0; // the peer to begin with
    std::size_t turn_ = 0;  // peers that have had theirs in this round
    bool pushed_ = false;   // in this round
    chunk_cursor serving_;
    bool combined_ = false;      // the chunk under the cursor
    std::size_t answered_ = 0;   // contributors, counted from this node
    std::size_t complete_ = 0;   // contributors whose part is here
    bool receives_owed_ = false; // of the first window, could not be posted yet
    std::uint64_t looked_at_ =
        0; // where the service was when pushes that nobody will combine were looked for
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_TWO_HOP_HPP

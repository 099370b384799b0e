// herring: second requests of an ensemble's frontend to another replica: when one may be sent, and those that wait to be sent.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUEST_HEDGES_HPP
#define HERRING_ENSEMBLE_REQUEST_HEDGES_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/credits.hpp"
#include "herring/ensemble/hedging.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/slots.hpp"
#include "herring/ensemble/table_roster.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Part of `request_table`.
///
/// Lifetime: no longer than what it is given.
/// Memory:   a place for each member of each request in flight, where there are replicas.
class request_hedges {
  public:
    request_hedges(slot_pool& pool, table_roster& roster, frontend_counters& totals,
                   hedging_tuning const& tuning)
        : pool_(pool), roster_(roster), totals_(totals), tuning_(tuning) {
        if (roster.replicas() > 1) hedges_.reserve(pool.size() * std::max<std::size_t>(roster.size(), 16));
    }
    request_hedges(request_hedges const&) = delete;
    request_hedges& operator=(request_hedges const&) = delete;

    bool may() const noexcept { return roster_.replicas() > 1 && tuning_.percent > 0; }
    /// So many first requests were sent, which allow more hedges.
    void sent(std::size_t requests) noexcept { budget_.sent(requests, tuning_); }
    /// One of them could not be sent.
    void unsent() noexcept { budget_.unsent(tuning_); }

    /// Asks a second replica of an open member, if there is one with credit and the budget has a hedge.
    bool add(slot_index at, std::size_t m, std::int64_t now) noexcept {
        asked_member& each = pool_.member(at, m);
        if (!may() || pool_[at].expected || each.second != no_peer) return false;
        peer_index const to = roster_.choose(m, each.first).peer;
        if (to == no_peer || hedges_.size() == hedges_.capacity()) return false;
        if (!budget_.take()) {
            ++totals_.hedges_withheld;
            return false;
        }
        roster_.peer(to).owed.take(pool_[at].id, now);
        each.second = to;
        each.second_owes = true;
        hedges_.push_back({pool_[at].id, roster_.peer(to).incarnation, at, to});
        ++roster_[m].counts.hedged;
        ++totals_.hedges;
        return true;
    }

    /// A request that is to be sent to a second replica. False: none.
    bool next(slot_index& at, peer_index& to) noexcept {
        while (hedges_read_ < hedges_.size()) {
            pending_hedge const h = hedges_[hedges_read_++];
            if (hedges_read_ == hedges_.size()) {
                hedges_.clear();
                hedges_read_ = 0;
            }
            roster_peer& p = roster_.peer(h.peer);
            unanswered* const ask = p.incarnation == h.incarnation ? p.owed.find(h.id) : nullptr;
            if (ask == nullptr) continue; // lost since
            if (pool_.find(h.id) == h.slot && is_open(h.slot) &&
                pool_.member(h.slot, roster_.member_of(h.peer)).is == asked_member::state::open) {
                at = h.slot;
                to = h.peer;
                return true;
            }
            // Decided since, or answered by the first: it is not sent, so that the peer does not owe it.
            p.owed.give_back(*ask);
            if (pool_.find(h.id) == h.slot)
                pool_.member(h.slot, roster_.member_of(h.peer)).answered_by(h.peer);
            budget_.give_back();
            --roster_[roster_.member_of(h.peer)].counts.hedged;
            --totals_.hedges;
        }
        return false;
    }

  private:
    struct pending_hedge {
        std::uint64_t id, incarnation;
        slot_index slot;
        peer_index peer;
    };

    bool is_open(slot_index at) const noexcept { return pool_[at].is == request_slot::state::open; }

    slot_pool& pool_;
    table_roster& roster_;
    frontend_counters& totals_;
    hedging_tuning const& tuning_;
    std::vector<pending_hedge> hedges_; // from hedges_read_ on
    std::size_t hedges_read_ = 0;
    hedge_budget budget_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_REQUEST_HEDGES_HPP

// herring: what an answer of a member belongs to: a request that it owes, one that is expected, or nothing.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUEST_ANSWERS_HPP
#define HERRING_ENSEMBLE_REQUEST_ANSWERS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/credits.hpp"
#include "herring/ensemble/hedging.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/request_decisions.hpp"
#include "herring/ensemble/slots.hpp"
#include "herring/ensemble/table_roster.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail::ensembles {

/// What becomes of a row.
enum class arrival : std::uint8_t {
    counted,   ///< its place is in `contributions`, until `release`
    late,      ///< it came after the decision, or after another replica's
    stale,     ///< of another incarnation, or for a request that the peer does not owe
    duplicate, ///< the peer has answered this request already
    refused,   ///< it did not pass its check
    early      ///< nobody expects it yet: it is kept in its place until `next_returned` says otherwise
};

/// What an answer of a peer, a row or a decline, belongs to.
struct request_answer {
    arrival is = arrival::stale; // counted: as far as the peer owes it
    slot_index slot = no_slot;   // if it is in flight
    asked_member* asked = nullptr;
    unanswered ask{}; // as it was
    bool open = false;

    /// Nobody else may answer for the member, and the request is undecided.
    bool last() const noexcept { return open && asked->is == asked_member::state::open && !asked->owed(); }
};

/// Part of `request_table`: takes answers to pieces, gives credits back, and counts what belongs to nothing.
///
/// Lifetime: no longer than what it is given.
class request_answers {
  public:
    request_answers(slot_pool& pool, table_roster& roster, frontend_counters& totals)
        : pool_(pool), roster_(roster), totals_(totals) {}
    request_answers(request_answers const&) = delete;
    request_answers& operator=(request_answers const&) = delete;

    /// A row or a decline of a peer: the peer owes it no longer. `may_be_early`: it may belong to a request that is yet to come.
    request_answer take(peer_index at, std::uint64_t incarnation, std::uint64_t id,
                        bool may_be_early) noexcept {
        request_answer a;
        if (!roster_.has(at)) return a;
        roster_peer& p = roster_.peer(at);
        std::size_t const m = roster_.member_of(at);
        if (p.is == roster_peer::state::absent || p.incarnation != incarnation) {
            ++roster_[m].counts.stale;
            return a;
        }
        p.full = false; // there may be room now
        a.slot = pool_.find(id);
        if (a.slot != no_slot && m < pool_[a.slot].members) {
            a.asked = &pool_.member(a.slot, m);
            a.open = is_open(a.slot);
        }
        if (unanswered* const ask = p.owed.find(id)) {
            a.is = arrival::counted;
            a.ask = *ask;
            p.owed.give_back(*ask);
            if (a.asked != nullptr) a.asked->answered_by(at);
            return a;
        }
        if (a.asked != nullptr && pool_[a.slot].expected) {
            if (a.asked->heard) {
                a.is = a.asked->first == at ? arrival::duplicate : arrival::late;
            } else if (a.asked->is != asked_member::state::out) {
                a.asked->heard = true;
                a.asked->first = at;
                a.is = arrival::counted;
                a.ask.asked = pool_[a.slot].entered;
                if (!a.open && a.asked->is == asked_member::state::open) {
                    a.ask.frozen = pool_[a.slot].decided;
                    a.ask.in_time = request_decisions::judged_later(pool_[a.slot]);
                }
                return a;
            }
        } else if (a.slot == no_slot && may_be_early) {
            a.is = arrival::early;
            return a;
        } else if (a.asked != nullptr && (a.asked->first == at || a.asked->second == at)) {
            a.is = arrival::duplicate;
        }
        if (a.is == arrival::late) {
            ++roster_[m].counts.late;
            ++totals_.late_rows;
        } else {
            ++(a.is == arrival::duplicate ? roster_[m].counts.duplicate : roster_[m].counts.stale);
        }
        return a;
    }

  private:
    bool is_open(slot_index at) const noexcept { return pool_[at].is == request_slot::state::open; }

    slot_pool& pool_;
    table_roster& roster_;
    frontend_counters& totals_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_REQUEST_ANSWERS_HPP

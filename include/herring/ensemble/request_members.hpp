// herring: whom a request asks: the members that are there, one replica each, as soon as they have a credit.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUEST_MEMBERS_HPP
#define HERRING_ENSEMBLE_REQUEST_MEMBERS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lateness.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/request_hedges.hpp"
#include "herring/ensemble/slots.hpp"
#include "herring/ensemble/table_roster.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Part of `request_table`.
///
/// Lifetime: no longer than what it is given.
class request_members {
  public:
    request_members(slot_pool& pool, table_roster& roster, request_hedges& hedges) noexcept
        : pool_(pool), roster_(roster), hedges_(hedges) {}
    request_members(request_members const&) = delete;
    request_members& operator=(request_members const&) = delete;

    /// Marks those that are to be asked as open, of the roster or of `among`, and those without a credit, or for whose next one
    /// an older request waits, as waiting; of the others it is known why they are not.
    void choose(slot_index at, member_set const* among) noexcept {
        request_slot& s = pool_[at];
        s.members = roster_.size();
        for (std::size_t m = 0; m < s.members; ++m) {
            asked_member& each = pool_.member(at, m);
            each = {};
            if (among != nullptr && !among->contains(m)) continue;
            ++s.target;
            table_roster::choice const who = roster_.choose(m, no_peer);
            bool const others_wait = roster_[m].waiting > 0; // a credit that has just come back is theirs
            each.why = !who.admitted                                         ? miss::absent
                       : (who.peer == no_peer || others_wait) && !s.expected ? miss::no_credit
                                                                             : miss::none;
            each.slow = roster_[m].standing.on();
            if (each.why == miss::no_credit) {
                each.is = asked_member::state::waiting;
                ++s.waiting;
                roster_.waits(m);
            }
            if (each.why != miss::none) continue;
            each.is = asked_member::state::open;
            if (!s.expected) each.first = who.peer;
            ++s.open;
            s.open_slow += each.slow ? 1 : 0;
        }
    }

    /// Nobody is asked after all.
    void dismiss(slot_index at, miss why) noexcept {
        for_each_open(at, [&](std::size_t, asked_member& each) noexcept {
            each.is = asked_member::state::out;
            each.first = no_peer;
            each.why = why;
        });
        pool_[at].open = pool_[at].open_slow = 0;
    }

    /// They are: each owes an answer from now on, and may be hedged when its time has come.
    void ask(slot_index at, std::int64_t now) noexcept {
        for_each_open(
            at, [&](std::size_t m, asked_member& each) noexcept { ask(at, m, each, pool_[at].asked, now); });
        hedges_.sent(pool_[at].asked);
    }
    /// The oldest request that waits for a member which has a credit: it asks it now. False: there is none.
    ///
    /// Cost: O(members) where something waits, and O(members + slots) for one that is found.
    bool ask_later(slot_index& at, peer_index& to, std::int64_t now) noexcept {
        for (std::size_t m = 0; m < roster_.size(); ++m) {
            if (roster_[m].waiting == 0) continue;
            to = roster_.choose(m, no_peer).peer;
            if (to == no_peer) continue;
            at = oldest_waiting(m);
            request_slot& s = pool_[at];
            asked_member& each = pool_.member(at, m);
            each.is = asked_member::state::open;
            each.why = miss::none;
            each.first = to;
            --s.waiting;
            roster_.waits_no_more(m);
            ++s.open;
            s.open_slow += each.slow ? 1 : 0;
            ask(at, m, each, place_of(at, m), now);
            hedges_.sent(1);
            return true;
        }
        return false;
    }

  private:
    // `place`: the member's in the list of those that are asked, or the end of the list.
    void ask(slot_index at, std::size_t m, asked_member& each, std::size_t place, std::int64_t now) noexcept {
        request_slot& s = pool_[at];
        ++roster_[m].counts.asked;
        if (s.expected) return;
        roster_.peer(each.first).owed.take(s.id, now);
        each.first_owes = true;
        pool_.asked(at)[place] = each.first;
        s.asked += place == s.asked ? 1 : 0;
        if (hedges_.may() && roster_[m].delay.ns() != never_ns) {
            each.hedge_at = now + roster_[m].delay.ns();
            s.hedge_at = std::min(s.hedge_at, each.hedge_at);
        }
    }
    // A member that could not be sent the request before is in the list.
    std::size_t place_of(slot_index at, std::size_t m) const noexcept {
        peer_index const* const sent = pool_.asked(at);
        std::size_t place = 0;
        while (place < pool_[at].asked && roster_.member_of(sent[place]) != m) ++place;
        return place;
    }
    slot_index oldest_waiting(std::size_t m) const noexcept {
        slot_index oldest = no_slot;
        for (slot_index at = 0; at < pool_.size(); ++at)
            if (pool_[at].waiting > 0 && pool_.member(at, m).is == asked_member::state::waiting &&
                (oldest == no_slot || pool_[at].order < pool_[oldest].order))
                oldest = at;
        return oldest;
    }
    template <class Do> void for_each_open(slot_index at, Do&& act) noexcept {
        for (std::size_t m = 0; m < pool_[at].members; ++m)
            if (asked_member& each = pool_.member(at, m); each.is == asked_member::state::open) act(m, each);
    }

    slot_pool& pool_;
    table_roster& roster_;
    request_hedges& hedges_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_REQUEST_MEMBERS_HPP

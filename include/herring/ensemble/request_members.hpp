// herring: whom a request asks: the members that are there and have a credit, one replica each.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUEST_MEMBERS_HPP
#define HERRING_ENSEMBLE_REQUEST_MEMBERS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lateness.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/request_hedges.hpp"
#include "herring/ensemble/slots.hpp"
#include "herring/ensemble/table_roster.hpp"
#include "herring/member_set.hpp"

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

    /// Marks those that are to be asked as open, of the roster or of `among`; of the others it is known why they are not.
    void choose(slot_index at, member_set const* among) noexcept {
        request_slot& s = pool_[at];
        s.members = roster_.size();
        for (std::size_t m = 0; m < s.members; ++m) {
            asked_member& each = pool_.member(at, m);
            each = {};
            if (among != nullptr && !among->contains(m)) continue;
            ++s.target;
            table_roster::choice const who = roster_.choose(m, no_peer);
            each.why = !who.admitted                        ? miss::absent
                       : who.peer == no_peer && !s.expected ? miss::no_credit
                                                            : miss::none;
            if (each.why != miss::none) continue;
            each.is = asked_member::state::open;
            each.slow = roster_[m].standing.on();
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
        request_slot& s = pool_[at];
        for_each_open(at, [&](std::size_t m, asked_member& each) noexcept {
            ++roster_[m].counts.asked;
            if (s.expected) return;
            roster_.peer(each.first).owed.take(s.id, now);
            each.first_owes = true;
            pool_.asked(at)[s.asked++] = each.first;
            if (hedges_.may() && roster_[m].delay.ns() != never_ns) {
                each.hedge_at = now + roster_[m].delay.ns();
                s.hedge_at = std::min(s.hedge_at, each.hedge_at);
            }
        });
        hedges_.sent(s.asked);
    }

  private:
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

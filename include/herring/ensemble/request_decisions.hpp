// herring: how the requests of an ensemble's frontend are decided: what is counted, what settles, and the list of decisions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUEST_DECISIONS_HPP
#define HERRING_ENSEMBLE_REQUEST_DECISIONS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/credits.hpp"
#include "herring/ensemble/due_queue.hpp"
#include "herring/ensemble/hedging.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/slots.hpp"
#include "herring/ensemble/table_roster.hpp"
#include "herring/quorum/quorum.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Part of `request_table`: a member's row counts or will not come, and the request is decided as soon as nothing that may
/// still come would change how. Also when that is due by time, and the decided requests that were not told yet.
///
/// Lifetime: no longer than what it is given.
/// Cost:     decide: O(members); count and gone: O(log requests).
class request_decisions {
  public:
    enum class ending { grace, deadline, other };

    request_decisions(slot_pool& pool, table_roster& roster, frontend_counters& totals,
                      quorum_tuning const& quorum)
        : pool_(pool), roster_(roster), totals_(totals), quorum_(quorum), due_(pool.size()) {}
    request_decisions(request_decisions const&) = delete;
    request_decisions& operator=(request_decisions const&) = delete;

    /// Requests that are open, by when something is due: the end of a grace, a deadline, a hedge.
    due_queue const& due() const noexcept { return due_; }

    /// A row of an open member counts.
    void count(slot_index at, asked_member& m, contribution const& row, std::int64_t now) noexcept {
        request_slot& s = pool_[at];
        m.is = asked_member::state::counted;
        m.why = miss::none;
        m.row = row;
        m.latency = now - s.entered;
        --s.open;
        s.open_slow -= m.slow ? 1 : 0;
        ++s.counted;
        s.counted_slow += m.slow ? 1 : 0;
        judge(row.member, true);
        if (s.counted == s.k) {
            dismiss_waiting(at);
            s.until = now + quorum_.grace_ns(now - s.entered);
            s.late_at = now + quorum_.late_ns(now - s.entered);
            reschedule(at);
        }
        settle(at, now);
    }
    /// An open member will not answer any more.
    void gone(slot_index at, asked_member& m, miss why, std::int64_t now) noexcept {
        request_slot& s = pool_[at];
        m.is = asked_member::state::gone;
        m.why = why;
        --s.open;
        s.open_slow -= m.slow ? 1 : 0;
        settle(at, now);
    }
    /// An open member could not be sent the request: it is asked when there is room, unless k others have come.
    void unsent(slot_index at, std::size_t m, std::int64_t now) noexcept {
        request_slot& s = pool_[at];
        asked_member& each = pool_.member(at, m);
        if (s.counted >= s.k) return gone(at, each, miss::no_credit, now);
        --roster_[m].counts.asked;
        --s.open;
        s.open_slow -= each.slow ? 1 : 0;
        bool const slow = each.slow;
        each = {};
        each.is = asked_member::state::waiting;
        each.why = miss::no_credit;
        each.slow = slow;
        ++s.waiting;
        roster_.waits(m);
        if (s.hedge_at == never_ns) return;
        s.hedge_at = never_ns;
        for (std::size_t i = 0; i < s.members; ++i)
            s.hedge_at = std::min(s.hedge_at, pool_.member(at, i).hedge_at);
        reschedule(at);
    }
    /// One that waited for a credit will have none.
    void not_asked(slot_index at, std::size_t m, miss why, std::int64_t now) noexcept {
        stop_waiting(at, m);
        pool_.member(at, m).why = why;
        settle(at, now);
    }
    /// Nobody is asked any more who has not been asked yet.
    void dismiss_waiting(slot_index at) noexcept {
        for (std::size_t m = 0; pool_[at].waiting > 0; ++m)
            if (pool_.member(at, m).is == asked_member::state::waiting) stop_waiting(at, m);
    }
    /// After a change of when something of it is due.
    void reschedule(slot_index at) noexcept {
        request_slot const& s = pool_[at];
        due_.set(at, std::min(s.ends(), s.hedge_at), s.order);
    }

    void decide(slot_index at, outcome how, std::int64_t now, ending by) noexcept {
        request_slot& s = pool_[at];
        bool const for_slow = s.waits_for_slow();
        s.is = request_slot::state::decided;
        s.how = how;
        s.decided = now;
        s.by_time = by != ending::other;
        due_.erase(at);
        dismiss_waiting(at);
        ++totals_.ended[static_cast<std::size_t>(how)];
        std::size_t rows = 0;
        for (std::size_t m = 0; m < s.members; ++m) {
            asked_member& each = pool_.member(at, m);
            member_counters& counts = roster_[m].counts;
            if (each.is == asked_member::state::counted) {
                s.contributors.insert(m);
                pool_.rows(at)[rows++] = each.row;
                ++counts.answered;
            } else if (each.is == asked_member::state::open) {
                each.why = each.slow && !for_slow   ? miss::probation
                           : by == ending::deadline ? miss::expired
                                                    : miss::late;
                if (s.by_time) roster_.missed(m, s.id, s.late_from(), now, quorum_);
                freeze(each, s);
            }
            if (each.is == asked_member::state::open || each.is == asked_member::state::gone) ++counts.missed;
            ++counts.missing[static_cast<std::size_t>(each.why)];
        }
        s.before = decided_last_;
        (decided_last_ == no_slot ? decided_first_ : pool_[decided_last_].after) = at;
        decided_last_ = at;
        s.linked = true;
    }
    /// Up to when a row that comes after the decision is in time all the same; never: that has been judged, or is not.
    static std::int64_t judged_later(request_slot const& s) noexcept {
        return s.how == outcome::partial && !s.by_time ? s.late_from() : never_ns;
    }
    /// A verdict on a member: it was in time, or late.
    void judge(std::size_t m, bool in_time) noexcept { roster_.judge(m, in_time, quorum_); }

    /// A row that is late for its answer has come. `in_time`: of a request that has not judged its member, up to when it is in time.
    void late_row(std::size_t m, std::uint64_t request, std::int64_t in_time, std::int64_t now) noexcept {
        if (in_time != never_ns)
            judge(m, now < in_time);
        else
            roster_.came(m, request, now, quorum_);
    }

    /// A request that has been decided, each once, in the order of decisions. False: none.
    bool next(slot_index& at) noexcept {
        if (decided_first_ == no_slot) return false;
        at = decided_first_;
        unlink(at);
        return true;
    }
    /// It need not be told any more.
    void unlink(slot_index at) noexcept {
        request_slot& s = pool_[at];
        if (!s.linked) return;
        (s.before == no_slot ? decided_first_ : pool_[s.before].after) = s.after;
        (s.after == no_slot ? decided_last_ : pool_[s.after].before) = s.before;
        s.before = s.after = no_slot;
        s.linked = false;
    }

  private:
    void stop_waiting(slot_index at, std::size_t m) noexcept {
        pool_.member(at, m).is = asked_member::state::out;
        --pool_[at].waiting;
        roster_.waits_no_more(m);
    }
    // Decides what needs no more time.
    void settle(slot_index at, std::int64_t now) noexcept {
        request_slot const& s = pool_[at];
        if (s.counted == s.target)
            decide(at, outcome::full, now, ending::other);
        else if (s.counted + s.open + s.waiting < s.k)
            decide(at, outcome::failed, now, ending::other);
        else if (s.counted >= s.k && s.waited_for() == 0)
            decide(at, outcome::partial, now, ending::other);
    }
    // Its replicas still owe the row: by how much that is late is measured from here.
    void freeze(asked_member const& m, request_slot const& s) noexcept {
        for (auto const& [to, owes] : {std::pair{m.first, m.first_owes}, std::pair{m.second, m.second_owes}})
            if (owes)
                if (unanswered* const ask = roster_.peer(to).owed.find(s.id)) {
                    ask->frozen = s.decided;
                    ask->in_time = judged_later(s);
                }
    }

    slot_pool& pool_;
    table_roster& roster_;
    frontend_counters& totals_;
    quorum_tuning const& quorum_;
    due_queue due_;
    slot_index decided_first_ = no_slot, decided_last_ = no_slot; // not told yet
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_REQUEST_DECISIONS_HPP

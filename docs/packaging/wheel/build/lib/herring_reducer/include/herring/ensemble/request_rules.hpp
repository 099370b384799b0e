// herring: the rules of a request: which members it asks, when it is hedged, and when it is decided.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUEST_RULES_HPP
#define HERRING_ENSEMBLE_REQUEST_RULES_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/quorum.hpp"
#include "herring/ensemble/request_roster.hpp"
#include "herring/ensemble/request_slots.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Second requests to another replica. Part of `request_table`.
///
/// Lifetime: no longer than its arguments.
/// Memory:   with replicas, a place for each member of each request in flight.
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
    /// Counts first requests, which allow more hedges.
    void sent(std::size_t requests) noexcept { budget_.sent(requests, tuning_); }
    /// Takes one of them back: it could not be sent.
    void unsent() noexcept { budget_.unsent(tuning_); }

    /// Asks a second replica of an open member. False: none has a credit, or the budget is used up.
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

    /// Gives a request to send to a second replica. False: there is none.
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
            if (pool_.find(h.id) == h.slot && pool_.is_open(h.slot) &&
                pool_.member(h.slot, roster_.member_of(h.peer)).is == asked_member::state::open) {
                at = h.slot;
                to = h.peer;
                return true;
            }
            // Decided since, or answered by the first replica: it is not sent, and the peer does not owe an
            // answer.
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

    slot_pool& pool_;
    table_roster& roster_;
    frontend_counters& totals_;
    hedging_tuning const& tuning_;
    std::vector<pending_hedge> hedges_; // pending ones: from hedges_read_ on
    std::size_t hedges_read_ = 0;
    hedge_budget budget_;
};

/// The members that a request asks: one replica each, as soon as it has a credit. Part of `request_table`.
///
/// Lifetime: no longer than its arguments.
class request_members {
  public:
    request_members(slot_pool& pool, table_roster& roster, request_hedges& hedges) noexcept
        : pool_(pool), roster_(roster), hedges_(hedges) {}
    request_members(request_members const&) = delete;
    request_members& operator=(request_members const&) = delete;

    /// Sorts the members of the roster, or of `among`: open if they are to be asked; waiting if they have no
    /// credit, or an older request waits for the next one; the others get the reason why they are not asked.
    void choose(slot_index at, member_set const* among) noexcept {
        request_slot& s = pool_[at];
        s.members = roster_.size();
        for (std::size_t m = 0; m < s.members; ++m) {
            asked_member& each = pool_.member(at, m);
            each = {};
            if (among != nullptr && !among->contains(m)) continue;
            ++s.target;
            table_roster::choice const who = roster_.choose(m, no_peer);
            // An older request has a right to the next credit.
            bool const others_wait = roster_[m].waiting > 0;
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

    /// Marks the open members as not asked.
    void dismiss(slot_index at, miss why) noexcept {
        for_each_open(at, [&](std::size_t, asked_member& each) noexcept {
            each.is = asked_member::state::out;
            each.first = no_peer;
            each.why = why;
        });
        pool_[at].open = pool_[at].open_slow = 0;
    }

    /// Asks the open members: each owes an answer from now on, and may be hedged later.
    void ask(slot_index at, std::int64_t now) noexcept {
        for_each_open(
            at, [&](std::size_t m, asked_member& each) noexcept { ask(at, m, each, pool_[at].asked, now); });
        hedges_.sent(pool_[at].asked);
    }
    /// Asks, for the oldest request that waits for it, a member that has a credit again. False: there is
    /// none.
    ///
    /// Cost: O(members) where a request waits, and O(members + slots) for one that is found.
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
    // `place`: the member's in the list of asked peers, or the end of the list.
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
    // Returns the member's place: a member that could not be sent the request before is in the list.
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

/// Decisions. A request is decided as soon as nothing that may still come would change the result, or when it
/// is due by time. Keeps the decided requests that were not reported yet. Part of `request_table`.
///
/// Lifetime: no longer than its arguments.
/// Cost:     decide: O(members); count and gone: O(log requests).
class request_decisions {
  public:
    enum class ending { grace, deadline, other };

    request_decisions(slot_pool& pool, table_roster& roster, frontend_counters& totals,
                      quorum_tuning const& quorum)
        : pool_(pool), roster_(roster), totals_(totals), quorum_(quorum), due_(pool.size()) {}
    request_decisions(request_decisions const&) = delete;
    request_decisions& operator=(request_decisions const&) = delete;

    /// The open requests by the time when something is due: the end of a grace, a deadline, a hedge.
    due_queue const& due() const noexcept { return due_; }

    /// Counts the row of an open member.
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
    /// Records that an open member will not answer.
    void gone(slot_index at, asked_member& m, miss why, std::int64_t now) noexcept {
        request_slot& s = pool_[at];
        m.is = asked_member::state::gone;
        m.why = why;
        --s.open;
        s.open_slow -= m.slow ? 1 : 0;
        settle(at, now);
    }
    /// Records that an open member could not be sent the request: it is asked when there is room, unless k
    /// others have come.
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
    /// Records that a member that waits for a credit will have none.
    void not_asked(slot_index at, std::size_t m, miss why, std::int64_t now) noexcept {
        stop_waiting(at, m);
        pool_.member(at, m).why = why;
        settle(at, now);
    }
    /// Marks all waiting members as not asked.
    void dismiss_waiting(slot_index at) noexcept {
        for (std::size_t m = 0; pool_[at].waiting > 0; ++m)
            if (pool_.member(at, m).is == asked_member::state::waiting) stop_waiting(at, m);
    }
    /// Updates the time when something is due.
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
    /// Returns until when a row that comes after the decision is in time for probation; never_ns: judged
    /// already, or not at all.
    static std::int64_t judged_later(request_slot const& s) noexcept {
        return s.how == outcome::partial && !s.by_time ? s.late_from() : never_ns;
    }
    /// Judges a member: in time, or late.
    void judge(std::size_t m, bool in_time) noexcept { roster_.judge(m, in_time, quorum_); }

    /// Records a row that is late for its answer. `in_time`: if the request has not judged the member, the
    /// end of its time.
    void late_row(std::size_t m, std::uint64_t request, std::int64_t in_time, std::int64_t now) noexcept {
        if (in_time != never_ns)
            judge(m, now < in_time);
        else
            roster_.came(m, request, now, quorum_);
    }

    /// Gives a decided request, each once, in the order of decisions. False: there is none.
    bool next(slot_index& at) noexcept {
        if (decided_first_ == no_slot) return false;
        at = decided_first_;
        unlink(at);
        return true;
    }
    /// Removes a request from the list of decided ones.
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
    // Decides the request if it needs no more time.
    void settle(slot_index at, std::int64_t now) noexcept {
        request_slot const& s = pool_[at];
        if (s.counted == s.target)
            decide(at, outcome::full, now, ending::other);
        else if (s.counted + s.open + s.waiting < s.k)
            decide(at, outcome::failed, now, ending::other);
        else if (s.counted >= s.k && s.waited_for() == 0)
            decide(at, outcome::partial, now, ending::other);
    }
    // Notes the decision with the replicas that still owe the row: its lateness is measured from here.
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
    slot_index decided_first_ = no_slot, decided_last_ = no_slot; // not reported yet
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_REQUEST_RULES_HPP

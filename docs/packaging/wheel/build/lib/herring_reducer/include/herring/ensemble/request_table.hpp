// herring: the rules of a frontend: which members are asked, which rows count, when and how it is decided.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUEST_TABLE_HPP
#define HERRING_ENSEMBLE_REQUEST_TABLE_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/quorum.hpp"
#include "herring/ensemble/request_answers.hpp"
#include "herring/ensemble/request_roster.hpp"
#include "herring/ensemble/request_rules.hpp"
#include "herring/ensemble/request_slots.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

struct table_options {
    std::size_t members = 0;  ///< at most member_set::capacity
    std::size_t replicas = 1; ///< of each member
    std::size_t in_flight = 64;
    std::size_t credits = 0;   ///< unanswered requests that a peer may have; 0: in_flight
    std::size_t k = 1;         ///< of a request that gives none
    std::int64_t early_ns = 0; ///< how long early rows are kept; 0: not at all
    quorum_tuning quorum{};
    hedging_tuning hedging{};

    constexpr table_options with_credits() const noexcept {
        table_options made = *this;
        if (made.credits == 0) made.credits = in_flight;
        return made;
    }
};

/// The rules for all requests in flight, without socket, clock or lock: the caller reports events with their
/// times, and fetches the actions.
///
/// A call with a time first does what was due until then. So an answer depends on the times of events alone,
/// not on how often the table is called. A row at the very end of a grace or deadline is late. After each
/// call `next_hedge`, `next_ask`, `next_decided` and `next_returned` may have actions.
///
/// Rules:   *Asked* are the admitted members of the roster, or of `among`, one replica each: the one with a
///          credit and the fewest unanswered requests. A member without a credit is asked when it has one,
///          the oldest request first, before requests that begin then, unless k others have come. If fewer
///          than k members can be asked, or the deadline has passed, no member is asked and the request has
///          failed at once.
///          *Decided* is a request when all its members are in (full); when all that are waited for are in,
///          at least k (partial); at the end of the grace (partial); at the deadline (partial from k on, else
///          failed); when k cannot be reached any more (failed). The rows counted by then are in the answer,
///          whatever the outcome.
///          *Probation*: a member is late for a request that ends by time, grace or deadline, without its
///          row, unless the row comes within late_after_us of the k-th (`probation`). A member that was not
///          waited for, in a request that ended otherwise, is judged in the same way when its row comes.
///          Losses, declines and refused rows judge nothing; a new connection of a member of one replica
///          begins anew.
///          *Early* rows, of ids that are not expected yet, are kept, the newest `early_places` of each peer,
///          until they are expected, too old, or their peer is lost. Once expected they count as if they came
///          then.
///          *Hedges*: `hedge_delay`, `hedge_budget`. A replica that is lost is replaced at once, within the
///          budget, if another one is admitted.
/// Units:   nanoseconds of one steady clock.
/// Cost:    only construction and `add_member` allocate. begin and decide: O(members); a row: O(log
///          in_flight).
/// Memory:  a place for each member of each request in flight, and one for each credit of each peer.
/// Threads: one at a time.
class request_table {
  public:
    explicit request_table(table_options const& options)
        : options_(options.with_credits()), pool_(options.in_flight, options.members),
          roster_(options.replicas, options_.credits, options.members), answers_(pool_, roster_, totals_),
          decisions_(pool_, roster_, totals_, options_.quorum),
          hedges_(pool_, roster_, totals_, options_.hedging), members_(pool_, roster_, hedges_),
          early_(roster_, options_.early_ns) {
        lost_.reserve(options_.credits + options_.in_flight);
    }
    request_table(request_table const&) = delete;
    request_table& operator=(request_table const&) = delete;

    /// Adds a member at the end of the roster. Allocates. Requests in flight do not ask it.
    HERRING_SETUP void add_member() {
        roster_.add();
        pool_.grow(roster_.size());
        early_.grow();
    }
    std::size_t members() const noexcept { return roster_.size(); }
    std::size_t replicas() const noexcept { return options_.replicas; }
    /// Sets k for later requests that give none.
    void set_k(std::size_t k) noexcept { options_.k = k; }

    // ---- connections

    /// Admits a peer as `incarnation`. An earlier incarnation of it is lost.
    void admitted(peer_index at, std::uint64_t incarnation, std::int64_t now) noexcept {
        if (!roster_.has(at)) return;
        lost(at, now);
        roster_.peer(at).is = roster_peer::state::admitted;
        roster_.peer(at).incarnation = incarnation;
        roster_.peer(at).full = false;
        if (options_.replicas == 1) {
            roster_.forget_verdicts(at);
        }
    }
    /// Ends a peer's connection: requests that it had not answered miss it.
    void lost(peer_index at, std::int64_t now) noexcept {
        advance(now);
        if (!roster_.has(at) || roster_.peer(at).is == roster_peer::state::absent) return;
        roster_peer& p = roster_.peer(at);
        std::size_t const m = roster_.member_of(at);
        p.is = roster_peer::state::absent;
        ++roster_[m].counts.lost;
        roster_[m].standing.forget();
        early_.lost(at, now);
        lost_.clear();
        p.owed.for_each([&](unanswered const& ask) {
            slot_index const s = pool_.find(ask.id);
            if (s != no_slot) lost_.push_back(s);
        });
        p.owed.clear();
        if (pool_.expected() > 0 && !roster_.reachable(m))
            for (slot_index s = 0; s < pool_.size(); ++s)
                if (pool_[s].expected && pool_[s].is == request_slot::state::open) lost_.push_back(s);
        if (will_not_be_asked(m)) push_waiting_for(m);
        sort_lost();
        for (slot_index const s : lost_) {
            asked_member& asked = pool_.member(s, m);
            if (asked.is == asked_member::state::waiting) {
                decisions_.not_asked(s, m, miss::lost, now);
                continue;
            }
            if (!pool_[s].expected) asked.forget(at);
            if (pool_[s].is == request_slot::state::open && asked.is == asked_member::state::open &&
                !asked.owed() && !(pool_[s].waits_for(asked) && hedges_.add(s, m, now)))
                decisions_.gone(s, asked, miss::lost, now);
        }
    }
    /// Stops asking a peer; rows that it owes still count.
    void draining(peer_index at) noexcept {
        if (!roster_.has(at) || roster_.peer(at).is != roster_peer::state::admitted) return;
        roster_.peer(at).is = roster_peer::state::draining;
        std::size_t const m = roster_.member_of(at);
        if (!will_not_be_asked(m)) return;
        lost_.clear();
        push_waiting_for(m);
        sort_lost();
        for (slot_index const s : lost_) decisions_.not_asked(s, m, miss::absent, now_);
    }

    bool is_admitted(peer_index at) const noexcept {
        return roster_.has(at) && roster_.peer(at).is == roster_peer::state::admitted;
    }
    /// Counts the members with a replica that is admitted and not draining.
    std::size_t admitted_members() const noexcept { return roster_.admitted(); }
    bool on_probation(std::size_t m) const noexcept { return roster_[m].standing.on(); }
    /// Gives a member whose probation has begun or ended since the last report. False: there is none.
    bool next_probation(std::size_t& m, bool& on) noexcept { return roster_.next_probation(m, on); }

    // ---- requests

    struct request {
        std::int64_t entered = 0;          ///< t₀ of t_k and of latencies
        std::int64_t deadline = 0;         ///< absolute
        std::size_t k = 0;                 ///< 0: that of the options
        member_set const* among = nullptr; ///< nullptr: all of the roster
        std::uint64_t expected_id = 0;     ///< if `expect`: below 2^63, of no request in flight
        bool expect = false;               ///< nothing is sent: members have the input from elsewhere
    };
    struct begun {
        outcome refused = outcome::
            full; ///< full: the request is in `slot`. busy, closed; failed: the expected id is not valid
        slot_index slot = no_slot;
        std::uint64_t id = 0; ///< unique in this table, unless expected
    };

    /// Takes a request. It may be decided when this returns.
    begun begin(request const& r, std::int64_t now) noexcept {
        begun const b = begin_request(r, now);
        if (r.expect && early_.any() && b.refused == outcome::full) take_early(b.id, now);
        return b;
    }
    /// True if a request has this id and its slot is not free yet.
    bool is_in_flight(std::uint64_t id) const noexcept { return pool_.find(id) != no_slot; }
    /// Returns the peers that the request was or is to be sent to; none if it is expected.
    std::span<peer_index const> asked(slot_index at) const noexcept {
        return {pool_.asked(at), pool_[at].asked};
    }

    using arrival = ensembles::arrival;

    /// Takes a row. If it is neither counted nor early, the caller gives its place back at once.
    arrival row(peer_index at, std::uint64_t incarnation, std::uint64_t id, place_index place,
                row_check check, std::int64_t now) noexcept {
        advance(now);
        arrival const is = take_row(at, incarnation, id, place, check, now);
        if (is != arrival::early) return is;
        return early_.keep(
            {.id = id, .incarnation = incarnation, .came = now, .peer = at, .place = place, .check = check});
    }
    /// Takes a peer's refusal to answer a request.
    void declined(peer_index at, std::uint64_t incarnation, std::uint64_t id, decline why,
                  std::int64_t now) noexcept {
        advance(now);
        request_answer const a = answers_.take(at, incarnation, id, false);
        if (a.is != arrival::counted) return;
        roster_member& m = roster_[roster_.member_of(at)];
        m.standing.forget(id);
        ++m.counts.declined[static_cast<std::size_t>(why)];
        if (a.last())
            decisions_.gone(a.slot, *a.asked, why == decline::bad_row ? miss::refused_row : miss::declined,
                            now);
    }

    /// Records that a request could not be sent to a peer, as no place is left for its row. The peer counts
    /// as without credit until it answers a request or one of its rows is given back.
    void unsent(peer_index at, std::uint64_t incarnation, std::uint64_t id, std::int64_t now) noexcept {
        advance(now);
        request_answer const a = answers_.take(at, incarnation, id, false);
        if (a.is != arrival::counted) return;
        roster_.peer(at).full = true;
        if (a.asked == nullptr || a.asked->second != at) hedges_.unsent();
        if (a.last()) decisions_.unsent(a.slot, roster_.member_of(at), now);
    }

    /// Does what is due: ends of graces, deadlines, hedges.
    void advance(std::int64_t now) noexcept {
        if (now > now_) now_ = now;
        while (due().time() <= now) {
            slot_index const at = due().first();
            request_slot& s = pool_[at];
            std::int64_t const time = due().time();
            if (time >= s.ends()) {
                bool const in_grace = s.ends() < s.deadline;
                decisions_.decide(at, s.counted >= s.k ? outcome::partial : outcome::failed, time,
                                  in_grace ? ending::grace : ending::deadline);
                continue;
            }
            s.hedge_at = never_ns;
            for (std::size_t m = 0; m < s.members; ++m) {
                asked_member& each = pool_.member(at, m);
                if (each.hedge_at <= time) {
                    each.hedge_at = never_ns;
                    if (s.waits_for(each) && now < s.ends()) (void)hedges_.add(at, m, now);
                }
                s.hedge_at = std::min(s.hedge_at, each.hedge_at);
            }
            decisions_.reschedule(at);
        }
    }
    /// Returns when `advance` is due; `never_ns`: not at all.
    std::int64_t next_event() const noexcept { return due().time(); }

    /// Gives a request to send to a second replica. False: there is none.
    bool next_hedge(slot_index& at, peer_index& to) noexcept { return hedges_.next(at, to); }
    /// True if requests wait for credits. After `release`, which takes no time, call `advance`, then
    /// `next_ask`.
    bool any_waiting() const noexcept { return roster_.any_waiting(); }
    /// Gives a request to send to a member that had no credit before. False: there is none.
    bool next_ask(slot_index& at, peer_index& to) noexcept {
        if (!roster_.any_waiting() || !members_.ask_later(at, to, now_)) return false;
        decisions_.reschedule(at); // there may be a hedge
        return true;
    }
    /// Gives an early row that was dropped: its place is the caller's again. False: there is none.
    bool next_returned(early_row& row) noexcept { return early_.next_returned(row); }
    /// Gives a decided request, each once, in the order of decisions. False: there is none.
    bool next_decided(slot_index& at) noexcept { return decisions_.next(at); }

    /// Ends an undecided request as cancelled. False: the slot has no undecided request with this id.
    bool cancel(slot_index at, std::uint64_t id) noexcept {
        if (at >= pool_.size() || !is_open(at) || pool_[at].id != id) return false;
        decisions_.decide(at, outcome::cancelled, now_, ending::other);
        return true;
    }
    /// Ends all requests as closed, and refuses later ones.
    void close(std::int64_t now) noexcept {
        advance(now);
        closed_ = true;
        while (!due().empty())
            decisions_.decide(due().first(), outcome::closed, now, ending::other); // all that are open
    }
    /// Frees a decided slot: calls `give(peer_index, place_index)` for each row that counted.
    template <class Give> void release(slot_index at, Give&& give) noexcept {
        if (is_open(at)) decisions_.decide(at, outcome::cancelled, now_, ending::other);
        decisions_.unlink(at);
        for (contribution const& row : contributions(at)) {
            give(row.peer, row.place);
            roster_.peer(row.peer).full = false;
        }
        if (pool_[at].expected) early_.ended(pool_[at].id);
        pool_.release(at);
    }

    // ---- a decided request, until its release

    /// The rows that counted, in roster order, whatever the outcome.
    std::span<contribution const> contributions(slot_index at) const noexcept {
        return {pool_.rows(at), pool_[at].is == request_slot::state::decided ? pool_[at].counted : 0};
    }
    /// Marks the row of a contributor as changed since it counted, and no longer sound. Its place stays
    /// taken.
    void refuse(slot_index at, std::size_t m) noexcept {
        pool_.member(at, m).why = miss::refused_row;
        ++roster_[m].counts.refused_rows[static_cast<std::size_t>(row_check::malformed)];
    }
    outcome result(slot_index at) const noexcept { return pool_[at].how; }
    bool is_decided(slot_index at) const noexcept { return pool_[at].is == request_slot::state::decided; }
    member_set const& contributors(slot_index at) const noexcept { return pool_[at].contributors; }
    miss why(slot_index at, std::size_t m) const noexcept {
        return m < pool_[at].members ? pool_.member(at, m).why : miss::not_asked;
    }
    /// Returns the time from the request's entry to the member's row, late rows included; −1: none has come.
    std::int64_t latency_ns(slot_index at, std::size_t m) const noexcept {
        return m < pool_[at].members ? pool_.member(at, m).latency : -1;
    }
    /// Returns the time from the request's entry to its decision.
    std::int64_t decided_ns(slot_index at) const noexcept { return pool_[at].decided - pool_[at].entered; }
    std::uint64_t id(slot_index at) const noexcept { return pool_[at].id; }
    std::size_t k(slot_index at) const noexcept { return pool_[at].k; }

    // ---- counters

    std::size_t in_flight() const noexcept { return pool_.in_flight(); }
    std::size_t unanswered_by(peer_index at) const noexcept { return roster_.peer(at).owed.used(); }
    member_counters const& counters(std::size_t m) const noexcept { return roster_[m].counts; }
    frontend_counters const& totals() const noexcept { return totals_; }
    /// From sending a request to its row, late rows included.
    time_window const& latencies(std::size_t m) const noexcept { return roster_[m].latencies; }
    /// From a decision without the member to its row.
    time_window const& lateness(std::size_t m) const noexcept { return roster_[m].lateness; }

  private:
    using ending = request_decisions::ending;

    due_queue const& due() const noexcept { return decisions_.due(); }
    bool is_open(slot_index at) const noexcept { return pool_[at].is == request_slot::state::open; }

    // True if requests wait for a credit of the member, and no replica is left to ask.
    bool will_not_be_asked(std::size_t m) const noexcept {
        return roster_[m].waiting > 0 && !roster_.choose(m, no_peer).admitted;
    }
    void push_waiting_for(std::size_t m) noexcept {
        for (slot_index s = 0; s < pool_.size(); ++s)
            if (pool_[s].waiting > 0 && pool_.member(s, m).is == asked_member::state::waiting)
                lost_.push_back(s);
    }
    void sort_lost() noexcept {
        std::sort(lost_.begin(), lost_.end(),
                  [&](slot_index a, slot_index b) { return pool_[a].order < pool_[b].order; });
    }

    begun refuse(outcome how) noexcept {
        ++totals_.ended[static_cast<std::size_t>(how)];
        return {how, no_slot, 0};
    }

    begun begin_request(request const& r, std::int64_t now) noexcept {
        advance(now);
        if (closed_) return refuse(outcome::closed);
        if (r.expect && ((r.expected_id & slot_pool::sent_bit) != 0 || pool_.find(r.expected_id) != no_slot))
            return {outcome::failed, no_slot, 0};
        if (!pool_.any_free()) return refuse(outcome::busy);
        slot_index const at = pool_.take(r.expect, r.expected_id);
        request_slot& s = pool_[at];
        s.entered = r.entered;
        s.deadline = r.deadline;
        s.k = std::max<std::size_t>(r.k > 0 ? r.k : options_.k, 1);
        members_.choose(at, r.among);
        begun const result{outcome::full, at, s.id};
        if (s.open + s.waiting < s.k || now >= s.deadline) {
            decisions_.dismiss_waiting(at);
            members_.dismiss(at, now >= s.deadline ? miss::expired : miss::not_asked);
            decisions_.decide(at, outcome::failed, now, ending::other);
            return result;
        }
        members_.ask(at, now);
        decisions_.reschedule(at);
        return result;
    }

    arrival take_row(peer_index at, std::uint64_t incarnation, std::uint64_t id, place_index place,
                     row_check check, std::int64_t now) noexcept {
        request_answer const a = answers_.take(at, incarnation, id, !closed_ && early_.may_keep(id));
        if (a.is != arrival::counted) return a.is;
        roster_member& m = roster_[roster_.member_of(at)];
        if (check != row_check::good) {
            m.standing.forget(id);
            ++m.counts.refused_rows[static_cast<std::size_t>(check)];
            if (a.last()) decisions_.gone(a.slot, *a.asked, miss::refused_row, now);
            return arrival::refused;
        }
        m.latencies.add(now - a.ask.asked);
        if (hedges_.may()) m.delay.sampled(m.latencies, options_.hedging);
        if (a.asked != nullptr && a.asked->is == asked_member::state::open && is_open(a.slot)) {
            decisions_.count(a.slot, *a.asked,
                             {.member = static_cast<std::uint32_t>(roster_.member_of(at)),
                              .peer = at,
                              .place = place,
                              .incarnation = incarnation},
                             now);
            return arrival::counted;
        }
        ++m.counts.late;
        ++totals_.late_rows;
        if (a.ask.frozen != never_ns) m.lateness.add(now - a.ask.frozen);
        decisions_.late_row(roster_.member_of(at), id, a.ask.in_time, now);
        if (a.asked != nullptr && a.asked->latency < 0) a.asked->latency = now - pool_[a.slot].entered;
        return arrival::late;
    }

    // Counts the early rows of a request that has begun, in the order of arrival.
    void take_early(std::uint64_t id, std::int64_t now) noexcept {
        for (early_row row; early_.take(id, now, row);) {
            advance(now); // a grace of no time ends with the row before
            early_.taken(row, take_row(row.peer, row.incarnation, id, row.place, row.check, now) ==
                                  arrival::counted);
        }
    }

    table_options options_;
    slot_pool pool_;
    table_roster roster_;
    frontend_counters totals_;
    request_answers answers_;
    request_decisions decisions_;
    request_hedges hedges_;
    request_members members_;
    early_rows early_;
    std::vector<slot_index> lost_; // scratch of `lost`
    std::int64_t now_ = 0;
    bool closed_ = false;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_REQUEST_TABLE_HPP

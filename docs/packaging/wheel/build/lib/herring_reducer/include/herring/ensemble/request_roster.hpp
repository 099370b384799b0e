// herring: the members of an ensemble as the rules see them: connections, credits, probation and hedging.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUEST_ROSTER_HPP
#define HERRING_ENSEMBLE_REQUEST_ROSTER_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/quorum.hpp"
#include "herring/ensemble/request_slots.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A request that one peer has not answered. It outlives the request: a late row gives the credit back.
struct unanswered {
    std::uint64_t id = 0;
    std::int64_t asked = 0;
    /// Time of the decision without this peer's member; never_ns: none.
    std::int64_t frozen = never_ns;
    /// End of the time in which the row, late for the answer, is in time for probation; never_ns: already
    /// judged.
    std::int64_t in_time = never_ns;
};

/// The credits of one peer: it is sent a request only while fewer than `size()` are unanswered.
///
/// Cost:    a search starts at id mod size. O(1) with as many credits as requests in flight; O(size) for an
///          id that was never asked.
class credits {
  public:
    explicit credits(std::size_t size) : ids_(size, free), asks_(size) {}

    std::size_t size() const noexcept { return ids_.size(); }
    std::size_t used() const noexcept { return used_; }
    bool left() const noexcept { return used_ < ids_.size(); }

    /// Records a request. Requires `left()`, and an id that is not recorded.
    void take(std::uint64_t id, std::int64_t now) noexcept {
        std::size_t at = near(id);
        while (ids_[at] != free) at = after(at);
        ids_[at] = id;
        asks_[at] = {.id = id, .asked = now};
        ++used_;
    }
    /// Returns the request, or nullptr if the peer does not owe an answer to it.
    unanswered* find(std::uint64_t id) noexcept {
        if (used_ == 0 || id == free) return nullptr;
        std::size_t at = near(id);
        for (std::size_t seen = 0; seen < ids_.size(); ++seen, at = after(at))
            if (ids_[at] == id) return &asks_[at];
        return nullptr;
    }
    void give_back(unanswered const& ask) noexcept {
        ids_[static_cast<std::size_t>(&ask - asks_.data())] = free;
        --used_;
    }
    template <class Visit> void for_each(Visit&& f) const {
        for (std::size_t i = 0; i < ids_.size(); ++i)
            if (ids_[i] != free) f(asks_[i]);
    }
    void clear() noexcept {
        for (std::uint64_t& id : ids_) id = free;
        used_ = 0;
    }

  private:
    static constexpr std::uint64_t free = 0; // no request has this id

    std::size_t near(std::uint64_t id) const noexcept {
        return static_cast<std::uint32_t>(id) % static_cast<std::uint32_t>(ids_.size());
    }
    std::size_t after(std::size_t at) const noexcept { return at + 1 < ids_.size() ? at + 1 : 0; }

    std::vector<std::uint64_t> ids_; // apart from asks_: a search reads little
    std::vector<unanswered> asks_;
    std::size_t used_ = 0;
};

/// Probation of one member. It begins after `probation_after` requests in a row for which the member was
/// late, and ends after `probation_left_after` in a row for which it was in time.
///
/// A row that misses a grace of microseconds may only have waited for a core. So the end of a grace judges
/// nothing yet: the row may come until `quorum_tuning::late_after_us` after the k-th. One such request at a
/// time is pending; others that end meanwhile say nothing more about the member, which is away once, not
/// several times.
class probation {
  public:
    bool on() const noexcept { return on_; }

    /// Records that the member was in time. True: probation ends.
    bool in_time(quorum_tuning const& tuning) noexcept {
        late_ = 0;
        until_ = never_ns;
        if (!on_ || ++in_time_ < tuning.probation_left_after) return false;
        *this = {};
        return true;
    }
    /// Records that the member was late. True: probation begins.
    bool late(quorum_tuning const& tuning) noexcept {
        in_time_ = 0;
        until_ = never_ns;
        if (on_ || tuning.probation_after == 0 || ++late_ < tuning.probation_after) return false;
        late_ = 0;
        on_ = true;
        return true;
    }
    /// Records that a request has ended by time without the member's row, which is in time until `until`. If
    /// `until`, or that of the pending request, has passed, the member was late. True: probation begins.
    bool missed(std::uint64_t request, std::int64_t until, std::int64_t now,
                quorum_tuning const& tuning) noexcept {
        bool const entered = (until <= now || until_ <= now) && late(tuning);
        if (until > now && until_ == never_ns) {
            request_ = request;
            until_ = until;
        }
        return entered;
    }
    /// Records the row of a request. True: probation begins or ends.
    bool came(std::uint64_t request, std::int64_t now, quorum_tuning const& tuning) noexcept {
        if (until_ == never_ns || request != request_) return false;
        return now < until_ ? in_time(tuning) : late(tuning);
    }
    /// Drops the pending request: its row will not come, for a reason that says nothing about the member's
    /// speed.
    void forget(std::uint64_t request) noexcept {
        if (request == request_) until_ = never_ns;
    }
    void forget() noexcept { until_ = never_ns; }

  private:
    std::uint32_t late_ = 0, in_time_ = 0; // in a row
    bool on_ = false;
    std::uint64_t request_ = 0;     // the pending request,
    std::int64_t until_ = never_ns; // if this is a time
};

/// The wait for a member before a hedge: max(floor, p95 of its last 1,024 latencies).
///
/// Cost:    the percentile is computed at the first sample that suffices, and at every 32nd after that.
class hedge_delay {
  public:
    /// Updates the delay; to be called after each sample of `latencies`.
    void sampled(time_window const& latencies, hedging_tuning const& tuning) noexcept {
        std::uint64_t const first = tuning.samples > 0 ? tuning.samples : 1;
        if (latencies.added() < first || (latencies.added() - first) % refreshed_every != 0) return;
        std::int64_t const p95 = latencies.percentile(95), floor = std::int64_t{tuning.floor_us} * 1000;
        delay_ = p95 > floor ? p95 : floor;
    }
    std::int64_t ns() const noexcept { return delay_; } ///< `never_ns`: too few samples

    static constexpr std::uint64_t refreshed_every = 32;

  private:
    std::int64_t delay_ = never_ns;
};

/// The budget of hedges: grows by `percent` of a hedge with every request that is sent, up to `burst` hedges.
class hedge_budget {
  public:
    void sent(std::size_t requests, hedging_tuning const& tuning) noexcept {
        std::uint64_t const most = std::uint64_t{tuning.burst} * 100;
        hundredths_ += std::uint64_t{requests} * tuning.percent;
        if (hundredths_ > most) hundredths_ = most;
    }
    /// Takes back the share of a request that was counted but not sent.
    void unsent(hedging_tuning const& tuning) noexcept {
        hundredths_ -= hundredths_ < tuning.percent ? hundredths_ : tuning.percent;
    }
    bool take() noexcept {
        if (hundredths_ < 100) return false;
        hundredths_ -= 100;
        return true;
    }
    /// Returns a hedge that was taken and not sent.
    void give_back() noexcept { hundredths_ += 100; }

  private:
    std::uint64_t hundredths_ = 0;
};

/// The connection of one replica.
struct roster_peer {
    explicit roster_peer(std::size_t credits_of_each) : owed(credits_of_each) {}

    enum class state : std::uint8_t { absent, admitted, draining };
    state is = state::absent;
    /// True if the lane has no room for a request, though a credit is left; until the peer answers, or one of
    /// its rows is given back.
    bool full = false;
    std::uint64_t incarnation = 0;
    credits owed;
    bool may_owe() const noexcept { return owed.left() && !full; }
};

/// One member, all replicas together.
struct roster_member {
    probation standing;
    hedge_delay delay;
    member_counters counts;
    time_window latencies, lateness;
    std::size_t waiting = 0; ///< requests in flight that ask the member once it has a credit
};

/// All members in the order of the roster, each with the same number of replicas.
class table_roster {
  public:
    table_roster(std::size_t replicas, std::size_t credits_of_each, std::size_t members = 0)
        : replicas_(replicas), credits_(credits_of_each) {
        while (members_.size() < members) add();
    }

    /// Adds a member. Allocates.
    HERRING_SETUP void add() {
        members_.emplace_back();
        for (std::size_t r = 0; r < replicas_; ++r) peers_.emplace_back(credits_);
    }
    std::size_t size() const noexcept { return members_.size(); }
    std::size_t replicas() const noexcept { return replicas_; }
    bool has(peer_index at) const noexcept { return at < peers_.size(); }
    std::size_t member_of(peer_index at) const noexcept { return at / replicas_; }

    roster_member& operator[](std::size_t m) noexcept { return members_[m]; }
    roster_member const& operator[](std::size_t m) const noexcept { return members_[m]; }
    /// Counts a request that waits for a credit of the member.
    void waits(std::size_t m) noexcept {
        ++members_[m].waiting;
        ++waiting_;
    }
    void waits_no_more(std::size_t m) noexcept {
        --members_[m].waiting;
        --waiting_;
    }
    bool any_waiting() const noexcept { return waiting_ > 0; }
    roster_peer& peer(peer_index at) noexcept { return peers_[at]; }
    roster_peer const& peer(peer_index at) const noexcept { return peers_[at]; }

    struct choice {
        peer_index peer; ///< no_peer: none has a credit and room
        bool admitted;   ///< some replica would be asked if it had a credit
    };
    /// Chooses the replica to ask, other than `other`: the one with the fewest unanswered requests; of equals
    /// the lowest.
    choice choose(std::size_t m, peer_index other) const noexcept {
        choice best{no_peer, false};
        for (std::size_t r = 0; r < replicas_; ++r) {
            peer_index const at = static_cast<peer_index>(m * replicas_ + r);
            if (at == other || peers_[at].is != roster_peer::state::admitted) continue;
            best.admitted = true;
            if (peers_[at].may_owe() &&
                (best.peer == no_peer || peers_[at].owed.used() < peers_[best.peer].owed.used()))
                best.peer = at;
        }
        return best;
    }
    /// True if any replica may still send a row.
    bool reachable(std::size_t m) const noexcept {
        for (std::size_t r = 0; r < replicas_; ++r)
            if (peers_[m * replicas_ + r].is != roster_peer::state::absent) return true;
        return false;
    }
    /// Counts the members that would be asked if they had credits.
    std::size_t admitted() const noexcept {
        std::size_t all = 0;
        for (std::size_t m = 0; m < members_.size(); ++m) all += choose(m, no_peer).admitted ? 1u : 0u;
        return all;
    }

    /// Judges a member: in time for a request, or late.
    void judge(std::size_t m, bool in_time, quorum_tuning const& tuning) noexcept {
        probation& standing = members_[m].standing;
        if (in_time ? standing.in_time(tuning) : standing.late(tuning)) changed_.insert(m);
    }
    /// Records that a request ended by time without the member's row, which is in time until `until`.
    void missed(std::size_t m, std::uint64_t request, std::int64_t until, std::int64_t now,
                quorum_tuning const& tuning) noexcept {
        if (members_[m].standing.missed(request, until, now, tuning)) changed_.insert(m);
    }
    /// Records a row that was late for its answer.
    void came(std::size_t m, std::uint64_t request, std::int64_t now, quorum_tuning const& tuning) noexcept {
        if (members_[m].standing.came(request, now, tuning)) changed_.insert(m);
    }
    /// Starts probation anew, for a new connection of a member of one replica.
    void forget_verdicts(std::size_t m) noexcept {
        if (members_[m].standing.on()) changed_.insert(m);
        members_[m].standing = {};
    }
    /// Gives a member whose probation has begun or ended since the last report. False: there is none.
    bool next_probation(std::size_t& m, bool& on) noexcept {
        if (changed_.empty()) return false;
        for (m = 0; !changed_.contains(m);) ++m;
        changed_.erase(m);
        on = members_[m].standing.on();
        return true;
    }

  private:
    std::size_t replicas_, credits_, waiting_ = 0;
    std::vector<roster_peer> peers_; // member × replicas + replica
    std::vector<roster_member> members_;
    member_set changed_; // members whose probation changed
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_REQUEST_ROSTER_HPP

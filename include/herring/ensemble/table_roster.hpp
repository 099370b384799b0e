// herring: an ensemble's members, their replicas' connections, and which replica is asked.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_TABLE_ROSTER_HPP
#define HERRING_ENSEMBLE_TABLE_ROSTER_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/credits.hpp"
#include "herring/ensemble/hedging.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lateness.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/probation.hpp"
#include "herring/ensemble/slots.hpp"
#include "herring/quorum/quorum.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// One connection: of a replica of a member.
struct roster_peer {
    explicit roster_peer(std::size_t credits_of_each) : owed(credits_of_each) {}

    enum class state : std::uint8_t { absent, admitted, draining };
    state is = state::absent;
    bool full =
        false; ///< its lane has no room for another request, though a credit is left; until it answers or a row is given back
    std::uint64_t incarnation = 0;
    credits owed;
    bool may_owe() const noexcept { return owed.left() && !full; }
};

/// One member, whatever replica answers for it.
struct roster_member {
    probation standing;
    hedge_delay delay;
    member_counters counts;
    time_window latencies, lateness;
    std::size_t waiting = 0; ///< requests in flight that ask it when it has a credit
};

/// All members in the order of the roster, each with the same number of replicas.
class table_roster {
  public:
    table_roster(std::size_t replicas, std::size_t credits_of_each, std::size_t members = 0)
        : replicas_(replicas), credits_(credits_of_each) {
        while (members_.size() < members) add();
    }

    /// Allocates.
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
    /// A request waits for a credit of the member.
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
        peer_index peer; ///< no_peer: none has a credit, and room
        bool admitted;   ///< there is one that would be asked, if it had
    };
    /// The replica of a member that is to be asked, other than one: that with the fewest unanswered requests, the lowest of
    /// equals.
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
    /// Whether any replica may still send a row.
    bool reachable(std::size_t m) const noexcept {
        for (std::size_t r = 0; r < replicas_; ++r)
            if (peers_[m * replicas_ + r].is != roster_peer::state::absent) return true;
        return false;
    }
    /// Members that would be asked if they have credit.
    std::size_t admitted() const noexcept {
        std::size_t all = 0;
        for (std::size_t m = 0; m < members_.size(); ++m) all += choose(m, no_peer).admitted ? 1u : 0u;
        return all;
    }

    /// A verdict on a member: it was in time for a request, or late.
    void judge(std::size_t m, bool in_time, quorum_tuning const& tuning) noexcept {
        probation& standing = members_[m].standing;
        if (in_time ? standing.in_time(tuning) : standing.late(tuning)) changed_.insert(m);
    }
    /// A request ended by time without its row, which is in time until `until`.
    void missed(std::size_t m, std::uint64_t request, std::int64_t until, std::int64_t now,
                quorum_tuning const& tuning) noexcept {
        if (members_[m].standing.missed(request, until, now, tuning)) changed_.insert(m);
    }
    /// A row came that was late for its answer.
    void came(std::size_t m, std::uint64_t request, std::int64_t now, quorum_tuning const& tuning) noexcept {
        if (members_[m].standing.came(request, now, tuning)) changed_.insert(m);
    }
    /// A new connection of a member of one replica: what the last one did is forgotten.
    void forget_verdicts(std::size_t m) noexcept {
        if (members_[m].standing.on()) changed_.insert(m);
        members_[m].standing = {};
    }
    /// A member whose probation has begun or ended since it was last reported. False: none.
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
    member_set changed_; // probation
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_TABLE_ROSTER_HPP

// herring: the request that a member's answer belongs to: one in flight, one that is yet to come, or none.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUEST_ANSWERS_HPP
#define HERRING_ENSEMBLE_REQUEST_ANSWERS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/quorum.hpp"
#include "herring/ensemble/request_roster.hpp"
#include "herring/ensemble/request_rules.hpp"
#include "herring/ensemble/request_slots.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The fate of a row.
enum class arrival : std::uint8_t {
    counted,   ///< its place is in `contributions` until `release`
    late,      ///< came after the decision, or after another replica's row
    stale,     ///< of another incarnation, or for a request that the peer does not owe
    duplicate, ///< the peer has answered this request already
    refused,   ///< did not pass its check
    early      ///< not expected yet: kept in its place until `next_returned` gives it back
};

/// The request that a row or a decline belongs to.
struct request_answer {
    arrival is = arrival::stale; // counted: as far as the peer owes it
    slot_index slot = no_slot;   // if it is in flight
    asked_member* asked = nullptr;
    unanswered ask{}; // as it was before the answer
    bool open = false;

    /// True if the request is open and no other replica may answer for the member.
    bool last() const noexcept { return open && asked->is == asked_member::state::open && !asked->owed(); }
};

/// Finds the request of an answer, returns the peer's credit, and counts answers that belong to none. Part of
/// `request_table`.
///
/// Lifetime: no longer than its arguments.
class request_answers {
  public:
    request_answers(slot_pool& pool, table_roster& roster, frontend_counters& totals)
        : pool_(pool), roster_(roster), totals_(totals) {}
    request_answers(request_answers const&) = delete;
    request_answers& operator=(request_answers const&) = delete;

    /// Takes a row or a decline; the peer owes it no longer. `may_be_early`: it may belong to a request that
    /// is yet to come.
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
            a.open = pool_.is_open(a.slot);
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
    slot_pool& pool_;
    table_roster& roster_;
    frontend_counters& totals_;
};

/// A row that came before its request. It stays where it landed, in a place of its lane.
struct early_row {
    std::uint64_t id = 0;
    std::uint64_t incarnation = 0; ///< the peer's, as the rules count it
    std::int64_t came = 0;
    peer_index peer = 0;
    place_index place = 0;
    row_check check = row_check::good; ///< a row that did not pass is refused when it is expected
    std::uint64_t order = 0;           ///< of `keep`, over all rows
};

/// The early rows: at most `early_places` a peer. Also the ids of the last requests that ended, whose rows
/// are late and not early, and the rows whose places are to be given back. Part of `request_table`.
///
/// Cost:     to keep a row: O(recent + early_places). To take one: a search of all ids, if any row is kept.
/// Memory:   a record a place; only `grow` allocates.
/// Lifetime: no longer than the roster.
class early_rows {
  public:
    /// `age_ns`: how long a row is kept; 0: no row is.
    early_rows(table_roster& roster, std::int64_t age_ns) : roster_(roster), age_(age_ns) { grow(); }
    early_rows(early_rows const&) = delete;
    early_rows& operator=(early_rows const&) = delete;

    /// Makes room for the peers of the roster. Allocates.
    HERRING_SETUP void grow() {
        if (age_ <= 0) return;
        std::size_t const places = roster_.size() * roster_.replicas() * early_places;
        ids_.resize(places);
        rows_.resize(places);
        returned_.reserve(2 * places);
    }
    bool any() const noexcept { return kept_ > 0; }
    /// True if a request that is yet to come may have this id.
    bool may_keep(std::uint64_t id) const noexcept {
        return age_ > 0 && id != none && (id & slot_pool::sent_bit) == 0;
    }

    /// Keeps a row whose id no request in flight has. If all places of the peer are taken, its oldest row is
    /// dropped.
    arrival keep(early_row row) noexcept {
        member_counters& counts = counts_of(row);
        drop_old(row.peer, row.came);
        if (has_ended(row.id)) {
            ++counts.stale;
            return arrival::stale;
        }
        std::size_t at = no_place, oldest = first(row.peer);
        for (std::size_t i = first(row.peer); i < first(row.peer) + early_places; ++i) {
            if (ids_[i] == row.id) {
                ++counts.duplicate;
                return arrival::duplicate;
            }
            if (ids_[i] == none) at = i;
            if (rows_[i].order < rows_[oldest].order) oldest = i;
        }
        if (at == no_place) {
            ++counts.early_evicted;
            give_back(rows_[oldest]);
            drop(at = oldest);
        }
        ids_[at] = row.id;
        row.order = ++kept_ever_;
        rows_[at] = row;
        ++kept_;
        ++counts.early;
        return arrival::early;
    }
    /// Takes the row with this id that came first. False: there is none.
    bool take(std::uint64_t id, std::int64_t now, early_row& into) noexcept {
        while (kept_ > 0 && id != none) {
            std::size_t at = no_place;
            for (std::size_t i = 0; i < ids_.size(); ++i)
                if (ids_[i] == id && (at == no_place || rows_[i].order < rows_[at].order)) at = i;
            if (at == no_place) return false;
            into = rows_[at];
            drop(at);
            if (!is_old(into, now)) return true;
            ++counts_of(into).early_expired;
            give_back(into);
        }
        return false;
    }
    /// Counts a row that was taken, or gives its place back.
    void taken(early_row const& row, bool counts) noexcept {
        if (counts)
            ++counts_of(row).early_answered;
        else
            give_back(row);
    }
    /// Drops the rows of a peer that is lost.
    void lost(peer_index peer, std::int64_t now) noexcept {
        if (kept_ == 0) return;
        drop_old(peer, now);
        for (std::size_t i = first(peer); i < first(peer) + early_places; ++i)
            if (ids_[i] != none) {
                give_back(rows_[i]);
                drop(i);
            }
    }
    /// Records that a request with this id has ended.
    void ended(std::uint64_t id) noexcept { ended_[next_ended_++ % recent] = id; }

    /// Gives a row that was dropped: its place is the caller's again. False: there is none.
    bool next_returned(early_row& into) noexcept {
        if (returned_.empty()) return false;
        into = returned_.back();
        returned_.pop_back();
        return true;
    }

    static constexpr std::size_t recent = 256; // ids of ended requests

  private:
    static constexpr std::uint64_t none = 0; // no expected request has this id
    static constexpr std::size_t no_place = ~std::size_t{0};

    static std::size_t first(peer_index peer) noexcept { return std::size_t{peer} * early_places; }
    bool is_old(early_row const& row, std::int64_t now) const noexcept { return now - row.came >= age_; }
    bool has_ended(std::uint64_t id) const noexcept {
        bool found = false;
        for (std::uint64_t const each : ended_) found |= each == id;
        return found;
    }
    member_counters& counts_of(early_row const& row) noexcept {
        return roster_[roster_.member_of(row.peer)].counts;
    }
    void give_back(early_row const& row) noexcept { returned_.push_back(row); } // reserved
    void drop(std::size_t at) noexcept {
        ids_[at] = none;
        --kept_;
    }
    void drop_old(peer_index peer, std::int64_t now) noexcept {
        for (std::size_t i = first(peer); i < first(peer) + early_places; ++i)
            if (ids_[i] != none && is_old(rows_[i], now)) {
                ++counts_of(rows_[i]).early_expired;
                give_back(rows_[i]);
                drop(i);
            }
    }

    table_roster& roster_;
    std::int64_t age_;
    std::vector<std::uint64_t> ids_; // apart from rows_: a search reads little
    std::vector<early_row> rows_;    // peer × early_places
    std::vector<early_row> returned_;
    std::array<std::uint64_t, recent> ended_{};
    std::size_t next_ended_ = 0, kept_ = 0;
    std::uint64_t kept_ever_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_REQUEST_ANSWERS_HPP

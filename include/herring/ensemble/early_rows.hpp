// herring: rows that members contribute before the frontend expects them: a few of each, for a while.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_EARLY_ROWS_HPP
#define HERRING_ENSEMBLE_EARLY_ROWS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/request_answers.hpp"
#include "herring/ensemble/slots.hpp"
#include "herring/ensemble/table_roster.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A row that came early. It stays where it landed: in a place of its lane.
struct early_row {
    std::uint64_t id = 0;
    std::uint64_t incarnation = 0; ///< of the peer, as the rules have it
    std::int64_t came = 0;
    peer_index peer = 0;
    place_index place = 0;
    row_check check = row_check::good; ///< a row that did not pass is refused when it is expected
    std::uint64_t order = 0;           ///< of `keep`, over all rows
};

/// Part of `request_table`: at most `early_places` rows of each peer, and the ids of requests that have ended, whose rows are late
/// and not early. Also the rows that are kept no longer, until their places were given back.
///
/// Cost:     keeping a row: O(recent + early_places); what is expected is looked for in all ids, where there is any row.
/// Memory:   a record a place; nothing is allocated but by `grow`.
/// Lifetime: no longer than the roster.
class early_rows {
  public:
    /// `age_ns`: how long a row is kept; 0: none is.
    early_rows(table_roster& roster, std::int64_t age_ns) : roster_(roster), age_(age_ns) { grow(); }
    early_rows(early_rows const&) = delete;
    early_rows& operator=(early_rows const&) = delete;

    /// Room for the peers of the roster. Allocates.
    HERRING_SETUP void grow() {
        if (age_ <= 0) return;
        std::size_t const places = roster_.size() * roster_.replicas() * early_places;
        ids_.resize(places);
        rows_.resize(places);
        returned_.reserve(2 * places);
    }
    bool any() const noexcept { return kept_ > 0; }
    /// An id that a request which is yet to come may have.
    bool may_keep(std::uint64_t id) const noexcept {
        return age_ > 0 && id != none && (id & slot_pool::sent_bit) == 0;
    }

    /// Keeps a row whose id no request in flight has. If the peer's places are all taken, its oldest row goes.
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
    /// The row that came first of those with this id, which are kept no longer. False: none.
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
    /// What has been taken counts, or its place is the caller's again.
    void taken(early_row const& row, bool counts) noexcept {
        if (counts)
            ++counts_of(row).early_answered;
        else
            give_back(row);
    }
    /// The peer is lost: none of its rows will count.
    void lost(peer_index peer, std::int64_t now) noexcept {
        if (kept_ == 0) return;
        drop_old(peer, now);
        for (std::size_t i = first(peer); i < first(peer) + early_places; ++i)
            if (ids_[i] != none) {
                give_back(rows_[i]);
                drop(i);
            }
    }
    /// A request with this id has ended.
    void ended(std::uint64_t id) noexcept { ended_[next_ended_++ % recent] = id; }

    /// A row that is kept no longer and did not count. False: none.
    bool next_returned(early_row& into) noexcept {
        if (returned_.empty()) return false;
        into = returned_.back();
        returned_.pop_back();
        return true;
    }

    static constexpr std::size_t recent = 256; // ids of requests that have ended

  private:
    static constexpr std::uint64_t none = 0; // no expected request's id
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
    std::vector<std::uint64_t> ids_; // beside rows_, so that a search reads little
    std::vector<early_row> rows_;    // peer × early_places
    std::vector<early_row> returned_;
    std::array<std::uint64_t, recent> ended_{};
    std::size_t next_ended_ = 0, kept_ = 0;
    std::uint64_t kept_ever_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_EARLY_ROWS_HPP

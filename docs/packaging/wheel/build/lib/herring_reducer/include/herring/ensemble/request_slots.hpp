// herring: the requests in flight at a frontend, the state of each member in each, and which is due next.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUEST_SLOTS_HPP
#define HERRING_ENSEMBLE_REQUEST_SLOTS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/quorum.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

inline constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();
inline constexpr peer_index no_peer = ~peer_index{0};
inline constexpr slot_index no_slot = ~slot_index{0};

/// A row that counts.
struct contribution {
    std::uint32_t member = 0;
    peer_index peer = 0;
    place_index place = 0;
    std::uint64_t incarnation = 0; ///< of the peer that sent the row; the peer may have gone since
};

/// The state of one member in one request.
struct asked_member {
    enum class state : std::uint8_t {
        out,     ///< not asked
        waiting, ///< has no credit; is asked when it has one
        open,    ///< asked; no replica that was asked has answered
        counted, ///< its row counts
        gone     ///< will not answer any more
    };
    state is = state::out;
    miss why = miss::not_asked; ///< final once the request is decided
    bool slow = false;          ///< on probation when the request began
    bool first_owes = false;    ///< the first replica has not answered yet
    bool second_owes = false;
    bool heard = false; ///< expected requests: some replica has answered
    peer_index first = no_peer, second = no_peer;
    contribution row; ///< if counted
    std::int64_t hedge_at = never_ns;
    std::int64_t latency = -1; ///< from the request's entry to the row, late rows included

    bool owed() const noexcept { return first_owes || second_owes; }
    void answered_by(peer_index peer) noexcept { (first == peer ? first_owes : second_owes) = false; }
    /// Forgets a peer that is lost: messages under its number now belong to the next connection.
    void forget(peer_index peer) noexcept {
        answered_by(peer);
        (first == peer ? first : second) = no_peer;
    }
};

/// One request in flight.
struct request_slot {
    enum class state : std::uint8_t { free, open, decided };
    state is = state::free;
    bool linked = false;   ///< in the list of decided requests
    bool expected = false; ///< members have the input from elsewhere and are sent nothing
    bool by_time = false;  ///< decided by the end of the grace or the deadline
    outcome how = outcome::failed;
    std::uint64_t id = 0, order = 0; ///< order: counts `begin` over all requests
    std::int64_t entered = 0, deadline = 0, decided = 0;
    std::int64_t until = never_ns; ///< set by the k-th row: end of the grace
    /// Set by the k-th row: when a member without a row is late for its probation.
    std::int64_t late_at = never_ns;
    std::int64_t hedge_at = never_ns;
    std::size_t k = 0, members = 0,
                target = 0; // members: of the roster at `begin`; target: members that the request is for
    std::size_t open = 0, open_slow = 0, counted = 0, counted_slow = 0, asked = 0, waiting = 0;
    slot_index before = no_slot, after = no_slot; // in the list of decided requests
    member_set contributors;

    /// True if fewer than k members off probation remain: only then are members on probation waited for.
    bool waits_for_slow() const noexcept { return open - open_slow + counted - counted_slow < k; }
    std::size_t waited_for() const noexcept { return waits_for_slow() ? open : open - open_slow; }
    bool waits_for(asked_member const& m) const noexcept {
        return m.is == asked_member::state::open && (!m.slow || waits_for_slow());
    }
    std::int64_t ends() const noexcept { return until < deadline ? until : deadline; }
    std::int64_t late_from() const noexcept { return late_at < deadline ? late_at : deadline; }
};

/// The slots of a table, and which of them are free. An id names its slot. Ids of requests that the frontend
/// sends: bit 63, the number of `begin`, the slot. Ids of expected requests come from the program, without
/// bit 63.
class slot_pool {
  public:
    slot_pool(std::size_t slots, std::size_t members)
        : slot_bits_(static_cast<int>(std::bit_width(slots > 0 ? slots - 1 : 0))), stride_(members),
          slots_(slots), members_(slots * members), asked_(slots * members), rows_(slots * members) {
        free_.reserve(slots);
        for (std::size_t i = slots; i > 0; --i) free_.push_back(static_cast<slot_index>(i - 1));
    }

    std::size_t size() const noexcept { return slots_.size(); }
    std::size_t in_flight() const noexcept { return slots_.size() - free_.size(); }
    std::size_t expected() const noexcept { return expected_; }
    bool any_free() const noexcept { return !free_.empty(); }

    bool is_open(slot_index i) const noexcept { return slots_[i].is == request_slot::state::open; }
    request_slot& operator[](slot_index i) noexcept { return slots_[i]; }
    request_slot const& operator[](slot_index i) const noexcept { return slots_[i]; }
    asked_member& member(slot_index i, std::size_t m) noexcept { return members_[i * stride_ + m]; }
    asked_member const& member(slot_index i, std::size_t m) const noexcept {
        return members_[i * stride_ + m];
    }
    peer_index* asked(slot_index i) noexcept { return asked_.data() + i * stride_; }
    peer_index const* asked(slot_index i) const noexcept { return asked_.data() + i * stride_; }
    contribution* rows(slot_index i) noexcept { return rows_.data() + i * stride_; }
    contribution const* rows(slot_index i) const noexcept { return rows_.data() + i * stride_; }

    /// Takes a free slot. Requires `any_free()`.
    slot_index take(bool expected, std::uint64_t expected_id) noexcept {
        slot_index const i = free_.back();
        free_.pop_back();
        std::uint64_t const order = ++begun_;
        slots_[i] = {};
        slots_[i].is = request_slot::state::open;
        slots_[i].expected = expected;
        slots_[i].order = order;
        slots_[i].id = expected ? expected_id : sent_bit | order << slot_bits_ | i;
        if (expected) ++expected_;
        return i;
    }
    void release(slot_index i) noexcept {
        if (slots_[i].expected) --expected_;
        slots_[i].is = request_slot::state::free;
        free_.push_back(i); // reserved
    }
    /// Returns the slot of a request in flight; no_slot: no request has this id.
    ///
    /// Cost: O(1); O(slots) for an expected id.
    slot_index find(std::uint64_t id) const noexcept {
        if ((id & sent_bit) != 0) {
            std::uint64_t const i = id & ((std::uint64_t{1} << slot_bits_) - 1);
            return i < slots_.size() && holds(static_cast<slot_index>(i), id) ? static_cast<slot_index>(i)
                                                                              : no_slot;
        }
        if (expected_ > 0)
            for (slot_index i = 0; i < slots_.size(); ++i)
                if (holds(i, id)) return i;
        return no_slot;
    }

    /// Makes room for more members in each slot. Allocates; requests in flight stay.
    HERRING_SETUP void grow(std::size_t members) {
        if (members <= stride_) return;
        move(members_, members);
        move(asked_, members);
        move(rows_, members);
        stride_ = members;
    }

    static constexpr std::uint64_t sent_bit = std::uint64_t{1} << 63;

  private:
    bool holds(slot_index i, std::uint64_t id) const noexcept {
        return slots_[i].is != request_slot::state::free && slots_[i].id == id;
    }
    template <class Value> HERRING_SETUP void move(std::vector<Value>& table, std::size_t members) const {
        std::vector<Value> wider(slots_.size() * members);
        for (std::size_t i = 0; i < slots_.size(); ++i)
            for (std::size_t m = 0; m < stride_; ++m) wider[i * members + m] = table[i * stride_ + m];
        table = std::move(wider);
    }

    int slot_bits_;
    std::size_t stride_, expected_ = 0;
    std::uint64_t begun_ = 0;
    std::vector<request_slot> slots_;
    std::vector<asked_member> members_; // slot × stride + member, as the next two
    std::vector<peer_index> asked_;
    std::vector<contribution> rows_;
    std::vector<slot_index> free_;
};

/// Slots ordered by time, and at equal times by the order of their requests.
///
/// Cost:    a binary heap that knows the place of each slot: O(log slots) a change, O(1) for the first.
class due_queue {
  public:
    explicit due_queue(std::size_t slots) : where_(slots, absent) { heap_.reserve(slots); }

    bool empty() const noexcept { return heap_.empty(); }
    std::int64_t time() const noexcept { return heap_.empty() ? never_ns : heap_.front().time; }
    slot_index first() const noexcept { return heap_.front().slot; } ///< requires !empty()

    /// Puts a slot in, or changes its time. `order`: of its request, unique.
    void set(slot_index slot, std::int64_t time, std::uint64_t order) noexcept {
        std::size_t at = where_[slot];
        if (at == absent) {
            at = heap_.size();
            heap_.push_back({}); // reserved
        }
        put(at, {time, order, slot});
        down(up(at));
    }
    void erase(slot_index slot) noexcept {
        std::size_t const at = where_[slot];
        if (at == absent) return;
        where_[slot] = absent;
        entry const last = heap_.back();
        heap_.pop_back();
        if (at == heap_.size()) return;
        put(at, last);
        down(up(at));
    }

  private:
    struct entry {
        std::int64_t time = 0;
        std::uint64_t order = 0;
        slot_index slot = 0;

        friend bool operator<(entry const& a, entry const& b) noexcept {
            return a.time != b.time ? a.time < b.time : a.order < b.order;
        }
    };
    static constexpr std::size_t absent = ~std::size_t{0};

    void put(std::size_t at, entry const& e) noexcept {
        heap_[at] = e;
        where_[e.slot] = at;
    }
    std::size_t up(std::size_t at) noexcept {
        entry const moved = heap_[at];
        for (; at > 0 && moved < heap_[(at - 1) / 2]; at = (at - 1) / 2) put(at, heap_[(at - 1) / 2]);
        put(at, moved);
        return at;
    }
    void down(std::size_t at) noexcept {
        entry const moved = heap_[at];
        for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
            if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
            if (!(heap_[child] < moved)) break;
            put(at, heap_[child]);
            at = child;
        }
        put(at, moved);
    }

    std::vector<entry> heap_;
    std::vector<std::size_t> where_; // slot → place in heap_
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_REQUEST_SLOTS_HPP

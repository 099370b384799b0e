// herring: the state that a frontend's engine works on: requests, links, and rows that wait for their check.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_STATE_HPP
#define HERRING_ENSEMBLE_FRONTEND_STATE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/places.hpp"
#include "herring/ensemble/shared_lane.hpp"
#include "herring/ensemble/shared_regions.hpp"
#include "herring/ensemble/tcp_lane.hpp"
#include "herring/ensemble/wait_set.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/private_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The record of a request in flight, or of an answer that still exists.
struct in_flight {
    static constexpr std::uint32_t asleep = 0, called = 1;

    std::atomic<std::uint32_t> word{asleep}; ///< the thread that waits for the request sleeps on it
    bool decided = false;
    bool waits = false;    ///< a thread waits for it and does not drive
    bool is_async = false; ///< fetched by `next_done`
    bool weighted = false;
    bool shared = false; ///< a row that counted lies in memory that its member can write to
    bool hedged = false; ///< lanes of peers beside `asked` may hold its bytes
    outcome how = outcome::busy;
    std::uint64_t id = 0;
    std::uint64_t cookie = 0; ///< the program's number of an asynchronous request
    std::int64_t deadline = 0;
    std::span<std::byte const> bytes{}; ///< the request's bytes, while lanes may send them
    std::size_t rows = 0;               ///< rows that counted
    member_set contributors{};
    slot_index before = 0, after = 0; ///< neighbours in its `request_list`
};

/// A list of requests in flight, oldest first. Each request is in one list at most.
class request_list {
  public:
    bool empty() const noexcept { return first_ == none; }
    slot_index first() const noexcept { return first_; }

    void append(fixed_array<in_flight>& of, slot_index at) noexcept {
        of[at].before = last_;
        of[at].after = none;
        (last_ == none ? first_ : of[last_].after) = at;
        last_ = at;
    }
    void remove(fixed_array<in_flight>& of, slot_index at) noexcept {
        in_flight const& r = of[at];
        (r.before == none ? first_ : of[r.before].after) = r.after;
        (r.after == none ? last_ : of[r.after].before) = r.before;
    }

  private:
    static constexpr slot_index none = ~slot_index{0};

    slot_index first_ = none, last_ = none;
};

/// Sizes of the memory of requests in flight.
struct in_flight_sizes {
    std::size_t requests = 0;
    std::size_t members = 0;      ///< to which the roster may grow
    std::size_t result_bytes = 0; ///< bytes of a combined row and its outputs

    /// Returns the bytes of all requests.
    ///
    /// Shape:  requests · (members · 24 + result_bytes in cache lines + a record).
    constexpr std::size_t bytes() const noexcept {
        return requests * (members * (sizeof(std::span<std::byte const>) + 2 * sizeof(float)) + stride() +
                           sizeof(in_flight));
    }
    constexpr std::size_t stride() const noexcept { return round_up(result_bytes, 64); }
};

/// The record, rows, weights and result of every request in flight.
///
/// Lifetime: spans of rows point into lanes, which live while rows are held (`link`).
class requests_in_flight {
  public:
    HERRING_SETUP explicit requests_in_flight(in_flight_sizes const& sizes)
        : sizes_(sizes), records_(sizes.requests), rows_(sizes.requests * sizes.members),
          weights_(sizes.requests * sizes.members), chosen_(sizes.requests * sizes.members),
          results_(results(sizes)) {}

    std::size_t size() const noexcept { return records_.size(); }
    fixed_array<in_flight>& records() noexcept { return records_; }
    in_flight& operator[](slot_index at) noexcept { return records_[at]; }
    in_flight const& operator[](slot_index at) const noexcept { return records_[at]; }

    /// The weights of all members of the roster, as the program gave them.
    std::span<float> weights(slot_index at) noexcept { return {&weights_[first(at)], sizes_.members}; }
    /// The weights and the rows that counted, in roster order; `in_flight::rows` of them are filled.
    std::span<float> chosen(slot_index at) noexcept { return {&chosen_[first(at)], sizes_.members}; }
    std::span<std::span<std::byte const>> rows(slot_index at) noexcept {
        return {&rows_[first(at)], sizes_.members};
    }
    std::span<std::byte> result(slot_index at) noexcept {
        return {results_.data() + at * sizes_.stride(), sizes_.result_bytes};
    }

  private:
    std::size_t first(slot_index at) const noexcept { return at * sizes_.members; }
    HERRING_SETUP static private_memory results(in_flight_sizes const& sizes) {
        std::size_t all = 0;
        if (__builtin_mul_overflow(sizes.requests, sizes.stride(), &all))
            throw error(errc::no_resources, -1, -1, "frontend",
                        {sizes.requests, " results of ", sizes.result_bytes,
                         " bytes are more than there are addresses; lower in_flight"});
        return private_memory(all > 0 ? all : 64, -1);
    }

    in_flight_sizes sizes_;
    fixed_array<in_flight> records_;
    fixed_array<std::span<std::byte const>> rows_;
    fixed_array<float> weights_, chosen_;
    private_memory results_;
};

/// Rows that have landed and wait for their check. One thread checks them without the frontend's lock, so
/// that others can ask meanwhile.
///
/// Lifetime: a link whose row is here is held, so that its bytes stay.
/// Threads:  under the frontend's lock, but for `check`: that runs between `begin_check` and `end_check`,
///           when no row is pushed.
template <class Link> class landed_rows {
  public:
    struct row {
        Link* from = nullptr;
        std::uint64_t id = 0;
        place_index place = 0;
        std::span<std::byte const> bytes{};
        row_check is = row_check::good;
    };

    /// True if rows wait and no thread checks them.
    bool any() const noexcept { return count_ != 0 && !checking_; }
    /// Appends a row. False: the list is full, or being checked.
    bool push(Link& from, std::uint64_t id, place_index place, std::span<std::byte const> bytes) noexcept {
        if (checking_ || count_ == most) return false;
        rows_[count_++] = {&from, id, place, bytes, row_check::good};
        return true;
    }

    void begin_check() noexcept { checking_ = true; }
    template <class Check> void check(Check&& check) noexcept {
        for (row& each : taken()) each.is = check(each.bytes);
    }
    /// Calls `take(row)` for each row in the order of arrival, and empties the list.
    template <class Take> void end_check(Take&& take) noexcept {
        for (row const& each : taken()) take(each);
        count_ = 0;
        checking_ = false;
    }

  private:
    static constexpr std::size_t most = 64;

    std::span<row> taken() noexcept { return {rows_, count_}; }

    row rows_[most];
    std::size_t count_ = 0;
    bool checking_ = false;
};

/// All links of a frontend: at most one in use a peer, those that broke, and those that are gone but for a
/// row that is still read.
///
/// Threads:  one at a time, under the frontend's lock.
/// Lifetime: no longer than the wait set.
template <class Link> class frontend_links {
  public:
    HERRING_SETUP frontend_links(std::size_t peers, wait_set& ready) : ready_(ready), links_(peers) {
        shared_.reserve(peers);
        broken_.reserve(peers);
        retired_.reserve(4 * peers);
    }
    frontend_links(frontend_links const&) = delete;
    frontend_links& operator=(frontend_links const&) = delete;
    ~frontend_links() {
        for (Link* const each : links_) delete each;
        for (Link* const each : retired_) delete each;
    }

    std::size_t size() const noexcept { return links_.size(); }
    /// Returns the peer's link in use, or nullptr.
    Link* operator[](std::size_t peer) const noexcept { return links_[peer]; }
    fixed_array<Link*> const& all() const noexcept { return links_; }
    /// Links through shared memory. They are polled in turns: no descriptor signals them.
    std::vector<Link*> const& shared() const noexcept { return shared_; }
    bool any_sockets() const noexcept { return sockets_ > 0; }

    /// Returns the link in use to this process of the member, or nullptr.
    Link* current(peer_index peer, std::uint64_t incarnation) const noexcept {
        Link* const l = peer < links_.size() ? links_[peer] : nullptr;
        return l != nullptr && l->incarnation() == incarnation ? l : nullptr;
    }
    /// Returns the link of this admission, retired or not: a lane that broke and the next one of the same
    /// process have different rows.
    Link* of_admission(peer_index peer, std::uint64_t serial) const noexcept {
        if (Link* const l = links_[peer]; l != nullptr && l->serial() == serial) return l;
        for (Link* const l : retired_)
            if (l->serial() == serial) return l;
        return nullptr;
    }

    /// Puts a link into use, and retires the peer's last one. False: the wait set is full.
    HERRING_SETUP bool put(std::unique_ptr<Link>& fresh) noexcept {
        peer_index const peer = fresh->peer();
        if (!ready_.watch(fresh->descriptor(), peer)) return false;
        if (links_[peer] != nullptr) retire(peer);
        links_[peer] = fresh.release();
        if (links_[peer]->is_shared())
            shared_.push_back(links_[peer]);
        else
            ++sockets_;
        return true;
    }
    /// Takes the peer's link out of use. It lives as long as one of its rows is held.
    HERRING_SETUP void retire(peer_index peer) noexcept {
        Link* const l = std::exchange(links_[peer], nullptr);
        ready_.forget(l->descriptor());
        if (l->is_shared())
            shared_.erase(std::find(shared_.begin(), shared_.end(), l));
        else
            --sockets_;
        std::erase(broken_, peer); // the next link has not broken
        retired_.push_back(l);
    }
    /// Deletes retired links that are not held. Called by the acceptor's thread, so that no request waits for
    /// an unmap or close.
    HERRING_SETUP void sweep() noexcept {
        for (std::size_t i = 0; i < retired_.size();)
            if (retired_[i]->is_held()) {
                ++i;
            } else {
                delete retired_[i];
                retired_[i] = retired_.back();
                retired_.pop_back();
            }
    }

    void broken(peer_index peer) noexcept { broken_.push_back(peer); }
    /// Returns a link in use that broke, or nullptr.
    Link* next_broken() noexcept {
        while (!broken_.empty()) {
            peer_index const peer = broken_.back();
            broken_.pop_back();
            if (Link* const l = links_[peer]) return l;
        }
        return nullptr;
    }

    void watch_writes(Link& l) noexcept {
        if (l.wants_write() == l.watched_for_write) return;
        l.watched_for_write = !l.watched_for_write;
        ready_.rewatch(l.descriptor(), l.peer(), l.watched_for_write);
    }
    /// Tells all lanes that this end sleeps. False: a lane has something, and none was told.
    bool announce_sleep() noexcept {
        for (Link* const l : shared_)
            if (!l->try_sleep()) {
                awake();
                return false;
            }
        return true;
    }
    void awake() noexcept {
        for (Link* const l : shared_) l->awake();
    }

  private:
    wait_set& ready_;
    fixed_array<Link*> links_; // by peer
    std::vector<Link*> shared_, retired_;
    std::vector<peer_index> broken_;
    std::size_t sockets_ = 0;
};

/// The bytes of requests in flight: in memory that members of this host read, or in private memory.
class request_store {
  public:
    /// Errors: `no_resources`; `unsupported` if `lanes` allows shared memory only, and there is none.
    HERRING_SETUP request_store(std::size_t in_flight, std::size_t request_bytes, std::size_t peers,
                                std::size_t credits, lane lanes) {
        if (lanes != lane::tcp) {
            try {
                shared_.emplace(request_layout{in_flight, request_bytes, peers, credits});
                return;
            } catch (error const&) {
                if (lanes == lane::shared) throw;
            }
        }
        own_.emplace(in_flight, request_bytes);
    }

    /// Returns the memory that members of this host map; −1: none.
    int descriptor() const noexcept { return shared_ ? shared_->descriptor() : -1; }
    /// Returns the place of a request's bytes. Members that still read the slot's last request can tell.
    std::span<std::byte> slot(slot_index at) noexcept { return shared_ ? shared_->slot(at) : (*own_)[at]; }
    request_region* region() noexcept { return shared_ ? &*shared_ : nullptr; }

  private:
    manual_lifetime<request_region> shared_;
    manual_lifetime<place_memory> own_;
};

/// The kinds of lanes in use: TCP and shared memory.
struct frontend_lanes {
    using tcp = tcp_lane_frontend;
    using shared = shared_lane_frontend;
    using requests = request_store;

    /// Opens a lane.
    ///
    /// Errors: `protocol`, `no_resources`: the member's memory is not as agreed, or there is none.
    template <class Link>
    HERRING_SETUP static void open(Link& into, lane_ends&& ends, requests& of, peer_index peer,
                                   std::uint32_t credits, std::size_t request_bytes, std::size_t row_bytes) {
        if (!ends.is_shared())
            into.open_tcp(detail::descriptor(std::exchange(ends.socket, -1)),
                          lane_sizes{credits, request_bytes, row_bytes});
        else if (of.region() != nullptr)
            into.open_shared(*of.region(), std::move(ends), peer, credits, row_bytes);
        else
            throw error(errc::protocol, -1, -1, "frontend", "it came by shared memory, and there is none");
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_STATE_HPP

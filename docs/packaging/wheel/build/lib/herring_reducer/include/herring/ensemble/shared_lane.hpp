// herring: the lane by shared memory: the frontend's end and the member's, on rings of messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_SHARED_LANE_HPP
#define HERRING_ENSEMBLE_SHARED_LANE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/shared_regions.hpp"
#include "herring/ensemble/shared_ring.hpp"
#include "herring/machine/descriptor.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The common part of both ends of a lane: a ring to write, one to read, a socket for wake-ups, a sleep flag
/// of each end, and the reason why the lane is broken.
///
/// A message is published first; then the other end's flag is read, and a wake-up is sent if it sleeps.
/// Wake-ups are read only while the socket is known to be readable, a few at a time. Each belongs to one
/// message, so an end that sends more wake-ups than messages breaks the lane.
class shared_lane {
  public:
    shared_lane(ring_writer out, ring_reader in, sleep_flag& mine, sleep_flag const& others,
                wake_up_socket wake_up) noexcept
        : out_(out), in_(in), sleeper_(mine), waker_(others), wake_up_(std::move(wake_up)) {}

    int descriptor() const noexcept { return wake_up_.descriptor(); }
    bool is_broken() const noexcept { return error_[0] != 0; }
    std::string_view error() const noexcept { return error_; }

    template <class... Numbers> HERRING_SETUP void fail(char const* format, Numbers... numbers) noexcept {
        if (!is_broken()) std::snprintf(error_, sizeof error_, format, numbers...);
    }

    /// Publishes a message. False if the other end is gone; its earlier messages can still be read.
    bool write(ring_message const& message) noexcept {
        out_.fill(message);
        out_.publish();
        if (waker_.must_wake()) wake_up_.wake();
        return !wake_up_.is_closed();
    }

    /// Calls `take(message)` for each message that has come, until one breaks the lane. False if the lane is
    /// broken.
    template <class Take> bool read(Take&& take) noexcept {
        sleeper_.awake();
        if (is_readable_) {
            wake_ups_ += static_cast<std::uint64_t>(wake_up_.drain());
            is_readable_ = false;
        }
        // At most as many as the ring has cells, so that an end that publishes without pause does not keep
        // this one reading.
        for (std::uint64_t left = in_.cells(); left > 0 && !is_broken() && in_.has_message(); --left)
            take(in_.take());
        if (wake_ups_ > in_.taken() + in_.cells()) fail("it rings its bell without a message%s", "");
        if (wake_up_.is_closed() && !in_.has_message())
            fail("it has closed its end of the shared memory%s", "");
        return !is_broken();
    }

    bool try_sleep() noexcept {
        return sleeper_.try_sleep([this]() noexcept { return is_broken() || in_.has_message(); });
    }
    /// Notes that the descriptor is readable, or may be: the next `read` drains it.
    void rung() noexcept { is_readable_ = true; }
    void awake() noexcept { sleeper_.awake(); }

  private:
    ring_writer out_;
    ring_reader in_;
    sleeper sleeper_;
    waker waker_;
    wake_up_socket wake_up_;
    bool is_readable_ = false;   // the socket of wake-ups
    std::uint64_t wake_ups_ = 0; // that were read
    char error_[128] = {};
};

/// The four numbers of a message. They come from another process: the reader checks their bounds.
struct shared_ask {
    std::uint64_t id = 0, remaining_us = 0;
    std::uint32_t slot = 0, place = 0;
    std::uint64_t bytes = 0;

    ring_message message() const noexcept {
        return {id, remaining_us, std::uint64_t{slot} << 32 | place, bytes};
    }
    static shared_ask of(ring_message const& m) noexcept {
        return {m[0], m[1], static_cast<std::uint32_t>(m[2] >> 32), static_cast<std::uint32_t>(m[2]), m[3]};
    }
};
struct shared_answer {
    std::uint64_t id = 0, bytes = 0;
    place_index place = 0;
    bool is_row = false;
    std::uint64_t reason = 0; ///< a `decline`, if it is no row

    ring_message message() const noexcept { return {id, bytes, place, is_row ? ~std::uint64_t{0} : reason}; }
    static shared_answer of(ring_message const& m) noexcept {
        return {m[0], m[1], m[2] < ~place_index{0} ? static_cast<place_index>(m[2]) : ~place_index{0},
                m[3] == ~std::uint64_t{0}, m[3]};
    }
};

/// The frontend's end, one for each peer. Each ask takes a place of the member's rows, which is free again
/// when the row was released or the ask declined; the place given back last is used first, because its lines
/// are in the caches.
///
/// The bytes of a row are in the member's memory, which the member can change while they are read: the fold
/// bounds each number where it uses it, and `answer` checks the result. So a member spoils its own row at
/// most: reads end where the place ends, and a member that is killed while it writes has published nothing.
///
/// Cost:    `ask`: a line written for the member to read, its flag read. `poll` without rows: one load.
/// Threads: one at a time.
/// Errors:  the constructor throws `protocol` for memory that is not as agreed, and `no_resources`; nothing
///          else throws.
/// Lifetime: `region` outlives it.
class shared_lane_frontend {
  public:
    /// `credits`: of this peer, from its admission; at most those of the region's layout.
    HERRING_SETUP shared_lane_frontend(request_region& region, lane_ends ends, peer_index peer,
                                       std::uint64_t credits, std::uint64_t row_bytes)
        : shared_lane_frontend(
              region, detail::descriptor(std::exchange(ends.wake_up, -1)),
              row_view(detail::descriptor(std::exchange(ends.memory, -1)), {peer, credits, row_bytes})) {}

    /// Asks the member for the row of request `id`, whose bytes lie in the region's slot, or are copied there
    /// for the first member that is asked. False if no place is free, the request is too long, or the lane is
    /// broken.
    bool ask(slot_index slot, std::uint64_t id, std::uint64_t remaining_us,
             std::span<std::byte const> request) noexcept {
        if (free_count_ == 0 || lane_.is_broken() || request.size() > region_->layout().request_bytes)
            return false;
        region_->put(slot, id, request);
        place_index const place = free_[--free_count_];
        places_[place] = {id, 0, state::asked};
        if (lane_.write(shared_ask{id, remaining_us, slot, place, request.size()}.message())) return true;
        lane_.fail("it has closed its end of the shared memory%s", "");
        return false;
    }

    /// Notes that the descriptor was found readable. It stays readable until the next `poll`.
    void rung() noexcept { lane_.rung(); }
    /// Does nothing: members that still read the request notice when the slot gets its next one.
    void detach(slot_index) noexcept {}

    /// Calls `sink.row(id, place, bytes)` and `sink.declined(id, reason)` for each answer that has come. The
    /// place of a row stays taken until `release`, which the sink may call.
    ///
    /// Bounds:  as many answers at most as the ring has cells.
    /// Errors:  false: broken, as `error()` says. Answers that came before were reported.
    template <class Sink> bool poll(Sink& sink) noexcept {
        return lane_.read([&](ring_message const& m) noexcept { take(shared_answer::of(m), sink); });
    }

    /// The row that came in `place`.
    std::span<std::byte const> row(place_index place) const noexcept {
        return {rows_.row(place), places_[place].bytes};
    }
    /// Frees a place whose row is not needed any more. Does nothing where the place has no row.
    void release(place_index place) noexcept {
        if (place >= places_.size() || places_[place].now != state::landed) return;
        places_[place].now = state::free;
        if (place < credits()) {
            free_[free_count_++] = place;
        } else {
            // Does nothing if the section belongs to the next incarnation by now.
            std::uint64_t given = rows_.origin() + places_[place].id++;
            given_back(place).compare_exchange_strong(given, given + 1, std::memory_order_release,
                                                      std::memory_order_relaxed);
        }
    }

    /// Keeps a row that came early. Does nothing: its place is a spare one.
    void keep(place_index) noexcept {}

    bool wants_write() const noexcept { return false; }
    int descriptor() const noexcept { return lane_.descriptor(); }
    /// Asks the member for wake-ups, before this end waits for `descriptor()`. False if there is something to
    /// poll.
    bool try_sleep() noexcept { return lane_.try_sleep(); }
    /// Ends the request for wake-ups after the wait, as `poll` does.
    void awake() noexcept { lane_.awake(); }
    /// Reason why the lane is broken; empty: it is not.
    std::string_view error() const noexcept { return lane_.error(); }

  private:
    enum class state : std::uint8_t { free, asked, landed };
    struct place_state {
        std::uint64_t id = 0; // of the request; for a spare place, how often it was given back
        std::uint64_t bytes = 0;
        state now = state::free;
    };

    HERRING_SETUP shared_lane_frontend(request_region& region, detail::descriptor wake_up, row_view rows)
        : region_(&region), peer_(static_cast<peer_index>(rows.layout().peer)), rows_(std::move(rows)),
          places_(rows_.layout().places()), free_(credits()),
          lane_(opened(), ring_reader(rows_.answers(), rows_.layout().cells(), rows_.origin()),
                region.section(peer_).frontend, rows_.flag(), wake_up_socket(std::move(wake_up))) {
        for (; free_count_ < credits(); ++free_count_)
            free_[free_count_] = static_cast<place_index>(credits() - 1 - free_count_);
        for (std::uint64_t p = credits(); p < places_.size(); ++p)
            given_back(static_cast<place_index>(p)).store(rows_.origin(), std::memory_order_release);
    }
    HERRING_SETUP ring_writer opened() {
        if (peer_ >= region_->layout().peers || credits() > region_->layout().credits)
            throw herring::error(
                errc::bad_argument, -1, -1, "ensemble",
                {"there is no shared memory for peer ", peer_, " with ", credits(), " credits"});
        region_->open_section(peer_);
        return ring_writer(region_->asks(peer_), region_->layout().cells(), rows_.origin());
    }
    std::uint64_t credits() const noexcept { return rows_.layout().credits; }
    std::atomic<std::uint64_t>& given_back(place_index spare) noexcept {
        return region_->section(peer_).given_back[spare - credits()];
    }

    template <class Sink> void take(shared_answer const& a, Sink& sink) noexcept {
        if (a.place >= places_.size()) {
            lane_.fail("it sent a row of place %u where there are %zu", a.place, places_.size());
            return;
        }
        place_state& place = places_[a.place];
        bool const spare = a.place >= credits();
        if (spare ? place.now != state::free || !a.is_row : place.now != state::asked || place.id != a.id) {
            lane_.fail("it answered a request that it does not have, %llu",
                       static_cast<unsigned long long>(a.id));
        } else if (!a.is_row) {
            place.now = state::free;
            free_[free_count_++] = a.place;
            sink.declined(a.id, a.reason < declines ? static_cast<decline>(a.reason) : decline::unspecified);
        } else if (a.bytes > rows_.layout().row_bytes) {
            lane_.fail("it sent a row of %llu bytes where at most %llu are due",
                       static_cast<unsigned long long>(a.bytes),
                       static_cast<unsigned long long>(rows_.layout().row_bytes));
        } else {
            place.now = state::landed;
            place.bytes = a.bytes;
            sink.row(a.id, a.place, row(a.place));
        }
    }

    request_region* region_;
    peer_index peer_;
    row_view rows_;
    fixed_array<place_state> places_;
    fixed_array<place_index> free_; // places of asks: a stack
    std::size_t free_count_ = 0;
    shared_lane lane_;
};

/// The member's end, one for each frontend.
///
/// A request's bytes lie in the frontend's slot, which gets its next request when the frontend needs no more
/// rows for this one, for example after its deadline: `holds` tells. A row computed from such bytes may be
/// sent: the frontend drops it, because its request is not in flight any more.
///
/// Threads: one at a time.
/// Errors:  the constructor throws `protocol` for memory that is not as agreed; nothing else throws.
class shared_lane_member {
  public:
    /// `mine`: the region whose descriptor the frontend got at this admission; its layout has the peer and
    /// the credits.
    HERRING_SETUP shared_lane_member(row_region mine, lane_ends ends)
        : shared_lane_member(std::move(mine), detail::descriptor(std::exchange(ends.wake_up, -1)),
                             detail::descriptor(std::exchange(ends.memory, -1))) {}

    /// Calls `sink.asked(id, remaining_us, request, place)` for each request that has come. The bytes can be
    /// read until the place is answered; a request whose slot has another one by now is declined at once as
    /// expired.
    ///
    /// Bounds:  as many asks at most as the ring has cells.
    /// Errors:  false: broken, as `error()` says. Requests that came before were reported.
    template <class Sink> bool poll(Sink& sink) noexcept {
        return lane_.read([&](ring_message const& m) noexcept { take(shared_ask::of(m), sink); });
    }

    /// Takes a spare place, for a row that the frontend did not ask for. False if all have unread rows.
    bool take(place_index& place) noexcept {
        for (std::uint64_t p = credits(); p < jobs_.size(); ++p) {
            place = static_cast<place_index>(p);
            if (!jobs_[p].busy && given_back(place) == mine_.origin() + jobs_[p].id) {
                jobs_[p].busy = true;
                return true;
            }
        }
        return false;
    }

    /// Memory for the encoded row of an answer.
    std::span<std::byte> row(place_index place) noexcept { return mine_.row(place); }

    /// True if the slot still has this request. If so after its bytes were read, the bytes were the
    /// request's.
    bool holds(place_index place) const noexcept {
        return place < credits() && jobs_[place].busy && requests_.holds(jobs_[place].slot, jobs_[place].id);
    }

    /// Answers with the first `bytes` of the place's row. False if the lane is broken, or the place is not
    /// that of job `id`.
    bool send(std::uint64_t id, place_index place, std::size_t bytes) noexcept {
        return bytes <= mine_.layout().row_bytes &&
               answer({.id = id, .bytes = bytes, .place = place, .is_row = true, .reason = 0});
    }
    bool decline(std::uint64_t id, place_index place, enum herring::decline reason) noexcept {
        if (place >= credits() && place < jobs_.size()) { // a spare place: the frontend knows nothing of it
            jobs_[place].busy = false;
            return true;
        }
        return answer({.id = id,
                       .bytes = 0,
                       .place = place,
                       .is_row = false,
                       .reason = static_cast<std::uint64_t>(reason)});
    }

    bool wants_write() const noexcept { return false; }
    int descriptor() const noexcept { return lane_.descriptor(); }
    /// Asks the frontend for wake-ups, before this end waits for `descriptor()`. False if there is something
    /// to poll.
    bool try_sleep() noexcept {
        if (!lane_.try_sleep()) return false;
        lane_.rung(); // the wait does not report it
        return true;
    }
    /// Ends the request for wake-ups after the wait, as `poll` does.
    void awake() noexcept { lane_.awake(); }
    /// Reason why the lane is broken; empty: it is not.
    std::string_view error() const noexcept { return lane_.error(); }

  private:
    struct job {
        std::uint64_t id = 0; // of the request; for a spare place, how often it was sent
        slot_index slot = 0;
        bool busy = false;
    };

    HERRING_SETUP shared_lane_member(row_region mine, detail::descriptor wake_up, detail::descriptor memory)
        : mine_(std::move(mine)), requests_(std::move(memory), peer()), jobs_(mine_.layout().places()),
          lane_(ring_writer(mine_.answers(), mine_.layout().cells(), mine_.origin()),
                ring_reader(requests_.asks(peer()), requests_.layout().cells(), mine_.origin()), mine_.flag(),
                requests_.section(peer()).frontend, wake_up_socket(std::move(wake_up))) {}

    peer_index peer() const noexcept { return static_cast<peer_index>(mine_.layout().peer); }
    std::uint64_t credits() const noexcept { return mine_.layout().credits; }
    std::uint64_t given_back(place_index spare) const noexcept {
        return requests_.section(peer()).given_back[spare - credits()].load(std::memory_order_acquire);
    }

    template <class Sink> void take(shared_ask const& a, Sink& sink) noexcept {
        if (a.place >= credits() || a.slot >= requests_.layout().in_flight || jobs_[a.place].busy) {
            lane_.fail("it sent a request for place %u that is not free", a.place);
        } else if (a.bytes > requests_.layout().request_bytes) {
            lane_.fail("it sent a request of %llu bytes where at most %llu are due",
                       static_cast<unsigned long long>(a.bytes),
                       static_cast<unsigned long long>(requests_.layout().request_bytes));
        } else {
            jobs_[a.place] = {a.id, a.slot, true};
            if (holds(a.place))
                sink.asked(a.id, a.remaining_us, requests_.bytes_of(a.slot).first(a.bytes), a.place);
            else
                decline(a.id, a.place, herring::decline::expired);
        }
    }

    bool answer(shared_answer const& a) noexcept {
        if (lane_.is_broken() || a.place >= jobs_.size() || !jobs_[a.place].busy) return false;
        if (a.place < credits() && jobs_[a.place].id != a.id) return false;
        jobs_[a.place].busy = false;
        if (a.place >= credits()) ++jobs_[a.place].id;
        if (lane_.write(a.message())) return true;
        lane_.fail("it has closed its end of the shared memory%s", "");
        return false;
    }

    row_region mine_;
    request_view requests_;
    fixed_array<job> jobs_;
    shared_lane lane_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_SHARED_LANE_HPP

// herring: requests and rows between a frontend and one member over a stream socket: both ends.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_TCP_LANE_HPP
#define HERRING_ENSEMBLE_TCP_LANE_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/data_frames.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/places.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/net/frame_stream.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Bounds on which both ends have agreed at admission.
struct lane_sizes {
    std::uint32_t credits = 0; ///< requests that a member may have unanswered, and rows that a frontend keeps
    std::size_t request_bytes = 0; ///< most bytes of a request
    std::size_t row_bytes = 0;     ///< most bytes of a row
};

/// A message that an end of a lane sends, beside its bytes.
struct sent_note {
    std::uint64_t id = 0;    ///< of the request
    std::uint32_t owner = 0; ///< slot of a request, place of an answer; `no_owner`: its bytes were given up
};
inline constexpr std::uint32_t no_owner = ~std::uint32_t{0};

/// The common part of both ends of a lane: a socket, its two directions, and the reason why the lane is
/// broken.
class tcp_lane {
  public:
    using writer = frame_writer<data_head_bytes, sent_note>;

    /// `typical`: bytes of a usual payload that comes.
    HERRING_SETUP tcp_lane(detail::descriptor socket, std::size_t messages, std::size_t typical)
        : out(messages), socket_(std::move(socket)),
          in_(typical < large_payload ? stash_for_small : stash_for_large) {
        int const on = 1; // fails on a socket other than tcp, which does not need it
        (void)::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }

    int descriptor() const noexcept { return socket_.get(); }
    bool is_broken() const noexcept { return error_[0] != 0; }
    std::string_view error() const noexcept { return error_; }

    HERRING_SETUP void fail(char const* why) noexcept { fail("%s", why); }
    template <class... Values> HERRING_SETUP void fail(char const* format, Values... values) noexcept {
        if (!is_broken()) std::snprintf(error_, sizeof error_, format, values...); // the first reason stays
    }

    /// Queues a message. False: broken, or the queue is full.
    bool push(data_head const& head, std::span<std::byte const> payload, std::uint32_t owner) noexcept {
        if (is_broken() || out.is_full()) return false;
        writer::message& m = out.push();
        encode(head, m.head.data());
        m.head_bytes = data_head_bytes;
        m.from = payload.data();
        m.length = payload.size();
        m.note = {head.id, owner};
        return true;
    }
    /// False: broken.
    template <class OnLeft> bool flush(OnLeft&& on_left) noexcept {
        if (int const number = out.write(socket_, on_left); number != 0)
            fail("sending to it failed: %s", std::strerror(number));
        return !is_broken();
    }
    template <class Place, class Done> void read(Place&& place, Done&& done) noexcept {
        switch (in_.read(socket_, calls, place, done)) {
        case stream_state::ok:
            return;
        case stream_state::closed:
            return fail("it has closed its data connection");
        case stream_state::failed:
            return fail("its data connection failed: %s", std::strerror(errno));
        case stream_state::junk:
            return fail("it sent what is no message of an ensemble's data connection");
        }
    }
    /// Breaks the lane for a message, which is not taken.
    template <class... Values> HERRING_SETUP landing refuse(char const* format, Values... values) noexcept {
        fail(format, values...);
        return {};
    }

    writer out;

  private:
    static constexpr int calls = 8; // for one peer, before others have their turn
    static constexpr std::size_t stash_for_small = 64 * 1024;
    static constexpr std::size_t stash_for_large = 4 * 1024; // copied at the start of a large payload
    static constexpr std::size_t large_payload = 32 * 1024;

    detail::descriptor socket_;
    frame_reader<data_head, data_head_bytes> in_;
    char error_[160] = {};
};

/// Places for rows that the frontend did not ask for, beside those of rows that wait until they are expected.
inline constexpr std::uint32_t tcp_spare_places = 4;

/// The frontend's end, one for each peer. Each request takes a place, until its row was released or it was
/// declined.
///
/// Memory:  (credits + spare + early_places) · row_bytes, in cache lines, + request_bytes + 64 KiB at most.
/// Threads: one at a time.
class tcp_lane_frontend {
  public:
    static constexpr std::uint32_t spare = tcp_spare_places;

    HERRING_SETUP tcp_lane_frontend(detail::descriptor socket, lane_sizes const& sizes)
        : lane_(std::move(socket), sizes.credits, sizes.row_bytes), bounce_(sizes.request_bytes),
          rows_(places(sizes), sizes.row_bytes), sizes_(places(sizes)), is_kept_(places(sizes)),
          free_(0, places(sizes)) {}

    /// Starts to send a request. Its bytes stay valid until `detach(slot)`.
    ///
    /// Errors: false: the lane is broken, the request is larger than agreed, or no place is left for its row.
    bool ask(slot_index slot, std::uint64_t id, std::uint64_t remaining_us,
             std::span<std::byte const> request) noexcept {
        if (request.size() > bounce_.size()) return false;
        if (owed_ + spare + (kept_ < early_places ? early_places - kept_ : 0) >= free_.count()) return false;
        data_head const head{.kind = data_kind::ask,
                             .id = id,
                             .remaining_us = remaining_us,
                             .length = static_cast<std::uint32_t>(request.size())};
        bool const is_first = lane_.out.is_empty();
        if (!lane_.push(head, request, slot)) return false;
        ++owed_;
        return !is_first || lane_.flush([](auto const&) noexcept {});
    }

    /// Gives up the bytes of a request. The rest of a request that has been sent in part is copied; a request
    /// that has not been begun is not sent any more, and a later `poll` reports it as `declined(id,
    /// decline::expired)`.
    void detach(slot_index slot) noexcept {
        lane_.out.withdraw(
            [&](sent_note& note) noexcept { return note.owner == slot && (note.owner = no_owner, true); },
            bounce_.data());
    }

    /// Sends and receives as far as possible now. Calls `sink.row(id, place, bytes)`, where the place belongs
    /// to the caller until `release`, and `sink.declined(id, reason)`. A row without a free place is read,
    /// dropped and declined as `overloaded`.
    ///
    /// Bounds:  8 reads of the socket at most.
    /// Errors:  false: broken, as `error()` says. Answers that came before were reported.
    template <class Sink> bool poll(Sink& sink) noexcept {
        lane_.flush([&](tcp_lane::writer::message const& request) noexcept {
            if (!request.is_withdrawn()) return;
            --owed_;
            sink.declined(request.note.id, decline::expired);
        });
        lane_.read([&](data_head const& head, auto) noexcept { return begin(head, sink); },
                   [&](data_head const& head) noexcept { done(head, sink); });
        return !lane_.is_broken();
    }

    std::span<std::byte const> row(place_index place) const noexcept {
        return rows_[place].first(sizes_[place]);
    }
    void release(place_index place) noexcept {
        if (place < is_kept_.size()) kept_ -= std::exchange(is_kept_[place], false) ? 1u : 0u;
        free_.give(place);
    }
    /// Keeps a row that came early in its place, which asks do not get until `release`.
    void keep(place_index place) noexcept {
        is_kept_[place] = true;
        ++kept_;
    }

    bool wants_write() const noexcept { return !lane_.out.is_empty(); }
    int descriptor() const noexcept { return lane_.descriptor(); }
    void rung() noexcept {}
    bool try_sleep() noexcept { return true; }
    void awake() noexcept {}
    /// Reason why the lane is broken; empty: it is not.
    std::string_view error() const noexcept { return lane_.error(); }

  private:
    static std::size_t places(lane_sizes const& sizes) noexcept {
        return std::size_t{sizes.credits} + spare + early_places;
    }

    template <class Sink> landing begin(data_head const& head, Sink& sink) noexcept {
        if (head.kind == data_kind::declined) return {landing::action::land};
        if (head.kind != data_kind::row) return lane_.refuse("it sent a message that is not due");
        if (head.length > rows_.bytes())
            return lane_.refuse("it sent a row of %u bytes where at most %zu are due", head.length,
                                rows_.bytes());
        owed_ -= owed_ > 0; // also by a row that was not asked for: only the table of requests can tell
        if (!free_.take(landing_)) {
            sink.declined(head.id, decline::overloaded);
            return {landing::action::skip};
        }
        return {landing::action::land, rows_[landing_].data()};
    }
    template <class Sink> void done(data_head const& head, Sink& sink) noexcept {
        if (head.kind == data_kind::declined) {
            owed_ -= owed_ > 0;
            sink.declined(head.id, head.reason);
            return;
        }
        sizes_[landing_] = head.length;
        sink.row(head.id, landing_, row(landing_));
    }

    tcp_lane lane_;
    fixed_array<std::byte> bounce_; // the rest of a request whose bytes were given up while it was sent
    place_memory rows_;
    fixed_array<std::uint32_t> sizes_; // of rows, by place
    fixed_array<bool> is_kept_;        // by place
    free_places free_;
    std::size_t kept_ = 0;
    std::size_t owed_ = 0;    // requests without an answer
    place_index landing_ = 0; // place of the row in progress
};

/// The member's end, one for each frontend. A request takes a place, which has room for its row, and is free
/// again when the answer has left. `spare` more places are for rows that the frontend did not ask for
/// (`take`).
///
/// Memory:  credits · request_bytes + (credits + spare) · row_bytes, in cache lines, + 64 KiB at most.
/// Threads: one at a time. No call blocks: a frontend that does not read delays its own answers only.
class tcp_lane_member {
  public:
    static constexpr std::uint32_t spare = tcp_spare_places;

    HERRING_SETUP tcp_lane_member(detail::descriptor socket, lane_sizes const& sizes)
        : lane_(std::move(socket), sizes.credits + spare, sizes.request_bytes), credits_(sizes.credits),
          requests_(sizes.credits, sizes.request_bytes), rows_(sizes.credits + spare, sizes.row_bytes),
          free_(0, sizes.credits), spare_(sizes.credits, spare) {}

    /// Sends and receives as far as possible now. Calls `sink.asked(id, remaining_us, request, place)`: the
    /// bytes stay valid until the place's answer.
    ///
    /// Bounds:  8 reads of the socket at most.
    /// Errors:  false: broken, as `error()` says. Requests that came before were reported.
    template <class Sink> bool poll(Sink& sink) noexcept {
        flush();
        lane_.read([&](data_head const& head, auto) noexcept { return begin(head); },
                   [&](data_head const& head) noexcept {
                       sink.asked(head.id, head.remaining_us,
                                  std::span<std::byte const>(requests_[landing_]).first(head.length),
                                  landing_);
                   });
        return !lane_.is_broken();
    }

    /// Takes a spare place, for a row that the frontend did not ask for. False if all are being sent.
    bool take(place_index& place) noexcept { return spare_.take(place); }

    /// True if the place still has the bytes of its request: always.
    bool holds(place_index) const noexcept { return true; }

    /// Memory for the encoded row of an answer.
    std::span<std::byte> row(place_index place) noexcept { return rows_[place]; }

    /// Answers with the first `bytes` of the place's row. False if the lane is broken.
    bool send(std::uint64_t id, place_index place, std::size_t bytes) noexcept {
        return answer({.kind = data_kind::row, .id = id, .length = static_cast<std::uint32_t>(bytes)}, place,
                      rows_[place].first(bytes));
    }
    /// Answers without a row. The place is free when the answer has left; a spare place at once, without an
    /// answer.
    bool decline(std::uint64_t id, place_index place, herring::decline reason) noexcept {
        if (spare_.give(place)) return true;
        return answer({.kind = data_kind::declined, .reason = reason, .id = id}, place, {});
    }

    bool wants_write() const noexcept { return !lane_.out.is_empty(); }
    int descriptor() const noexcept { return lane_.descriptor(); }
    bool try_sleep() noexcept { return true; }
    void awake() noexcept {}
    /// Reason why the lane is broken; empty: it is not.
    std::string_view error() const noexcept { return lane_.error(); }

  private:
    landing begin(data_head const& head) noexcept {
        if (head.kind != data_kind::ask) return lane_.refuse("it sent a message that is not due");
        if (head.length > requests_.bytes())
            return lane_.refuse("it sent a request of %u bytes where at most %zu are due", head.length,
                                requests_.bytes());
        if (!free_.take(landing_))
            return lane_.refuse("it sent more than %u requests without an answer", credits_);
        return {landing::action::land, requests_[landing_].data()};
    }
    bool answer(data_head const& head, place_index place, std::span<std::byte const> row) noexcept {
        bool const is_first = lane_.out.is_empty();
        // The queue has room: each message has its own place.
        return lane_.push(head, row, place) && (!is_first || flush());
    }
    bool flush() noexcept {
        return lane_.flush([&](tcp_lane::writer::message const& answer) noexcept {
            if (!free_.give(answer.note.owner)) spare_.give(answer.note.owner);
        });
    }

    tcp_lane lane_;
    std::uint32_t credits_;
    place_memory requests_, rows_;
    free_places free_, spare_;
    place_index landing_ = 0; // place of the request in progress
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_TCP_LANE_HPP

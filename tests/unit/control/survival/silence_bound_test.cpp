// herring: tests of control/survival/silence_bound.hpp: in virtual time, ranks behind slow links live, and those that end are found in time.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/survival/silence_bound.hpp"

#include "doctest/doctest.h"
#include "herring/control/world_times.hpp"
#include "slow_link.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

using namespace herring::detail;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

constexpr int peers = 3;
constexpr std::int64_t begin = 3'000; // ms: of the data
constexpr herring::failure_detector_options usual = resolve({}).detector;

/// Of a control connection.
constexpr socket_report trip(milliseconds round_trip, milliseconds queueing) {
    socket_report found;
    found.round_trip = round_trip;
    found.queueing = queueing;
    return found;
}

/// What the control thread of the host with the slow link does, about rank 0; or what rank 0's does, about that host.
class watch {
  public:
    /// `phase`: of its heartbeats, ms.
    watch(std::int64_t phase, bool far) : far_(far), beat_(phase) {}

    herring::clock::duration bound{}; ///< when it was last looked at

    /// Whether the other rank is given up now.
    bool gives_up(slow_link::host& at) {
        bool const beats = at.now >= beat_;
        if (!beats && at.now < check_) return false;
        herring::time_point const now = time(at.now);
        silence_bound const most(usual);
        for (slow_link::connection& c : at.connections) {
            if (c.rank == 0) heard_ = std::max(heard_, time(far_ ? c.heard_there : c.heard_here));
            if (!beats || !c.data || (far_ && c.rank != 0)) continue;
            socket_report found = c.report(at.now, far_);
            if (far_) found.received += 5'000 * static_cast<std::uint64_t>(std::min(at.now, begin)); // before
            found.incoming = incoming_.at(static_cast<std::size_t>(c.rank)).look(now, found.received);
            queue_.add(found);
            (far_ ? c.there : c.here).adapt();
        }
        if (beats) {
            queue_.end_look(now, most.longest_delay());
            beat_ += usual.heartbeat.count();
            (far_ ? at.control().there : at.control().here).written += 60;
        }
        herring::clock::duration const nothing = now - heard_;
        bound = usual.peer_timeout;
        if (nothing >= bound / 4) {
            socket_report const found = at.control().report(at.now, far_);
            if (found.unanswered != 0) unanswered_ = now;
            bound =
                most.after(most.queueing(found, herring::never, queue_.delay(heard_)), unanswered_ >= heard_);
        }
        check_ = std::min(beat_, at.now + std::chrono::ceil<milliseconds>(bound - nothing).count());
        return nothing >= bound;
    }

  private:
    static herring::time_point time(std::int64_t ms) {
        return herring::time_point(milliseconds(1'000'000 + ms));
    }

    bool far_;
    std::int64_t beat_, check_ = 0;
    herring::time_point heard_ = time(0), unanswered_{};
    std::array<incoming_rate, peers> incoming_{};
    queue_estimate queue_;
};

enum class end { none, stopped, cut };

struct scene {
    double kbit; // a second, each way
    std::size_t out = 64, in = 64,
                other = 0; // KiB: the engine's windows for a peer; what other programs had sent
    bool falls =
        true; // the link has become slow when windows were full; else it was slow when they were small
    end how = end::none;
    std::int64_t strikes = 60'000; // ms
    bool far = false;              // rank 0 watches
    std::size_t first = in;        // KiB: the windows of rank 0 and for it
};

/// A host and three others, whose ranks exchange data from the third second on. When the watched rank is given up, in ms since it ended, or
/// since the data began; −1: it is not, for 20 s of a rank that lives, and 60 s of another.
std::int64_t given_up(scene const& s, std::int64_t phase) {
    slow_link::host host(peers, s.kbit);
    if (s.falls)
        for (slow_link::connection& c : host.connections)
            if (c.data) c.here.window = c.there.window = 100'000;
    watch rank(phase, s.far);
    std::int64_t beat = 250;
    std::int64_t const until = begin + (s.how == end::none ? 20'000 : s.strikes + 60'000);
    while (host.now < until) {
        std::int64_t const since = host.now - begin;
        if (since == 0) host.out.occupy(s.other * 1'024);
        if (since >= 0) host.exchange(s.out * 1'024, s.in * 1'024, s.first * 1'024);
        if (s.how != end::none && since == s.strikes)
            (s.how == end::cut ? host.gone : s.far ? host.halted : host.stopped) = true;
        if (host.now >= beat) { // of those who do not watch
            beat += usual.heartbeat.count();
            if (!host.stopped && !host.halted)
                (s.far ? host.control().here : host.control().there).written += 60;
            for (slow_link::connection& c : host.connections) {
                if (!c.data) continue;
                if (s.far) c.here.adapt();
                if (!s.far || c.rank != 0) c.there.adapt();
            }
        }
        host.step();
        if (rank.gives_up(host)) return host.now - begin - (s.how == end::none ? 0 : s.strikes);
    }
    return -1;
}

} // namespace

TEST_CASE("silence bound: what the network adds is counted, at most three times peer_timeout") {
    constexpr silence_bound bound(usual);
    static_assert(bound.after(0s, false) == 5s);
    static_assert(bound.after(0s, true) == 6s);
    static_assert(bound.after(14'500ms, true) == 20s);
    static_assert(bound.queueing(trip(1ms, 0ms), herring::never, 0s) == 0s);
    static_assert(bound.queueing(trip(250ms, 249ms), herring::never, 0s) == 0s); // too little to count
    static_assert(bound.queueing(trip(2'010ms, 2'000ms), herring::never, 0s) == 2s);
    static_assert(bound.queueing(trip(2'010ms, 2'000ms), herring::never, 3s) == 3s);
    static_assert(bound.queueing(trip(2'010ms, 0ms), 10ms, 0s) == 2s); // it was slow when it was made
    static_assert(bound.queueing(trip(40s, 40s), herring::never, 50s) == 15s);
    constexpr silence_bound patient({.peer_timeout = herring::never});
    static_assert(patient.queueing(trip(2'010ms, 2'000ms), herring::never, 3s) == 3s);
    static_assert(patient.after(3s, true) == herring::never + 4s);
    constexpr silence_bound quick({.peer_timeout = 1s});
    static_assert(quick.after(0s, true) == 1'200ms);
    static_assert(quick.after(quick.queueing(trip(40s, 40s), herring::never, 0s), true) == 4s);
    CHECK(bound.longest_delay() == 15s);
}

TEST_CASE("silence bound: a rank whose signs of life wait in the queues of a slow link lives") {
    // The ranks' data stops while their acknowledgements still wait behind what others had sent: whenever heartbeats look at it.
    for (scene const& s :
         {scene{.kbit = 1'000, .out = 256, .in = 64, .other = 1'000},
          scene{.kbit = 1'000, .out = 64, .in = 64, .other = 1'000},
          scene{.kbit = 1'000, .out = 256, .in = 64, .other = 1'400},
          scene{.kbit = 256, .out = 64, .in = 16, .other = 256}, scene{.kbit = 1'000, .out = 256, .in = 256},
          scene{.kbit = 2'500, .out = 256, .in = 256}, scene{.kbit = 64, .out = 16, .in = 16},
          scene{.kbit = 64, .falls = false},
          // Rank 0 waits for that host, whose queues are full for others and of others.
          scene{.kbit = 1'000, .out = 256, .in = 256, .far = true},
          scene{.kbit = 1'000, .out = 500, .in = 256, .far = true, .first = 64},
          scene{.kbit = 1'000, .out = 500, .in = 256, .far = true, .first = 32},
          scene{.kbit = 2'500, .out = 256, .in = 256, .far = true, .first = 16}})
        for (std::int64_t phase = 0; phase < 500; phase += 100) {
            CAPTURE(s.kbit);
            CAPTURE(s.other);
            CAPTURE(phase);
            CHECK(given_up(s, phase) == -1);
        }
}

TEST_CASE("silence bound: a rank that ends is given up in 6 s from 10 Mbit/s up, and in 20 s at 64 kbit/s") {
    struct kind {
        bool falls, far;
    };
    struct {
        double kbit;
        std::size_t window;
        std::int64_t most_stopped, most_cut; // ms; a cut may be an outage: the next retransmission is awaited
    } const cases[] = {{64, 16, 20'000, 20'000},
                       {256, 64, 20'000, 20'000},
                       {1'000, 256, 20'000, 20'000},
                       {10'000, 256, 6'000, 7'000},
                       {50'000, 256, 6'000, 7'000}};
    for (auto const& c : cases)
        for (kind const& k : {kind{false, false}, {true, false}, {false, true}, {true, true}})
            for (end const how : {end::stopped, end::cut})
                for (std::int64_t const phase : {0, 170, 340}) {
                    // By then what was in flight when the link became slow has drained, and what is in flight is bounded.
                    scene const s{.kbit = c.kbit,
                                  .out = c.window,
                                  .in = c.window,
                                  .falls = k.falls,
                                  .how = how,
                                  .strikes = 20'000 + phase / 2,
                                  .far = k.far};
                    CAPTURE(c.kbit);
                    CAPTURE(k.falls);
                    CAPTURE(k.far);
                    CAPTURE(phase);
                    std::int64_t const found = given_up(s, phase);
                    CHECK(found >= 4'000);
                    CHECK(found <= (how == end::stopped ? c.most_stopped : c.most_cut));
                }
}

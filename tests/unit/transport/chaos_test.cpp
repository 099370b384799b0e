// herring: tests of transport/chaos.hpp; tests/conformance has the suite over it, and reductions.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/chaos.hpp"

#include "herring/herring.hpp"
#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using namespace herring;
using transport::chaos;
using transport::chaos_seed;
using transport::chaos_tuning;
using transport::inproc;

namespace {

struct with_loopback : inproc {
    using inproc::inproc;
    static constexpr char const* name = "with_loopback";
    static constexpr transport_facts facts{.abandons = true,
                                           .envelope_bytes = inproc::facts.envelope_bytes,
                                           .tuning = inproc::facts.tuning,
                                           .same_host_tuning = {.chunk_bytes = 4096, .window_bytes = 8192}};
    using needs = herring::needs<>;
};

/// The ends of two ranks, driven by one thread, so that every run is the same.
template <class Transport> class pair {
  public:
    explicit pair(std::uint64_t seed) : worlds_(thread_worlds(2)) {
        std::thread other([&] { make(1, seed); });
        make(0, seed);
        other.join();
        if (!ends_[0] || !ends_[1]) throw std::string("no pair");
    }
    Transport& operator[](int rank) { return *ends_[static_cast<std::size_t>(rank)]; }

  private:
    void make(int rank, std::uint64_t seed) {
        std::array<int, 1> const peers{1 - rank};
        transport_needs const needs{
            .peers = peers, .receives_per_peer = 300, .sends_per_peer = 300, .largest_message = 64};
        ends_[static_cast<std::size_t>(rank)] =
            std::make_unique<Transport>(worlds_[static_cast<std::size_t>(rank)], needs, chaos_seed{seed});
    }
    std::vector<world> worlds_;
    std::array<std::unique_ptr<Transport>, 2> ends_;
};

struct result {
    std::array<std::uint64_t, 2> traces{};
    std::vector<std::uint64_t> order{}; // of the receives' tokens
    int sent = 0;
    int received = 0;
    int wrong = 0;
    std::uint64_t polls = 0;
    std::vector<completion> lost{};
};

/// `count` messages from rank 0 to rank 1; ends when all are there, or after 20'000 polls.
template <class Transport> result stream(pair<Transport>& ends, std::uint32_t count) {
    result seen;
    std::vector<std::uint32_t> out(count), in(count);
    for (std::uint32_t i = 0; i < count; ++i) out[i] = i * 7919 + 1;
    std::uint32_t posted = 0, expected = 0;
    while ((seen.sent < static_cast<int>(count) || seen.received < static_cast<int>(count)) &&
           seen.polls < 20'000) {
        if (expected < count &&
            ends[1].post_receive(peer_id{0}, expected, std::as_writable_bytes(std::span(&in[expected], 1)),
                                 expected))
            ++expected;
        if (posted < count &&
            ends[0].post_send(peer_id{0}, posted, std::as_bytes(std::span(&out[posted], 1)), posted))
            ++posted;
        ++seen.polls;
        ends[0].poll([&](completion const& done) {
            if (done.what == completion::lost) seen.lost.push_back(done);
            seen.sent += done.what == completion::sent;
        });
        ends[1].poll([&](completion const& done) {
            if (done.what == completion::lost) seen.lost.push_back(done);
            if (done.what != completion::received) return;
            ++seen.received;
            seen.order.push_back(done.token);
            seen.wrong += in[done.token] != out[done.token] || done.bytes != 4 || done.tag != done.token;
        });
    }
    seen.traces = {ends[0].trace(), ends[1].trace()};
    return seen;
}

} // namespace

TEST_CASE("chaos: facts are those of the transport that it decorates, but for order") {
    using plain = chaos<inproc>;
    CHECK(std::string(plain::name) == "chaos<inproc>");
    CHECK(plain::facts.max_message == inproc::facts.max_message);
    CHECK_FALSE(plain::facts.keeps_order);
    CHECK(plain::facts.reports_lost);
    CHECK(plain::facts.tuning == inproc::facts.tuning);
    CHECK(plain::facts.same_host_tuning == inproc::facts.tuning);
    using looped = chaos<with_loopback>;
    CHECK(looped::facts.same_host_tuning.chunk_bytes == 4096);
    CHECK(std::string(looped::name) == "chaos<with_loopback>");
    CHECK(
        std::is_same_v<looped::needs, herring::needs<detail::chaos_numbers<with_loopback, chaos_tuning{}>>>);
}

TEST_CASE("chaos: messages come late and in another order, and all of them come") {
    pair<chaos<inproc>> ends(5);
    result const seen = stream(ends, 250);
    CHECK(seen.received == 250);
    CHECK(seen.sent == 250);
    CHECK(seen.wrong == 0);
    CHECK(seen.lost.empty());
    CHECK_FALSE(std::is_sorted(seen.order.begin(), seen.order.end()));
    CHECK(ends[0].counts().refused > 0);
    CHECK(ends[0].counts().delayed > 0);
    CHECK(ends[0].counts().held_back > 0);
    CHECK(ends[1].counts().refused > 0);
    CHECK(ends[1].counts().held_back > 0);
    CHECK(ends[1].counts().flipped == 0);
}

TEST_CASE("chaos: the same seed gives the same schedule, another one another") {
    std::vector<std::uint64_t> traces;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        pair<chaos<inproc>> first(seed), second(seed);
        result const one = stream(first, 100), two = stream(second, 100);
        CHECK(one.traces == two.traces);
        CHECK(one.order == two.order);
        CHECK(one.polls == two.polls);
        CHECK(one.traces[0] != one.traces[1]); // every rank has its own
        traces.push_back(one.traces[0]);
    }
    std::sort(traces.begin(), traces.end());
    CHECK(std::adjacent_find(traces.begin(), traces.end()) == traces.end());
}

TEST_CASE("chaos: without reorder things are late, and in order") {
    pair<chaos<inproc, chaos_tuning{.reorder = false}>> ends(9);
    result const seen = stream(ends, 250);
    CHECK(seen.received == 250);
    CHECK(std::is_sorted(seen.order.begin(), seen.order.end()));
    CHECK(ends[0].counts().delayed > 0);
}

TEST_CASE("chaos: with all shares at zero it changes nothing") {
    pair<chaos<inproc,
               chaos_tuning{
                   .not_now_per_1000 = 0, .delay_per_1000 = 0, .hold_back_per_1000 = 0, .reorder = false}>>
        ends(9);
    result const seen = stream(ends, 250);
    CHECK(seen.polls == 250);
    CHECK(seen.received == 250);
    CHECK(std::is_sorted(seen.order.begin(), seen.order.end()));
}

TEST_CASE("chaos: a turned bit is in the memory of the receive when it is reported") {
    pair<chaos<inproc, chaos_tuning{.flip_per_1000 = 500}>> ends(3);
    result const seen = stream(ends, 200);
    CHECK(seen.received == 200);
    CHECK(seen.wrong > 50);
    CHECK(seen.wrong == static_cast<int>(ends[1].counts().flipped));
}

TEST_CASE("chaos: a cut link is lost at either end, once, with a reason that has the seed") {
    pair<chaos<inproc, chaos_tuning{.cut = {0, 1}, .after = 40}>> ends(77);
    result const seen = stream(ends, 100);
    CHECK(seen.received < 100);
    REQUIRE(seen.lost.size() == 1); // rank 1 sends nothing: its end is cut after as many sends of its own
    CHECK(seen.lost[0].peer == peer_id{0});
    CHECK(seen.lost[0].why == errc::peer_lost);
    std::string const why = ends[0].describe(peer_id{0});
    CHECK(why.find("cut the link") != std::string::npos);
    CHECK(why.find("seed 77") != std::string::npos);
    int const word = 0;
    CHECK_FALSE(ends[0].post_send(peer_id{0}, 1, std::as_bytes(std::span(&word, 1)), 1));
}

TEST_CASE("chaos: a stopped rank is silent, and nobody is told") {
    pair<chaos<inproc, chaos_tuning{.stop = 0, .after = 40}>> ends(5);
    result const seen = stream(ends, 100);
    CHECK(seen.received < 100);
    CHECK(seen.lost.empty());
    CHECK(seen.polls == 20'000);
    time_point const until = clock::now() + std::chrono::milliseconds(20);
    while (clock::now() < until) ends[0].wait(until); // still ends
}

TEST_CASE("chaos: who is drawn is the same for all, and differs between seeds") {
    bool stopped_0 = false, stopped_1 = false;
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
        pair<chaos<inproc, chaos_tuning{.stop = chaos_tuning::drawn, .after = 0}>> ends(seed);
        int word = 0;
        std::array<bool, 2> silent{};
        for (int rank = 0; rank < 2; ++rank) {
            ends[rank].poll([](completion const&) {});
            while (!ends[rank].post_receive(peer_id{0}, 1, std::as_writable_bytes(std::span(&word, 1)), 1))
                ends[rank].poll([](completion const&) {});
            std::uint64_t const before = ends[rank].counts().refused;
            for (int i = 0; i < 200; ++i) (void)ends[rank].post_receive(peer_id{0}, 2, {}, 1);
            silent[static_cast<std::size_t>(rank)] = ends[rank].counts().refused == before;
        }
        CHECK(silent[0] != silent[1]);
        stopped_0 = stopped_0 || silent[0];
        stopped_1 = stopped_1 || silent[1];
    }
    CHECK(stopped_0);
    CHECK(stopped_1);
}

TEST_CASE("chaos: abandon withdraws what is late") {
    pair<chaos<inproc, chaos_tuning{.not_now_per_1000 = 0, .delay_per_1000 = 1000, .longest = 1}>> ends(5);
    int in = 0;
    {
        auto const out = std::make_unique<int>(42); // freed: a sanitizer sees who reads it later
        CHECK(ends[0].post_send(peer_id{0}, 1, std::as_bytes(std::span(out.get(), 1)), 1));
        CHECK(ends[1].post_receive(peer_id{0}, 1, std::as_writable_bytes(std::span(&in, 1)), 1));
        ends[0].abandon();
    }
    for (int i = 0; i < 10; ++i)
        for (int rank = 0; rank < 2; ++rank)
            ends[rank].poll([](completion const&) { FAIL("a completion of what was withdrawn"); });
    CHECK(in == 0);
}

TEST_CASE("chaos: the seed comes from the argument, the tuning, the variable, or rank 0") {
    auto const seeds_of = [](auto which, auto... arguments) {
        using link = typename decltype(which)::type;
        std::array<std::uint64_t, 2> seen{};
        launch_threads(2, [&](world& ranks) {
            std::array<int, 1> const peers{1 - ranks.rank()};
            link end(ranks,
                     {.peers = peers, .receives_per_peer = 1, .sends_per_peer = 1, .largest_message = 1},
                     arguments...);
            seen[static_cast<std::size_t>(ranks.rank())] = end.seed();
            ranks.barrier();
        });
        CHECK(seen[0] == seen[1]);
        return seen[0];
    };
    using drawn = std::type_identity<chaos<inproc>>;
    using tuned = std::type_identity<chaos<inproc, chaos_tuning{.seed = 11}>>;
    char const* const outside = std::getenv("HERRING_CHAOS_SEED");
    std::string const before = outside == nullptr ? "" : outside;
    ::unsetenv("HERRING_CHAOS_SEED");
    CHECK(seeds_of(drawn(), chaos_seed{7}) == 7);
    CHECK(seeds_of(tuned()) == 11);
    CHECK(seeds_of(tuned(), chaos_seed{7}) == 7);
    CHECK(seeds_of(drawn()) != seeds_of(drawn())); // once in 10^9 they are the same
    ::setenv("HERRING_CHAOS_SEED", "1234567", 1);
    CHECK(seeds_of(drawn()) == 1234567);
    CHECK(seeds_of(tuned()) == 11);
    ::setenv("HERRING_CHAOS_SEED", "12x", 1);
    try {
        seeds_of(drawn());
        FAIL("HERRING_CHAOS_SEED=12x is taken");
    } catch (error const& refused) {
        CHECK(refused.code() == errc::bad_argument);
        CHECK(std::strstr(refused.what(), "HERRING_CHAOS_SEED is '12x'") != nullptr);
    }
    outside == nullptr ? ::unsetenv("HERRING_CHAOS_SEED") : ::setenv("HERRING_CHAOS_SEED", before.c_str(), 1);
}

TEST_CASE("chaos: a reducer hands over the seed") {
    launch_threads(2, [](world& ranks) {
        reducer<std::int64_t, chaos<inproc>, update::sum> reduce(ranks, layout{{"t", 1000}}, chaos_seed{21});
        if (reduce.transport().seed() != 21) throw std::string("another seed");
        for (std::int64_t& x : reduce.tensor(0)) x = ranks.rank() + 1;
        reduce.ready(0);
        reduce.wait();
        for (std::int64_t const x : reduce.tensor(0))
            if (x != 3) throw std::string("wrong sum");
    });
}

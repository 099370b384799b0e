// herring: tests of ensemble/member_core.hpp: a member with frontends' ends in this thread and a dialler that does as it is told.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/member_core.hpp"

#include "doctest/doctest.h"

#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/member_lane.hpp"
#include "herring/ensemble/tcp_lane.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/waiting/adaptive.hpp"
#include "herring/waiting/block.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

namespace ensemble_member_core_test {

using namespace std::chrono_literals;
using namespace herring::detail::ensembles;
using herring::decline;
using herring::errc;
using herring::failure;
using herring::frontend_status;
using herring::job_end;
using herring::detail::descriptor;

/// A row is its floats, with one in front that says how many they are.
struct plain_rows {
    static std::size_t row_bytes(std::size_t elements) noexcept { return 4 * elements + 4; }
    static inline int encoded = 0; // how often
    static row_check encode(std::span<float const> row, std::span<std::byte> out) noexcept {
        ++encoded;
        for (float const each : row)
            if (std::isnan(each)) return row_check::not_a_number;
        float const front = static_cast<float>(row.size());
        std::memcpy(out.data(), &front, 4);
        std::memcpy(out.data() + 4, row.data(), row.size_bytes());
        return row_check::good;
    }
};

/// Does what a test says.
template <class Sink> struct told_dialler {
    static inline told_dialler* last = nullptr;

    Sink& sink;
    std::vector<std::pair<std::size_t, std::string>> dropped;
    int leaves = 0;
    bool lets_go = false, is_stopped = false;

    told_dialler(dialler_options const&, shape const&, Sink& to) : sink(to) { last = this; }
    void drop(std::size_t frontend, std::string why) { dropped.emplace_back(frontend, std::move(why)); }
    bool leave(std::chrono::milliseconds) {
        ++leaves;
        return lets_go;
    }
    void stop() { is_stopped = true; }
};

/// Sleeps always, and counts how often it was asked.
struct counting_block {
    using axis = herring::axes::waiting;
    static inline int rounds = 0;
    herring::wait_action next(std::uint32_t, std::int64_t, bool) const noexcept {
        ++rounds;
        return herring::wait_action::sleep;
    }
};

constexpr std::size_t elements = 100;
constexpr std::uint64_t long_us = 600'000'000; // 10 minutes

template <class Waiting = herring::waiting::adaptive>
using core = member_core<float, plain_rows, Waiting, member_lane, told_dialler>;
static_assert(dialler_sink<core<>::inbox>);

/// A frontend's end, and what it got.
struct front_end {
    struct arrived {
        std::uint64_t id;
        float number, first;
    };
    struct refused {
        std::uint64_t id;
        decline why;
    };
    std::optional<tcp_lane_frontend> lane;
    std::vector<arrived> rows;
    std::vector<refused> declines;
    std::vector<std::byte> request = std::vector<std::byte>(64);

    void row(std::uint64_t id, place_index place, std::span<std::byte const> bytes) {
        REQUIRE(bytes.size() == plain_rows::row_bytes(elements));
        arrived a{id, 0, 0};
        std::memcpy(&a.number, bytes.data(), 4);
        std::memcpy(&a.first, bytes.data() + 4, 4);
        rows.push_back(a);
        lane->release(place);
    }
    void declined(std::uint64_t id, decline why) { declines.push_back({id, why}); }

    void ask(std::uint64_t id, std::uint64_t remaining_us = long_us) {
        std::memcpy(request.data(), &id, sizeof id);
        REQUIRE(lane->ask(0, id, remaining_us, request));
        lane->detach(0);
    }
    void poll() { REQUIRE(lane->poll(*this)); }
};

template <class Core = core<>> struct world_of_one {
    static constexpr std::uint32_t credits = 4;

    std::vector<front_end> fronts;
    Core member;

    explicit world_of_one(std::size_t frontends = 1, std::size_t concurrency = 1)
        : fronts(frontends), member(elements, concurrency, {}, options(frontends)) {
        for (std::size_t i = 0; i < frontends; ++i) connect(i);
    }
    static dialler_options options(std::size_t frontends) {
        dialler_options o;
        for (std::size_t i = 0; i < frontends; ++i) o.frontends.push_back("host:" + std::to_string(7000 + i));
        return o;
    }
    auto& dialler() { return *told_dialler<typename Core::inbox>::last; }
    void connect(std::size_t i) {
        int both[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) == 0);
        lane_ends ends;
        ends.socket = both[0];
        fronts[i].lane.emplace(descriptor(both[1]), lane_sizes{credits, 64, plain_rows::row_bytes(elements)});
        admission facts;
        facts.credits = credits;
        facts.request_bytes = 64;
        facts.row_bytes = plain_rows::row_bytes(elements);
        dialler().sink.connected(i, facts, std::move(ends));
    }
    /// A job that is there, for the test has asked for it.
    auto job() {
        auto found = member.next(60s);
        REQUIRE(found);
        return found;
    }
};

std::uint64_t number_in(std::span<std::byte const> request) {
    REQUIRE(request.size() == 64);
    std::uint64_t id = 0;
    std::memcpy(&id, request.data(), sizeof id);
    return id;
}

TEST_CASE("ensemble member: a request is a job, and its row comes back") {
    world_of_one with;
    auto& front = with.fronts[0];
    for (std::uint64_t id = 1; id <= 20; ++id) {
        front.ask(id);
        auto job = with.job();
        CHECK(job.id() == id);
        CHECK(job.frontend() == 0);
        CHECK(number_in(job.input()) == id);
        CHECK(job.remaining() > 60s);
        CHECK_FALSE(job.expired());
        REQUIRE(job.row().size() == elements);
        for (float& each : job.row()) each = static_cast<float>(id) / 2;
        CHECK(job.send() == job_end::sent);
        CHECK_FALSE(job);
        front.poll();
        REQUIRE(front.rows.size() == id);
        CHECK(front.rows.back().id == id);
        CHECK(front.rows.back().number == elements);
        CHECK(front.rows.back().first == static_cast<float>(id) / 2);
    }
    CHECK(with.member.counters().asked == 20);
    CHECK(with.member.counters().taken == 20);
    CHECK(with.member.counters().sent == 20);
    CHECK(with.member.counters().connections == 1);
}

TEST_CASE("ensemble member: frontends are served in turn, each its oldest request first") {
    world_of_one with(3);
    for (std::uint64_t id = 1; id <= 4; ++id) with.fronts[0].ask(id);
    for (std::uint64_t id = 1; id <= 2; ++id) with.fronts[2].ask(id);
    std::vector<std::pair<std::size_t, std::uint64_t>> order;
    for (int i = 0; i < 6; ++i) {
        auto job = with.job();
        order.emplace_back(job.frontend(), job.id());
        job.send();
    }
    CHECK(order ==
          std::vector<std::pair<std::size_t, std::uint64_t>>{{0, 1}, {2, 1}, {0, 2}, {2, 2}, {0, 3}, {0, 4}});
    with.fronts[1].ask(9);
    CHECK(with.job().frontend() == 1);
}

TEST_CASE("ensemble member: several jobs at once, answered in any order, and no more than agreed") {
    world_of_one with(1, 3);
    auto& front = with.fronts[0];
    for (std::uint64_t id = 1; id <= 4; ++id) front.ask(id);
    auto a = with.job(), b = with.job(), c = with.job();
    CHECK(a.row().data() != b.row().data());
    for (auto* each : {&a, &b, &c}) each->row()[0] = static_cast<float>(each->id());
    CHECK_FALSE(with.member.try_next());
    try {
        (void)with.member.next(0s);
        FAIL("a fourth job");
    } catch (herring::error const& e) {
        CHECK(e.code() == errc::bad_state);
        CHECK(std::string_view(e.what()).find("holds 3 jobs") != std::string_view::npos);
    }
    CHECK(b.send() == job_end::sent);
    auto d = with.job();
    CHECK(d.id() == 4);
    d.row()[0] = 4;
    for (auto* each : {&d, &c, &a}) CHECK(each->send() == job_end::sent);
    front.poll();
    REQUIRE(front.rows.size() == 4);
    std::array<std::uint64_t, 4> const order{2, 4, 3, 1};
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(front.rows[i].id == order[i]);
        CHECK(front.rows[i].first == static_cast<float>(order[i]));
    }
}

TEST_CASE("ensemble member: a job that is destroyed declines; so does one that says why") {
    world_of_one with;
    auto& front = with.fronts[0];
    front.ask(1);
    { auto const job = with.job(); }
    front.ask(2);
    {
        auto job = with.job();
        CHECK(job.decline(decline::bad_input) == job_end::declined);
        CHECK_THROWS_WITH_AS(job.send(), doctest::Contains("it is empty, answered"), herring::error);
        CHECK_THROWS_AS((void)job.row(), herring::error);
    }
    front.poll();
    REQUIRE(front.declines.size() == 2);
    CHECK(front.declines[0].why == decline::unspecified);
    CHECK(front.declines[1].why == decline::bad_input);
    CHECK(with.member.counters().declined == 2);
}

TEST_CASE("ensemble member: a row past its deadline is dropped, and the frontend told") {
    world_of_one with;
    auto& front = with.fronts[0];
    std::uint64_t id = 1, us = 1000;
    core<>::job job;
    while (!job) { // this machine may be slow: it expires before it is taken
        front.ask(id++, us);
        us *= 4;
        job = with.member.next(1ms);
        front.poll();
    }
    while (!job.expired()) {
    }
    std::size_t const before = front.declines.size();
    CHECK(job.remaining() == 0ns);
    CHECK(job.send() == job_end::late);
    front.poll();
    CHECK(front.rows.empty());
    REQUIRE(front.declines.size() == before + 1);
    CHECK(front.declines.back().why == decline::expired);
    CHECK(with.member.counters().late == 1);
}

TEST_CASE("ensemble member: what expired while it waited is declined, not handed out") {
    world_of_one with;
    auto& front = with.fronts[0];
    front.ask(1, 0);
    front.ask(2, 0);
    front.ask(3);
    CHECK(with.job().id() == 3);
    front.poll();
    REQUIRE(front.declines.size() == 3);
    CHECK(front.declines[0].why == decline::expired);
    CHECK(front.declines[1].why == decline::expired);
    CHECK(with.member.counters().expired == 2);
    CHECK(with.member.counters().taken == 1);
}

TEST_CASE("ensemble member: the longest time until a deadline does not wrap") {
    world_of_one with;
    with.fronts[0].ask(1, ~std::uint64_t{0});
    CHECK(with.job().remaining() > 24h * 365 * 100);
}

TEST_CASE("ensemble member: a row with NaN is not sent") {
    world_of_one with;
    with.fronts[0].ask(1);
    auto job = with.job();
    job.row()[elements - 1] = std::numeric_limits<float>::quiet_NaN();
    CHECK(job.send() == job_end::bad_row);
    with.fronts[0].poll();
    CHECK(with.fronts[0].rows.empty());
    REQUIRE(with.fronts[0].declines.size() == 1);
    CHECK(with.fronts[0].declines[0].why == decline::bad_row);
    CHECK(with.member.counters().bad_rows == 1);
}

TEST_CASE("ensemble member: a row that is encoded before it is sent is encoded once") {
    world_of_one with;
    auto& front = with.fronts[0];
    for (std::uint64_t id = 1; id <= 3; ++id) { // a slot's next job begins anew
        front.ask(id);
        auto job = with.job();
        int const before = plain_rows::encoded;
        job.row()[0] = 1;
        if (id != 2) CHECK(job.encode());
        CHECK(plain_rows::encoded == before + (id != 2));
        job.row()[0] = 2; // is not sent
        if (id == 3) CHECK(job.encode());
        front.poll();
        CHECK(front.rows.size() == id - 1);
        int const encoded = plain_rows::encoded;
        CHECK(job.send() == job_end::sent);
        CHECK(plain_rows::encoded == encoded + (id == 2));
        front.poll();
        REQUIRE(front.rows.size() == id);
        CHECK(front.rows.back().first == (id == 1 ? 1 : 2));
    }
    CHECK(with.member.counters().sent == 3);
}

TEST_CASE("ensemble member: a row that cannot be encoded is dropped by send, unless it was corrected") {
    world_of_one with(1, 2);
    auto& front = with.fronts[0];
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    front.ask(1);
    front.ask(2);
    auto bad = with.job(), corrected = with.job();
    for (auto* each : {&bad, &corrected}) {
        for (float& x : each->row()) x = 0;
        each->row()[1] = nan;
        CHECK_FALSE(each->encode());
        CHECK(*each);
        each->row()[1] = 0;
    }
    CHECK(with.member.counters().bad_rows == 0);
    CHECK(bad.send() == job_end::bad_row); // its last encoding is what counts
    CHECK(corrected.encode());
    corrected.row()[1] = nan;
    CHECK(corrected.send() == job_end::sent);
    front.poll();
    CHECK(front.rows.size() == 1);
    CHECK(front.declines.size() == 1);
    CHECK(with.member.counters().bad_rows == 1);
}

TEST_CASE("ensemble member: deadline and frontend are looked at when a row is sent, also if it is encoded") {
    world_of_one with(1, 2);
    auto& front = with.fronts[0];
    front.ask(1);
    std::uint64_t id = 2, us = 1000;
    core<>::job kept = with.job(), job;
    while (!job) { // this machine may be slow: it expires before it is taken
        front.ask(id++, us);
        us *= 4;
        job = with.member.next(1ms);
        front.poll();
    }
    for (float& x : job.row()) x = 0;
    for (float& x : kept.row()) x = 0;
    CHECK(job.encode());
    while (!job.expired()) {
    }
    CHECK(job.encode());
    CHECK(job.send() == job_end::late);
    CHECK(kept.encode());
    with.dialler().sink.disconnected(0, "gone");
    CHECK_FALSE(with.member.try_next());
    CHECK(kept.encode());
    CHECK(kept.send() == job_end::disconnected);
    CHECK(with.member.counters().late == 1);
    CHECK(with.member.counters().sent == 0);
}

TEST_CASE("ensemble member: a job outlives its connection, and does not reach the next one") {
    world_of_one with(1, 2);
    auto& front = with.fronts[0];
    front.ask(1);
    front.ask(2);
    front.ask(3);
    auto job = with.job(), other = with.job();
    SUBCASE("the frontend is lost, then there again") {
        with.dialler().sink.disconnected(0, "gone");
        CHECK(with.member.status()[0].now == frontend_status::state::connecting);
        CHECK(with.member.status()[0].why == "gone");
        CHECK_FALSE(with.member.try_next());
    }
    SUBCASE("a new connection takes over") {}
    with.connect(0);
    CHECK(with.member.status()[0].now == frontend_status::state::connected);
    CHECK(with.member.status()[0].times == 2);
    CHECK_FALSE(with.member.try_next());
    CHECK(number_in(job.input()) == 1);
    CHECK(number_in(other.input()) == 2);
    CHECK(other.send() == job_end::disconnected);
    with.fronts[0].ask(4);
    CHECK(with.job().id() == 4); // declines
    CHECK(number_in(job.input()) == 1);
    CHECK(job.decline() == job_end::disconnected);
    front.poll();
    CHECK(front.rows.empty());
    CHECK(front.declines.size() == 1);
    CHECK(with.member.counters().disconnected == 3); // one of them waited
    CHECK(with.member.counters().connections == 2);
}

TEST_CASE("ensemble member: a frontend that breaks its lane is dropped by its reason, others are served") {
    world_of_one with(2);
    with.fronts[0].lane.reset(); // closes it
    CHECK_FALSE(with.member.try_next());
    CHECK_FALSE(with.member.try_next());
    REQUIRE(with.dialler().dropped.size() == 1);
    CHECK(with.dialler().dropped[0].first == 0);
    CHECK(with.dialler().dropped[0].second == "it has closed its data connection");
    CHECK(with.member.counters().broken == 1);
    with.fronts[1].ask(1);
    CHECK(with.job().frontend() == 1);
    with.connect(0);
    with.fronts[0].ask(2);
    CHECK(with.job().frontend() == 0);
}

TEST_CASE("ensemble member: without a frontend that takes it, next returns") {
    world_of_one with(2);
    auto const why = failure::make(errc::refused, -1, -1, "member", "no such name");
    with.dialler().sink.refused(1, why);
    with.fronts[0].ask(1);
    CHECK(with.job().id() == 1);
    with.dialler().sink.refused(0, why);
    CHECK_FALSE(with.member.next()); // not after a hundred years
    auto const status = with.member.status();
    REQUIRE(status.size() == 2);
    for (auto const& each : status) {
        CHECK(each.now == frontend_status::state::refused);
        CHECK(each.why == "no such name");
    }
    CHECK(status[1].address == "host:7001");
}

TEST_CASE("ensemble member: nothing comes: it sleeps until the timeout") {
    world_of_one<core<counting_block>> with(2);
    (void)with.member.try_next();
    counting_block::rounds = 0;
    auto const start = herring::clock::now();
    CHECK_FALSE(with.member.next(30ms));
    CHECK(herring::clock::now() - start >= 30ms);
    CHECK(counting_block::rounds >= 1);
    CHECK(counting_block::rounds <= 5);
    CHECK_FALSE(with.member.next(0ms));
}

TEST_CASE("ensemble member: stop ends next, from another thread and beforehand") {
    {
        world_of_one<core<herring::waiting::block>> with;
        std::thread other([&] { with.member.stop(); });
        CHECK_FALSE(with.member.next());
        other.join();
        with.fronts[0].ask(1);
        CHECK_FALSE(with.member.next());
        CHECK_FALSE(with.member.try_next());
    }
    world_of_one<core<herring::waiting::block>> with;
    with.member.stop();
    CHECK_FALSE(with.member.next());
}

TEST_CASE("ensemble member: a sleeping member wakes for a request and for a new frontend") {
    world_of_one<core<herring::waiting::block>> with;
    std::thread other([&] {
        for (std::uint64_t id = 1; id <= 50; ++id) {
            with.fronts[0].ask(id);
            while (with.fronts[0].rows.size() < id) {
                pollfd one{with.fronts[0].lane->descriptor(), POLLIN, 0};
                ::poll(&one, 1, 100);
                with.fronts[0].poll();
            }
            if (id == 25) with.connect(0);
        }
    });
    for (std::uint64_t id = 1; id <= 50; ++id) {
        auto job = with.job();
        CHECK(job.id() == id);
        CHECK(job.send() == job_end::sent);
    }
    other.join();
}

TEST_CASE("ensemble member: who leaves declines what waits and what comes, and answers what it has") {
    world_of_one with(1, 2);
    auto& front = with.fronts[0];
    front.ask(1);
    front.ask(2);
    auto job = with.job();
    CHECK_FALSE(with.member.leave(0ms));
    front.ask(3);
    CHECK_FALSE(with.member.leave(1ms));
    CHECK_FALSE(with.member.next());
    front.poll();
    REQUIRE(front.declines.size() == 2);
    CHECK(front.declines[0].id == 2);
    CHECK(front.declines[1].id == 3);
    for (auto const& each : front.declines) CHECK(each.why == decline::stopping);
    CHECK(job.send() == job_end::sent);
    front.poll();
    CHECK(front.rows.size() == 1);
    with.dialler().lets_go = true;
    CHECK(with.member.leave(10min));
    CHECK(with.member.counters().turned_away == 2);
}

TEST_CASE("ensemble member: another thread leaves while this one waits, works and answers") {
    for (std::uint64_t held = 0; held < 20; ++held) {
        world_of_one<core<herring::waiting::block>> with;
        auto& front = with.fronts[0];
        with.dialler().lets_go = true;
        for (std::uint64_t id = 1; id <= 1 + held % 3; ++id) front.ask(id);
        std::atomic<std::uint64_t> answered{0};
        std::thread other([&] {
            while (answered.load() < held % 2) std::this_thread::yield();
            CHECK(with.member.leave(10min));
            CHECK(with.member.leave(10min)); // twice is as once
        });
        while (auto job = with.member.next()) { // wakes up for it
            for (float& x : job.row()) x = 1;
            CHECK(job.send() == job_end::sent);
            ++answered;
        }
        other.join();
        CHECK(with.member.is_over());
        auto const counted = with.member.counters();
        CHECK(counted.asked == counted.taken + counted.turned_away);
        CHECK(counted.sent == answered.load());
    }
}

TEST_CASE("ensemble member: a member that ends declines what waits") {
    std::vector<front_end> fronts;
    {
        world_of_one with;
        with.fronts[0].ask(1);
        with.fronts[0].ask(2);
        (void)with.job();
        fronts = std::move(with.fronts);
    }
    auto& front = fronts[0];
    while (front.lane->poll(front)) {
    }
    REQUIRE(front.declines.size() == 2);
    CHECK(front.declines[1].why == decline::stopping);
    CHECK(front.lane->error() == "it has closed its data connection");
}

TEST_CASE("ensemble member: a row that nobody asked for goes to each frontend") {
    world_of_one with(2);
    int filled = 0;
    auto const fill = [&](std::span<float> row) {
        ++filled;
        for (float& each : row) each = 3.5f;
    };
    CHECK(with.member.contribute(77, fill) == 2);
    CHECK(filled == 1);
    for (auto& front : with.fronts) {
        front.poll();
        REQUIRE(front.rows.size() == 1);
        CHECK(front.rows[0].id == 77);
        CHECK(front.rows[0].first == 3.5f);
    }
    CHECK(with.member.contribute(78, [](std::span<float> row) { row[0] = std::nanf(""); }) == 0);
    CHECK(with.member.counters().bad_rows == 1);
    for (std::uint64_t id = 79; id < 99; ++id) // no place was lost
        CHECK(with.member.contribute(id, fill) == 2);
    with.dialler().sink.disconnected(0, "gone");
    CHECK(with.member.contribute(99, fill) == 1);
    with.dialler().sink.disconnected(1, "gone");
    filled = 0;
    CHECK(with.member.contribute(100, fill) == 0);
    CHECK(filled == 0);
}

TEST_CASE("ensemble member: for an event loop: a descriptor that is readable when there is something") {
    world_of_one with(1, 1);
    auto const readable = [&](int most_ms) {
        pollfd one{with.member.descriptor(), POLLIN, 0};
        return ::poll(&one, 1, most_ms) == 1;
    };
    CHECK_FALSE(with.member.arm()); // a frontend has connected
    CHECK_FALSE(with.member.try_next());
    REQUIRE(with.member.arm());
    CHECK_FALSE(readable(0));
    with.fronts[0].ask(1);
    with.fronts[0].ask(2);
    CHECK(readable(60000));
    auto job = with.member.try_next();
    REQUIRE(job);
    CHECK(with.member.arm()); // the second waits, and cannot be taken before the first is answered
    job.send();
    CHECK_FALSE(with.member.arm());
    job = with.member.try_next();
    REQUIRE(job);
    CHECK(job.id() == 2);
    job.send();
    with.member.stop();
    CHECK(readable(60000));
    CHECK_FALSE(with.member.arm());
}

TEST_CASE("ensemble member: a lane that cannot be made is dropped, with its reason") {
    world_of_one with(1);
    CHECK_FALSE(with.member.try_next());
    lane_ends ends;
    ends.socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    admission facts;
    facts.credits = 4;
    facts.request_bytes = std::uint64_t{1} << 62;
    facts.row_bytes = plain_rows::row_bytes(elements);
    with.dialler().sink.connected(0, facts, std::move(ends));
    CHECK_FALSE(with.member.try_next());
    REQUIRE(with.dialler().dropped.size() == 1);
    CHECK_FALSE(with.dialler().dropped[0].second.empty());
    facts = {};
    facts.row_bytes = 8;
    with.dialler().sink.connected(0, facts, {});
    CHECK_FALSE(with.member.try_next());
    REQUIRE(with.dialler().dropped.size() == 2);
    CHECK(with.dialler().dropped[1].second == "it takes rows of 8 bytes where those of this member have 404");
}

} // namespace ensemble_member_core_test

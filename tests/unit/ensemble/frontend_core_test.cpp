// herring: the engine of a frontend, over lanes to members that are threads of this process, without a control plane.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/frontend_core.hpp"

#include "herring/ensemble/frontend.hpp"
#include "herring/ensemble/frontend_state.hpp"
#include "herring/waiting/waiting.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

namespace ensemble_frontend_core_test {

using namespace herring;
using namespace std::chrono_literals;
namespace ensembles = herring::detail::ensembles;
using detail::descriptor;

constexpr std::size_t elements = 4;

/// Rows of floats as they are; their sum.
struct sums {
    static constexpr bool dense = true;
    struct results {
        std::span<float> values;
    };
    static inline std::function<void()> when_checked{};
    static constexpr std::size_t row_bytes(std::size_t n) noexcept { return n * sizeof(float); }
    static ensembles::row_check check(std::span<std::byte const> row, std::size_t n) noexcept {
        if (row.size() != row_bytes(n)) return ensembles::row_check::wrong_size;
        if (when_checked) when_checked();
        float first = 0;
        std::memcpy(&first, row.data(), sizeof first);
        return first == first ? ensembles::row_check::good : ensembles::row_check::not_a_number;
    }
    static results results_in(std::span<std::byte> memory, std::size_t n, std::size_t) noexcept {
        return {{reinterpret_cast<float*>(memory.data()), n}};
    }
    static bool fold(std::span<std::span<std::byte const> const> rows, std::span<float const> weights,
                     std::size_t n, results& into) noexcept {
        for (std::size_t i = 0; i < n; ++i) {
            into.values[i] = 0;
            for (std::size_t r = 0; r < rows.size(); ++r) {
                float x = 0;
                std::memcpy(&x, rows[r].data() + i * sizeof x, sizeof x);
                into.values[i] += (weights.empty() ? 1 : weights[r]) * x;
            }
        }
        return true;
    }
    static bool is_sound(results const&) noexcept { return true; }
    static void decode(std::span<std::byte const> row, std::size_t n, std::span<float> out) noexcept {
        std::memcpy(out.data(), row.data(), n * sizeof(float));
    }
    static char const* fault_of_weights(std::span<float const> weights) noexcept {
        return weights[0] < 0 ? "a weight is negative" : nullptr;
    }
};

/// Stands for the control plane: the test admits and loses members itself.
struct test_door {
    template <class Sink>
    test_door(ensembles::acceptor_options const& o, ensembles::shape const&, std::vector<std::string> of,
              Sink&)
        : options(o), members(std::move(of)) {}
    std::string address() const { return "127.0.0.1:7001"; }
    void add_member(std::string name) { members.push_back(std::move(name)); }
    void drained(ensembles::peer_index peer, std::uint64_t) { drained_peers.push_back(peer); }
    void drop(ensembles::peer_index peer, std::uint64_t, std::string why) { dropped[peer] = std::move(why); }
    void nudge() noexcept {} // the test calls nudged() itself
    ensembles::acceptor_counters counters() const noexcept {
        ensembles::acceptor_counters all;
        all.refused[static_cast<std::size_t>(admission_refusal::elements)] = 5;
        return all;
    }

    ensembles::acceptor_options options;
    std::vector<std::string> members;
    std::vector<ensembles::peer_index> drained_peers;
    std::map<ensembles::peer_index, std::string> dropped;
};

template <class Waiting>
using core_of = ensembles::frontend_core<sums, Waiting, test_door, ensembles::frontend_lanes>;
template <class Waiting> using frontend_of = ensembles::basic_frontend<float, core_of<Waiting>>;

frontend_options options_for(std::size_t members) {
    frontend_options o{.listen = "127.0.0.1:0", .elements = elements, .request_bytes = 64, .in_flight = 8};
    for (std::size_t m = 0; m < members; ++m) o.members.push_back(std::string(1, static_cast<char>('a' + m)));
    o.lanes = lane::tcp;
    return o;
}
template <class Core> typename Core::settings settings_for(frontend_options o) {
    ensembles::check_options(o, 1);
    ensembles::shape agreed;
    agreed.elements = o.elements;
    agreed.row_bytes = sums::row_bytes(o.elements);
    agreed.request_bytes = o.request_bytes;
    return {.options = std::move(o),
            .agreed = std::move(agreed),
            .result_bytes = sums::row_bytes(elements),
            .least = [](std::size_t) noexcept { return std::size_t{1}; }};
}

/// A member: a thread over the other end of a lane. By default it answers with its number and the request's first byte.
class member {
  public:
    struct job {
        std::uint64_t id = 0;
        std::uint64_t remaining_us = 0;
        std::vector<std::byte> input;
        ensembles::place_index place = 0;
    };

    explicit member(int socket) : lane_(descriptor(socket), {8, 64, sums::row_bytes(elements)}) {}
    ~member() { stop(); }

    void serve(float number) {
        thread_ = std::thread([this, number] {
            while (!stop_.load()) {
                pollfd p{lane_.descriptor(), POLLIN, 0};
                (void)::poll(&p, 1, 10);
                if (!each([&](job const& j) { send(j, number + (j.input.empty() ? 0 : float(j.input[0]))); }))
                    return;
            }
        });
    }
    void stop() {
        stop_.store(true);
        if (thread_.joinable()) thread_.join();
    }

    /// Calls `f(job)` for each request that has come. False: the lane is broken.
    template <class F> bool each(F&& f) {
        struct sink {
            std::vector<job> jobs;
            void asked(std::uint64_t id, std::uint64_t left, std::span<std::byte const> bytes,
                       ensembles::place_index place) {
                jobs.push_back({id, left, {bytes.begin(), bytes.end()}, place});
            }
        } got;
        bool const whole = lane_.poll(got);
        for (job const& j : got.jobs) f(j);
        return whole;
    }
    job next() {
        job found;
        bool any = false;
        while (!any) {
            pollfd p{lane_.descriptor(), POLLIN, 0};
            (void)::poll(&p, 1, 1000);
            REQUIRE(each([&](job const& j) {
                REQUIRE(!any);
                found = j;
                any = true;
            }));
        }
        return found;
    }
    void send(job const& j, float number) {
        float const row[elements] = {number, 1, 2, 3};
        std::memcpy(lane_.row(j.place).data(), row, sizeof row);
        (void)lane_.send(j.id, j.place, sizeof row);
    }
    void contribute(std::uint64_t id, float const (&row)[elements]) {
        ensembles::place_index place = 0;
        REQUIRE(lane_.take(place));
        std::memcpy(lane_.row(place).data(), row, sizeof row);
        REQUIRE(lane_.send(id, place, sizeof row));
    }
    void decline(job const& j) { (void)lane_.decline(j.id, j.place, herring::decline::overloaded); }

  private:
    ensembles::tcp_lane_member lane_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

template <class Waiting = waiting::adaptive> struct fixture {
    explicit fixture(frontend_options o) : front(settings_for<core_of<Waiting>>(std::move(o))) {}
    explicit fixture(std::size_t roster) : fixture(options_for(roster)) {}

    member& join(ensembles::peer_index peer, std::uint64_t incarnation = 1) {
        int ends[2] = {-1, -1};
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
        ensembles::lane_ends mine;
        mine.socket = ends[0];
        members[peer] = std::make_unique<member>(ends[1]);
        front.core().members().admitted(peer, incarnation, 8, std::move(mine));
        return *members[peer];
    }
    void lose(ensembles::peer_index peer, std::uint64_t incarnation = 1) {
        front.core().members().lost(peer, incarnation, "it died");
    }

    std::map<ensembles::peer_index, std::unique_ptr<member>> members; // goes after the frontend
    frontend_of<Waiting> front;
};

std::vector<std::byte> bytes(int first, std::size_t size = 8) {
    std::vector<std::byte> all(size);
    all[0] = static_cast<std::byte>(first);
    return all;
}
template <class F> std::string refusal(F&& f) {
    try {
        f();
    } catch (error const& e) {
        CHECK(e.code() == errc::bad_argument);
        return e.what();
    }
    return "";
}
bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

TEST_CASE("ensemble frontend: a request is answered by all members, in the order of the roster") {
    fixture<> f(3);
    for (unsigned m = 0; m < 3; ++m) f.join(m).serve(float(10 * m));
    CHECK(f.front.ready());
    for (int i = 0; i < 20; ++i) {
        auto const a = f.front.ask(bytes(i), 60s, {.k = 3});
        CHECK(a.outcome() == outcome::full);
        REQUIRE(a.values().size() == elements);
        CHECK(a.values()[0] == 30 + 3 * float(i));
        CHECK(a.values()[3] == 9);
        CHECK(a.contributors() == member_set{0, 1, 2});
        CHECK(a.latency(1).count() > 0);
        int rows = 0;
        a.member_rows([&](auto const& row) {
            float out[elements];
            CHECK(row.copy_to(out) == elements);
            CHECK(out[0] == float(10 * row.member()) + float(i));
            ++rows;
        });
        CHECK(rows == 3);
    }
    CHECK(f.front.counters().ended_as(outcome::full) == 20);
    CHECK(f.front.counters(2).answered == 20);
}

TEST_CASE("ensemble frontend: who sleeps is woken by rows, and by the deadline") {
    fixture<waiting::block> f(2);
    f.join(0).serve(1);
    f.join(1);
    auto const a = f.front.ask(bytes(0), 50ms, {.k = 2});
    CHECK(a.outcome() == outcome::failed);
    CHECK(a.values().empty());
    CHECK(a.contributors() == member_set{0});
    CHECK(a.why(0) == miss::none);
    CHECK(a.why(1) == miss::expired);
    CHECK(a.late() == member_set{1});
    CHECK(a.latency() >= 50ms);
    int rows = 0;
    a.member_rows([&](auto const&) { ++rows; });
    CHECK(rows == 1);                          // stays readable
    auto const b = f.front.ask(bytes(0), 60s); // k = 1 and grace
    CHECK(b.outcome() == outcome::partial);
    CHECK(b.values()[0] == 1);
}

TEST_CASE("ensemble frontend: members that decline, are lost, or were never here") {
    fixture<> f(3);
    member& a = f.join(0);
    member& b = f.join(1);
    std::thread asker([&] {
        auto const answer = f.front.ask(bytes(0), 60s, {.k = 2});
        CHECK(answer.outcome() == outcome::failed); // as soon as two cannot be reached
        CHECK(answer.why(0) == miss::declined);
        CHECK(answer.why(2) == miss::absent);
    });
    a.decline(a.next());
    (void)b.next();
    asker.join();
    std::thread other([&] {
        auto const answer = f.front.ask(bytes(0), 60s, {.k = 2});
        CHECK(answer.outcome() == outcome::failed);
        CHECK(answer.why(1) == miss::lost);
    });
    (void)a.next();
    (void)b.next();
    f.lose(1);
    other.join();
    CHECK(f.front.counters(1).lost == 1);
    auto const few = f.front.ask(bytes(0), 60s, {.k = 2});
    CHECK(few.outcome() == outcome::failed);
}

TEST_CASE("ensemble frontend: rows of an earlier incarnation, and a lane that breaks") {
    fixture<> f(1);
    f.join(0, 1).serve(1);
    auto const kept = f.front.ask(bytes(1), 10s);
    CHECK(kept.values()[0] == 2);
    f.members[0]->stop();
    auto old = std::move(f.members[0]);
    member& fresh = f.join(0, 2); // takes over
    fresh.serve(5);
    auto const a = f.front.ask(bytes(1), 10s);
    CHECK(a.values()[0] == 6);
    float out[elements];
    kept.member_rows([&](auto const& row) { CHECK(row.copy_to(out) == elements); });
    CHECK(out[0] == 2); // its lane is kept as long as the answer
    fresh.stop();
    f.members.erase(0); // closes its end
    auto const lost = f.front.ask(bytes(1), 60s);
    CHECK(lost.outcome() == outcome::failed);
    CHECK(lost.why(0) != miss::none);
    f.lose(0, 2); // the door says so later
    CHECK(!f.front.ready());
}

TEST_CASE("ensemble frontend: a process that is admitted again has another lane") {
    fixture<> f(1);
    f.join(0, 7).serve(1);
    auto const kept = f.front.ask(bytes(1), 60s);
    f.members[0]->stop();
    auto const old = std::move(f.members[0]);
    f.lose(0, 7);
    f.join(0, 7).serve(5);
    {
        auto const a = f.front.ask(bytes(1), 60s);
        CHECK(a.values()[0] == 6);
    }
    float out[elements] = {};
    kept.member_rows([&](auto const& row) { CHECK(row.copy_to(out) == elements); });
    CHECK(out[0] == 2);
}

TEST_CASE("ensemble frontend: busy until an answer goes") {
    fixture<> f(1);
    f.join(0).serve(0);
    std::vector<frontend_of<waiting::adaptive>::answer> kept;
    for (int i = 0; i < 8; ++i) kept.push_back(f.front.ask(bytes(i), 10s));
    for (int i = 0; i < 8; ++i) {
        CHECK(kept[std::size_t(i)].values()[0] == float(i));
        float row[elements] = {};
        kept[std::size_t(i)].member_rows([&](auto const& each) { CHECK(each.copy_to(row) == elements); });
        CHECK(row[0] == float(i)); // where it landed
    }
    auto const refused = f.front.ask(bytes(0), 10s);
    CHECK(refused.outcome() == outcome::busy);
    CHECK(!refused);
    CHECK(refused.values().empty());
    CHECK(refused.contributors().empty());
    kept.pop_back();
    CHECK(f.front.ask(bytes(9), 10s).values()[0] == 9);
}

TEST_CASE("ensemble frontend: answers may outlive it, and requests that nobody has fetched do not") {
    std::optional<fixture<>> f(std::in_place, 2);
    for (unsigned m = 0; m < 2; ++m) f->join(m).serve(float(m));
    std::vector<frontend_of<waiting::adaptive>::answer> kept;
    for (int i = 0; i < 4; ++i) kept.push_back(f->front.ask(bytes(i), 60s, {.k = 2}));
    REQUIRE(f->front.submit(bytes(9), 60s, 1).accepted()); // its answer is never taken
    REQUIRE(f->front.submit(bytes(9), 0s, 2).accepted());
    f.reset(); // the frontend and its members' ends
    for (int i = 0; i < 4; ++i) {
        auto const& each = kept[std::size_t(i)];
        CHECK(each.outcome() == outcome::full);
        CHECK(each.values()[0] == float(1 + 2 * i));
        CHECK(each.contributors() == member_set{0, 1});
        CHECK(each.why(0) == miss::none);
        CHECK(each.latency(1).count() > 0);
        float row[elements] = {};
        int rows = 0;
        each.member_rows([&](auto const& from) { rows += from.copy_to(row) == elements; });
        CHECK(rows == 2);
        CHECK(row[0] == float(1 + i));
    }
    std::thread other([last = std::move(kept.back())] { CHECK(last.values()[0] == 7); });
    kept.clear();
    other.join();
}

TEST_CASE(
    "ensemble frontend: a member with fewer credits than others is not sent more, and has declined nothing") {
    fixture<> f(1);
    int ends[2] = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    descriptor const other(ends[1]); // reads nothing
    ensembles::lane_ends mine;
    mine.socket = ends[0];
    f.front.core().members().admitted(0, 1, 2, std::move(mine)); // the others have 8
    (void)f.front.descriptor();
    for (std::uint64_t cookie = 0; cookie < 2; ++cookie)
        REQUIRE(f.front.submit(bytes(0), 60s, cookie).accepted());
    auto const a = f.front.ask(bytes(0), 10ms); // waits for room, in vain
    CHECK(a.outcome() == outcome::failed);
    CHECK(a.why(0) == miss::no_credit);
    auto const counts = f.front.counters(0);
    CHECK(counts.missing_for(miss::no_credit) == 1);
    CHECK(counts.missing_for(miss::declined) == 0);
    CHECK(counts.declined_for(decline::overloaded) == 0);
    CHECK(counts.asked == 2);
    CHECK(counts.missed == 0);
    CHECK(has(f.front.prometheus(), "reason=\"no credit\"} 1"));
    f.front.close();
    frontend_of<waiting::adaptive>::answer closed;
    std::uint64_t cookie = 0;
    while (f.front.next_done(closed, cookie)) CHECK(closed.outcome() == outcome::closed);
    CHECK(cookie == 1);
}

TEST_CASE("ensemble frontend: requests beyond what a member's lane has room for wait until there is some") {
    fixture<> f(1);
    int ends[2] = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    ensembles::lane_ends mine;
    mine.socket = ends[0];
    member one(ends[1]);
    f.front.core().members().admitted(0, 1, 2, std::move(mine)); // the table counts 8
    (void)f.front.descriptor();
    for (std::uint64_t cookie = 0; cookie < 6; ++cookie)
        REQUIRE(f.front.submit(bytes(static_cast<int>(cookie)), 60s, cookie).accepted());
    one.serve(10);
    std::vector<frontend_of<waiting::adaptive>::answer> held; // each holds a place for a row
    std::vector<std::uint64_t> order;
    while (order.size() < 6) {
        f.front.poll();
        frontend_of<waiting::adaptive>::answer a;
        for (std::uint64_t cookie = 0; f.front.next_done(a, cookie);) {
            CHECK(a.outcome() == outcome::full);
            CHECK(a.values()[0] == 10 + static_cast<float>(cookie));
            order.push_back(cookie);
            held.push_back(std::move(a));
        }
        pollfd ready{f.front.descriptor(), POLLIN, 0};
        if (::poll(&ready, 1, 20) == 1) continue;
        held.clear(); // nothing comes, for all places are held; then something does, without a call of `poll`
        if (order.size() < 6) REQUIRE(::poll(&ready, 1, 60'000) == 1);
    }
    CHECK(order == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5});
    CHECK(f.front.counters(0).asked == 6);
    CHECK(f.front.counters(0).answered == 6);
}

TEST_CASE(
    "ensemble frontend: what waits until an answer goes is sent as of then, and not beyond its deadline") {
    fixture<> f(1);
    int ends[2] = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    ensembles::lane_ends mine;
    mine.socket = ends[0];
    member one(ends[1]);
    f.front.core().members().admitted(0, 1, 1, std::move(mine)); // a place for one row; the table counts 8
    REQUIRE(f.front.submit(bytes(1), 60s, 1).accepted());
    one.send(one.next(), 10);
    frontend_of<waiting::adaptive>::answer held, a;
    std::uint64_t cookie = 0;
    while (!f.front.next_done(held, cookie)) f.front.poll();
    REQUIRE(f.front.submit(bytes(2), 10ms, 2).accepted());
    REQUIRE(f.front.submit(bytes(3), 60s, 3).accepted());
    std::this_thread::sleep_for(300ms);
    held = {}; // nobody has looked at the clock since
    REQUIRE(f.front.next_done(a, cookie));
    CHECK(cookie == 2);
    CHECK(a.outcome() == outcome::failed);
    CHECK(a.why(0) == miss::no_credit);
    auto const third = one.next();
    REQUIRE(third.input[0] == std::byte{3});
    one.send(third, 10);
    while (!f.front.next_done(a, cookie)) f.front.poll();
    CHECK(cookie == 3);
    CHECK(f.front.counters(0).asked == 2);
    std::int64_t longest = 0;
    f.front.core().look(
        [&](auto const& table, auto const&, std::size_t) { longest = table.latencies(0).percentile(100); });
    CHECK(longest < 250'000'000); // of the two that were sent, from when they were
}

TEST_CASE("ensemble frontend: a subset, weights, and what is refused") {
    fixture<> f(3);
    for (unsigned m = 0; m < 3; ++m) f.join(m).serve(float(m + 1));
    float const weights[] = {1, 10, 100};
    auto const a = f.front.ask(bytes(0), 60s, {.k = 2, .among = member_set{0, 2}, .weights = weights});
    CHECK(a.outcome() == outcome::full);
    CHECK(a.contributors() == member_set{0, 2});
    CHECK(a.why(1) == miss::not_asked);
    CHECK(a.values()[0] == 301);
    auto const ask = [&](ask_options const& o, std::chrono::nanoseconds within = 1s, std::size_t size = 8) {
        return refusal([&] { (void)f.front.ask(bytes(0, size), within, o); });
    };
    CHECK(has(ask({.k = 4}), "k is 4, and 3 members of the roster could answer"));
    CHECK(has(ask({.k = 2, .among = member_set{1}}), "k is 2, and 1 members of among"));
    CHECK(has(ask({.among = member_set{}}), "among has no member"));
    CHECK(has(ask({.among = member_set{3}}), "beyond the roster, which has 3"));
    CHECK(has(ask({}, -25h), "ns away; it has to be within a day"));
    CHECK(has(ask({}, 25h), "it has to be within a day"));
    CHECK(has(ask({}, 1s, 65), "the request has 65 bytes, and request_bytes is 64"));
    float const two[] = {1, 2}, negative[] = {-1, 2, 3};
    CHECK(has(ask({.weights = two}), "2 weights are given, and the roster has 3"));
    CHECK(has(ask({.weights = negative}), "a weight is negative"));
    for (auto const passed : {0ns, -1ns, -3'600'000'000'000ns}) {
        std::uint64_t const asked = f.front.counters(0).asked;
        auto const over = f.front.ask(bytes(0), passed);
        CHECK(over.outcome() == outcome::failed);
        CHECK(over.why(0) == miss::expired);
        CHECK(f.front.expect(7, passed).outcome() == outcome::failed);
        CHECK(f.front.counters(0).asked == asked); // nobody was sent anything
    }
}

TEST_CASE("ensemble frontend: the roster grows") {
    fixture<> f(1);
    f.join(0).serve(1);
    f.front.add_member("z");
    CHECK(f.front.size() == 2);
    CHECK(has(refusal([&] { f.front.add_member("z"); }), "has 'z' already, as member 1"));
    f.join(1).serve(2);
    auto const a = f.front.ask(bytes(0), 60s, {.k = 2});
    CHECK(a.outcome() == outcome::full);
    CHECK(a.values()[0] == 3);
    auto const all = f.front.members();
    REQUIRE(all.size() == 2);
    CHECK(all[1].name == "z");
    CHECK(all[1].admitted);
}

TEST_CASE("ensemble frontend: contributions that nobody asked for") {
    fixture<> f(1);
    member& m = f.join(0);
    CHECK(has(refusal([&] { (void)f.front.expect(0, 1s); }), "it has to be from 1"));
    std::thread contributor([&] {
        float const row[elements] = {7, 0, 0, 0};
        while (f.front.counters(0).asked == 0) std::this_thread::yield();
        m.contribute(77, row);
    });
    auto const a = f.front.expect(77, 60s);
    contributor.join();
    CHECK(a.outcome() == outcome::full);
    CHECK(a.id() == 77);
    CHECK(a.values()[0] == 7);
}

TEST_CASE("ensemble frontend: rows that come before they are expected") {
    auto o = options_for(3);
    o.early_rows = 60s;
    fixture<> f(std::move(o));
    auto const row_of = [](member& m, std::uint64_t id, float number) {
        float const row[elements] = {number, 0, 0, 0};
        m.contribute(id, row);
    };
    auto const early = [&](std::size_t m) { return f.front.counters(m).early; };
    int const fd = f.front.descriptor();
    auto const until = [&](auto&& holds) { // an event loop reads what has come
        auto const end = std::chrono::steady_clock::now() + 30s;
        while (!holds()) {
            REQUIRE(std::chrono::steady_clock::now() < end);
            pollfd p{fd, POLLIN, 0};
            (void)::poll(&p, 1, 10);
            f.front.poll();
        }
    };
    for (unsigned m = 0; m < 3; ++m) row_of(f.join(m), 7, float(1 << m));
    until([&] { return early(0) == 1 && early(1) == 1 && early(2) == 1; });
    {
        auto const a = f.front.expect(7, 60s, {.k = 2, .among = member_set{0, 2}});
        CHECK(a.outcome() == outcome::full);
        CHECK(a.contributors() == member_set{0, 2});
        CHECK(a.why(1) == miss::not_asked);
        CHECK(a.values()[0] == 5);
        CHECK(f.front.counters(0).early_answered == 1);
        CHECK(f.front.counters(1).stale == 1); // its row is gone
    }
    // What comes for a request that has ended is late, not early.
    row_of(*f.members[1], 7, 100);
    until([&] { return f.front.counters(1).stale == 2; });
    CHECK(early(1) == 1);

    // Of more rows than there are places the oldest go; places of requests stay free.
    for (std::uint64_t id = 10; id < 30; ++id) {
        row_of(*f.members[0], id, float(id));
        until([&] { return early(0) == id - 8; });
    }
    CHECK(f.front.counters(0).early_evicted == 16);
    CHECK(f.front.expect(25, 0ns).outcome() == outcome::failed);
    CHECK(f.front.expect(25, 1ms).outcome() == outcome::failed); // evicted
    for (std::uint64_t id = 26; id < 30; ++id) CHECK(f.front.expect(id, 60s).values()[0] == float(id));
    CHECK(f.front.counters(0).early_answered == 5);

    // Rows of an earlier incarnation are not those of the next one, whether its end is told or not.
    for (bool const told : {true, false}) {
        row_of(*f.members[2], told ? 40 : 41, 1);
        until([&] { return early(2) == (told ? 2 : 3); });
        if (told) f.lose(2);
        auto const old = std::move(f.members[2]);
        f.join(2, told ? 2 : 3);
        auto const a = f.front.expect(told ? 40 : 41, 1ms, {.among = member_set{2}});
        CHECK(a.outcome() == outcome::failed);
        CHECK(a.why(2) == miss::expired);
    }
    CHECK(f.front.counters(2).early_answered == 1);
    CHECK(has(f.front.prometheus(), "member_early_rows_total"));
}
TEST_CASE("ensemble frontend: early rows are kept for so long; where they are not wanted, not at all") {
    for (auto const age : {1ms, 0ms}) {
        auto o = options_for(1);
        o.early_rows = age;
        fixture<> f(std::move(o));
        float const row[elements] = {7, 0, 0, 0};
        f.join(0).contribute(77, row);
        (void)f.front.descriptor();
        while (f.front.counters(0).early + f.front.counters(0).stale == 0) f.front.poll();
        CHECK(f.front.counters(0).early == (age > 0ms ? 1 : 0));
        std::this_thread::sleep_for(5ms);
        CHECK(f.front.expect(77, 1ms).outcome() == outcome::failed);
        CHECK(f.front.counters(0).early_expired == f.front.counters(0).early);
    }
}

template <class Waiting> void many_threads(int threads, int requests) {
    fixture<Waiting> f(3);
    for (unsigned m = 0; m < 3; ++m) f.join(m).serve(float(10 * m));
    std::vector<std::thread> all;
    std::atomic<int> wrong{0};
    for (int t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
            for (int i = 0; i < requests; ++i) {
                int const first = (t * 31 + i) % 100;
                auto const a = f.front.ask(bytes(first), 60s, {.k = 3});
                if (!a || a.values()[0] != 30 + 3 * float(first)) ++wrong;
            }
        });
    for (auto& t : all) t.join();
    CHECK(wrong == 0);
    CHECK(f.front.counters().ended_as(outcome::full) == std::uint64_t(threads * requests));
}
TEST_CASE("ensemble frontend: many threads ask at once, and one after another drives") {
    many_threads<waiting::adaptive>(6, 200);
    many_threads<waiting::block>(6, 200);
}

template <class Waiting> void who_drove_leaves() {
    fixture<Waiting> f(1);
    member& m = f.join(0);
    outcome second = outcome::busy;
    std::thread drives([&] { CHECK(f.front.ask(bytes(1), 60s).outcome() == outcome::full); });
    auto const first = m.next();
    std::thread follows([&] { second = f.front.ask(bytes(2), 10s).outcome(); });
    auto const other = m.next();
    m.send(first, 1);
    drives.join(); // nobody else asks from now on
    m.send(other, 2);
    follows.join();
    CHECK(second == outcome::full); // otherwise it has slept until its deadline
}
TEST_CASE("ensemble frontend: others can ask while the rows of a request are looked at") {
    fixture<waiting::block> f(1);
    f.join(0).serve(1);
    std::thread other;
    std::atomic<bool> got_in{false};
    bool in_time = false;
    sums::when_checked = [&] {
        other = std::thread([&] { got_in.store(f.front.admitted() == 1); });
        auto const until = clock::now() + 5s;
        while (!got_in.load() && clock::now() < until) std::this_thread::yield();
        in_time = got_in.load();
    };
    auto const answer = f.front.ask(bytes(3), 60s);
    sums::when_checked = {};
    other.join();
    CHECK(in_time);
    CHECK(answer.outcome() == outcome::full);
}

TEST_CASE("ensemble frontend: who drove and leaves calls another one to drive") {
    who_drove_leaves<waiting::adaptive>();
    who_drove_leaves<waiting::block>();
}

TEST_CASE("ensemble frontend: members go and come while many ask") {
    fixture<> f(3);
    f.join(0).serve(0);
    f.join(1).serve(10);
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0}, answered{0};
    std::vector<std::thread> all;
    for (int t = 0; t < 3; ++t)
        all.emplace_back([&] {
            for (int i = 0; !stop.load(); ++i) {
                auto const a = f.front.ask(bytes(i % 50), 60s);
                if (a.outcome() == outcome::busy) continue;
                float expected = 0;
                a.contributors().for_each([&](std::size_t m) { expected += 10 * float(m) + float(i % 50); });
                if (!a || a.values()[0] != expected) ++wrong;
                ++answered;
            }
        });
    for (std::uint64_t incarnation = 1; incarnation <= 30; ++incarnation) {
        f.join(2, incarnation).serve(20);
        int const before = answered.load();
        while (answered.load() < before + 5) std::this_thread::yield();
        if (incarnation % 2 == 0) f.lose(2, incarnation); // odd: the next one takes over, or the lane breaks
        f.members.erase(2);
    }
    stop.store(true);
    for (auto& t : all) t.join();
    CHECK(wrong == 0);
}

TEST_CASE("ensemble frontend: an event loop of the program's") {
    fixture<> f(2);
    f.join(0).serve(1);
    f.join(1).serve(2);
    int const fd = f.front.descriptor();
    std::map<std::uint64_t, std::uint64_t> ids;
    for (std::uint64_t cookie = 0; cookie < 5; ++cookie) {
        auto const t = f.front.submit(bytes(int(cookie)), 60s, cookie, {.k = 2});
        REQUIRE(t.accepted());
        ids[cookie] = t.id;
    }
    std::size_t done = 0;
    while (done < 5) {
        pollfd p{fd, POLLIN, 0};
        REQUIRE(::poll(&p, 1, 60'000) == 1);
        f.front.poll();
        frontend_of<waiting::adaptive>::answer a;
        std::uint64_t cookie = 0;
        while (f.front.next_done(a, cookie)) {
            CHECK(a.id() == ids[cookie]);
            CHECK(a.values()[0] == 3 + 2 * float(cookie));
            ++done;
        }
    }
    // A deadline makes it readable as well.
    f.members[0]->stop();
    f.members[1]->stop();
    REQUIRE(f.front.submit(bytes(0), 5ms, 9).accepted());
    frontend_of<waiting::adaptive>::answer a;
    std::uint64_t cookie = 0;
    while (!f.front.next_done(a, cookie)) {
        pollfd p{fd, POLLIN, 0};
        REQUIRE(::poll(&p, 1, 60'000) == 1);
        f.front.poll();
    }
    CHECK(cookie == 9);
    CHECK(a.outcome() == outcome::failed);
    // So does a decision that another thread makes.
    auto const t = f.front.submit(bytes(0), 60s, 10);
    REQUIRE(t.accepted());
    CHECK(f.front.cancel(t.id));
    CHECK(!f.front.cancel(t.id));
    pollfd p{fd, POLLIN, 0};
    REQUIRE(::poll(&p, 1, 60'000) == 1);
    f.front.poll();
    REQUIRE(f.front.next_done(a, cookie));
    CHECK(a.outcome() == outcome::cancelled);
}

TEST_CASE("ensemble frontend: closing ends what waits") {
    fixture<> f(2);
    member& m = f.join(0);
    std::vector<std::thread> all;
    std::atomic<int> closed{0};
    for (int t = 0; t < 3; ++t)
        all.emplace_back([&] { closed += f.front.ask(bytes(0), 3600s).outcome() == outcome::closed; });
    for (int asked = 0; asked < 3;) {
        m.each([&](auto const&) { ++asked; });
        std::this_thread::yield();
    }
    f.front.close();
    for (auto& t : all) t.join();
    CHECK(closed == 3);
    CHECK(f.front.ask(bytes(0), 1s).outcome() == outcome::closed);
}

TEST_CASE("ensemble frontend: changes are told, and the handler may ask") {
    std::vector<std::string> told;
    frontend_of<waiting::adaptive>* front = nullptr;
    bool refused = false;
    auto o = options_for(2);
    o.on_change = [&](change const& c) {
        told.push_back(std::string(c.name) + " " + to_string(c.what) + " " + std::to_string(c.admitted));
        if (c.what == change_kind::joined) CHECK(front->ask(bytes(0), 1ms).outcome() == outcome::failed);
        refused = front->core().is_in_handler(); // then its destructor throws bad_state
    };
    fixture<> f(std::move(o));
    front = &f.front;
    f.join(1, 1);
    f.lose(1, 1);
    f.join(1, 2);
    f.front.core().members().draining(1, 2);
    f.lose(1, 2);
    CHECK(told ==
          std::vector<std::string>{"b joined 1", "b lost 0", "b returned 1", "b leaving 0", "b lost 0"});
    CHECK(refused);
    CHECK(!front->core().is_in_handler());
}

TEST_CASE("ensemble frontend: who was refused is told of and counted, and is no member") {
    std::vector<std::string> told;
    auto o = options_for(2);
    o.on_change = [&](change const& c) {
        if (c.what != change_kind::refused) return;
        CHECK(c.member == change::no_member);
        CHECK(c.name.empty());
        told.push_back(std::string(to_string(c.reason)) + ": " + std::string(c.why) + ", " +
                       std::to_string(c.admitted));
    };
    fixture<> f(std::move(o));
    f.join(1);
    f.front.core().members().refused(admission_refusal::elements, "5 at the member, 4 here");
    CHECK(told == std::vector<std::string>{"elements: 5 at the member, 4 here, 1"});
    CHECK(f.front.counters().refused_for(admission_refusal::elements) == 5); // as the door counts
    CHECK(f.front.counters().refused_for(admission_refusal::secret) == 0);
    CHECK(has(f.front.prometheus(), "refused_total{ensemble=\"ensemble\",reason=\"elements\"} 5"));
}

TEST_CASE(
    "ensemble frontend: a member that is late several times in a row is told of, by the door's thread") {
    std::vector<std::string> told;
    auto o = options_for(2);
    o.on_change = [&](change const& c) { told.push_back(std::string(c.name) + " " + to_string(c.what)); };
    fixture<> f(std::move(o));
    f.join(0).serve(0);
    f.join(1); // never answers
    // A row that is less late than a wait for a core is no verdict, and of requests that end meanwhile, or late themselves, several are one.
    std::chrono::microseconds const late(quorum_tuning{}.late_after_us);
    int asked = 0;
    for (; asked < 8 && !f.front.members()[1].slow; ++asked) { // as many as it has credits
        CHECK(f.front.ask(bytes(0), 60s).contributors() == member_set{0});
        for (auto const ended = clock::now(); clock::now() - ended <= late;) std::this_thread::yield();
    }
    CHECK(asked >= 3);
    CHECK(told.size() == 2);
    f.front.core().members().nudged();
    f.front.core().members().nudged();
    CHECK(told == std::vector<std::string>{"a joined", "b joined", "b slow"});
    CHECK(f.front.members()[1].slow);
    CHECK(f.front.prometheus().find("member_on_probation") != std::string::npos);
}

} // namespace ensemble_frontend_core_test

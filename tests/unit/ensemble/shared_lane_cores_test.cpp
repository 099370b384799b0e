// herring: a frontend and members of one process over the shared-memory lane: their engines, without a control plane.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/frontend.hpp"
#include "herring/ensemble/frontend_core.hpp"
#include "herring/ensemble/frontend_state.hpp"
#include "herring/ensemble/member_core.hpp"
#include "herring/ensemble/member_lane.hpp"
#include "herring/waiting/waiting.hpp"

#include "sanitizers.hpp"
#include "shared_lane_pair.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ensemble_shared_lane_cores_test {

using namespace herring;
using namespace std::chrono_literals;
namespace ensembles = herring::detail::ensembles;
using detail::descriptor;

constexpr std::size_t elements = 500;

/// Rows of floats as they are; their sum.
struct sums {
    static constexpr bool dense = true;
    struct results {
        std::span<float> values;
    };
    static constexpr std::size_t row_bytes(std::size_t n) noexcept { return n * sizeof(float); }
    static ensembles::row_check encode(std::span<float const> row, std::span<std::byte> out) noexcept {
        std::memcpy(out.data(), row.data(), row.size_bytes());
        return ensembles::row_check::good;
    }
    static ensembles::row_check check(std::span<std::byte const> row, std::size_t n) noexcept {
        return row.size() == row_bytes(n) ? ensembles::row_check::good : ensembles::row_check::wrong_size;
    }
    static bool is_sound(results const&) noexcept { return true; }
    static results results_in(std::span<std::byte> memory, std::size_t n, std::size_t) noexcept {
        return {{reinterpret_cast<float*>(memory.data()), n}};
    }
    static bool fold(std::span<std::span<std::byte const> const> rows, std::span<float const>, std::size_t n,
                     results& into) noexcept {
        for (std::size_t i = 0; i < n; ++i) {
            into.values[i] = 0;
            for (auto const& row : rows) {
                float x = 0;
                std::memcpy(&x, row.data() + i * sizeof x, sizeof x);
                into.values[i] += x;
            }
        }
        return true;
    }
    static void decode(std::span<std::byte const> row, std::size_t n, std::span<float> out) noexcept {
        std::memcpy(out.data(), row.data(), n * sizeof(float));
    }
    static char const* fault_of_weights(std::span<float const>) noexcept { return nullptr; }
};

int memory_of_frontend = -1; // of the one made last

/// Stands for the control plane: the test connects the members itself.
struct no_door {
    template <class Sink>
    no_door(ensembles::acceptor_options const&, ensembles::shape const&, std::vector<std::string>,
            Sink& sink) {
        memory_of_frontend = sink.local_memory();
    }
    std::string address() const { return "127.0.0.1:7001"; }
    void add_member(std::string) {}
    void drained(ensembles::peer_index, std::uint64_t) {}
    void drop(ensembles::peer_index, std::uint64_t, std::string) {}
    ensembles::acceptor_counters counters() const noexcept { return {}; }
};
template <class Sink> struct no_dialler {
    static inline Sink* last = nullptr;
    no_dialler(ensembles::dialler_options const&, ensembles::shape const&, Sink& to) { last = &to; }
    void drop(std::size_t, std::string) {}
    bool leave(std::chrono::milliseconds) { return true; }
    void stop() {}
};

template <class Waiting>
using frontend_core = ensembles::frontend_core<sums, Waiting, no_door, ensembles::frontend_lanes>;
template <class Waiting>
using member_core = ensembles::member_core<float, sums, Waiting, ensembles::member_lane, no_dialler>;

constexpr std::uint32_t in_flight = 8;
constexpr std::size_t request_bytes = 256;

template <class Core> typename Core::settings settings_for(std::size_t members) {
    frontend_options o{.listen = "127.0.0.1:0",
                       .elements = elements,
                       .request_bytes = request_bytes,
                       .in_flight = in_flight};
    for (std::size_t m = 0; m < members; ++m) o.members.push_back(std::string(1, static_cast<char>('a' + m)));
    ensembles::check_options(o, 1);
    ensembles::shape agreed;
    agreed.elements = elements;
    agreed.row_bytes = sums::row_bytes(elements);
    agreed.request_bytes = request_bytes;
    return {.options = std::move(o),
            .agreed = std::move(agreed),
            .result_bytes = sums::row_bytes(elements),
            .least = [](std::size_t) noexcept { return std::size_t{1}; }};
}

/// A frontend, and members that are threads. Each element of a row is the request's number.
template <class Waiting> struct ensemble {
    struct member_thread {
        std::unique_ptr<member_core<Waiting>> core{};
        std::thread thread{};
        std::uint64_t incarnation = 0;
    };

    ensembles::basic_frontend<float, frontend_core<Waiting>> front;
    std::vector<member_thread> members;

    explicit ensemble(std::size_t count)
        : front(settings_for<frontend_core<Waiting>>(count)), members(count) {
        REQUIRE(memory_of_frontend >= 0);
    }
    ~ensemble() {
        for (std::size_t m = 0; m < members.size(); ++m) end(m);
    }

    void connect(std::size_t m) {
        member_thread& one = members[m];
        ensembles::dialler_options o;
        o.frontends = {"127.0.0.1:7001"};
        one.core = std::make_unique<member_core<Waiting>>(elements, 2, ensembles::shape{}, o);
        auto& sink = *no_dialler<typename member_core<Waiting>::inbox>::last;
        ensembles::admission facts;
        facts.peer = static_cast<std::uint32_t>(m);
        facts.credits = facts.in_flight = in_flight;
        facts.request_bytes = request_bytes;
        facts.row_bytes = sums::row_bytes(elements);
        descriptor const rows = sink.local_memory(0, facts);
        REQUIRE(rows.get() >= 0);
        shared_lane_pair::bells bells;
        front.core().members().admitted(facts.peer, ++one.incarnation, in_flight,
                                        shared_lane_pair::ends(std::move(bells.frontend), rows.get()));
        sink.connected(0, facts, shared_lane_pair::ends(std::move(bells.member), memory_of_frontend));
    }
    void serve(std::size_t m) {
        connect(m);
        members[m].thread = std::thread([core = members[m].core.get()] {
            while (auto job = core->next()) {
                std::uint32_t number = 0;
                if (job.input().size() >= sizeof number)
                    std::memcpy(&number, job.input().data(), sizeof number);
                for (float& each : job.row()) each = static_cast<float>(number);
                (void)job.send();
            }
        });
    }
    void end(std::size_t m) {
        if (members[m].core) members[m].core->stop();
        if (members[m].thread.joinable()) members[m].thread.join();
        members[m].core.reset();
    }
    void lose(std::size_t m) {
        end(m);
        front.core().members().lost(static_cast<std::uint32_t>(m), members[m].incarnation, "it ended");
    }

    auto ask(std::uint32_t number, std::size_t k, std::chrono::nanoseconds within = 60s) {
        std::byte request[100] = {};
        std::memcpy(request, &number, sizeof number);
        return front.ask(request, within, {.k = k});
    }
    /// Every element is `number` times how many have come.
    template <class Answer> static bool is_right(Answer const& a, std::uint32_t number) {
        if (a.values().size() != elements) return false;
        float const due = static_cast<float>(number) * static_cast<float>(a.contributors().count());
        for (float const each : a.values())
            if (each != due) return false;
        return true;
    }
};

TEST_CASE("shared lane, cores: rows that come before they are expected") {
    ensemble<waiting::adaptive> e(2);
    for (std::size_t m = 0; m < 2; ++m) e.connect(m);
    float const fill = 3;
    auto const contribute = [&](std::size_t m, std::uint64_t id) {
        return e.members[m].core->contribute(id, [&](std::span<float> row) {
            for (float& each : row) each = fill * static_cast<float>(id);
        });
    };
    (void)e.front.descriptor();
    auto const read = [&](std::size_t m, std::uint64_t rows) {
        auto const end = std::chrono::steady_clock::now() + 30s;
        while (e.front.counters(m).early < rows && std::chrono::steady_clock::now() < end) e.front.poll();
        REQUIRE(e.front.counters(m).early == rows);
    };
    for (std::uint64_t id = 1; id <= 20; ++id) { // the oldest go, so that there is always room for the next
        REQUIRE(contribute(0, id) == 1);
        read(0, id);
    }
    CHECK(e.front.counters(0).early_evicted == 16);
    REQUIRE(contribute(1, 18) == 1);
    read(1, 1);
    {
        auto const a = e.front.expect(18, 60s, {.k = 2});
        CHECK(a.outcome() == outcome::full);
        CHECK(e.is_right(a, 54));
    }
    // Another incarnation of the same member: nothing of the one before counts.
    e.lose(0);
    e.connect(0);
    CHECK(e.front.expect(19, 1ms, {.k = 2}).outcome() == outcome::failed);
    CHECK(e.front.counters(0).early_answered == 1);
    for (std::uint64_t id = 30; id < 50; ++id) { // before or after, and places come back
        std::thread other([&] { CHECK(contribute(0, id) == 1); });
        REQUIRE(contribute(1, id) == 1);
        auto const a = e.front.expect(id, 60s, {.k = 2});
        other.join();
        REQUIRE(a.outcome() == outcome::full);
        CHECK(e.is_right(a, static_cast<std::uint32_t>(3 * id)));
    }
}

constexpr std::uint32_t rounds = HERRING_TEST_ASAN || HERRING_TEST_TSAN ? 200 : 1000;

template <class Waiting> void all_answer() {
    ensemble<Waiting> e(3);
    for (std::size_t m = 0; m < 3; ++m) e.serve(m);
    CHECK(e.front.ready());
    for (std::uint32_t i = 0; i < rounds; ++i) {
        auto const a = e.ask(i, 3);
        REQUIRE(a.outcome() == outcome::full);
        REQUIRE(e.is_right(a, i));
    }
}
TEST_CASE("ensemble over shared memory: all members answer; they sleep between requests") {
    all_answer<waiting::block>();
}
TEST_CASE("ensemble over shared memory: all members answer; they spin for a while") {
    all_answer<waiting::adaptive>();
}

TEST_CASE("ensemble over shared memory: several threads ask at once") {
    ensemble<waiting::adaptive> e(2);
    for (std::size_t m = 0; m < 2; ++m) e.serve(m);
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::uint32_t i = 0; i < 200; ++i) {
                auto const a = e.ask(t * 1000 + i, 2);
                right += a.outcome() == outcome::full && e.is_right(a, t * 1000 + i);
            }
        });
    for (std::thread& t : threads) t.join();
    CHECK(right == 800);
}

TEST_CASE(
    "ensemble over shared memory: members that end and come back are never confused with what they were") {
    ensemble<waiting::adaptive> e(3);
    for (std::size_t m = 0; m < 3; ++m) e.serve(m);
    std::atomic<bool> stop{false};
    std::atomic<int> asked{0}, wrong{0};
    std::thread asks([&] {
        for (std::uint32_t i = 0; !stop; ++i, ++asked) {
            auto const a = e.ask(i, 1);
            wrong += !a || !e.is_right(a, i);
        }
    });
    for (int round = 0; round < 12; ++round) {
        std::size_t const m = 1 + static_cast<std::size_t>(round) % 2; // the first one stays
        e.lose(m);
        int const before = asked;
        while (asked < before + 5) std::this_thread::yield();
        e.serve(m);
        while (asked < before + 10) std::this_thread::yield();
    }
    stop = true;
    asks.join();
    CHECK(wrong == 0);
    auto const a = e.ask(7, 3);
    CHECK(a.outcome() == outcome::full);
}

TEST_CASE("ensemble over shared memory: a job whose request is over does not reach the slot's next one") {
    ensemble<waiting::block> e(2);
    e.serve(0);
    e.connect(1); // is played here
    {
        auto const a = e.ask(5, 2, 20ms);
        CHECK(a.outcome() == outcome::failed);
        CHECK(a.contributors() == member_set{0});
    }
    auto stale = e.members[1].core->next(60s); // by now, nobody waits for it
    REQUIRE(bool(stale));
    for (float& each : stale.row()) each = 99;
    std::atomic<bool> asked{false};
    std::thread asks([&] {
        auto const a = e.ask(6, 2);
        asked = a.outcome() == outcome::full && e.is_right(a, 6);
    });
    auto job = e.members[1].core->next(60s);
    REQUIRE(bool(job));
    (void)stale.send();
    std::uint32_t number = 0;
    std::memcpy(&number, job.input().data(), sizeof number);
    CHECK(number == 6);
    for (float& each : job.row()) each = 6;
    CHECK(job.send() == job_end::sent);
    asks.join();
    CHECK(asked);
}

TEST_CASE("ensemble over shared memory: rows that nobody asked for") {
    ensemble<waiting::block> e(2);
    e.connect(0);
    e.connect(1);
    for (std::uint64_t id = 1; id < 30; ++id) {
        std::thread contributes([&] {
            while (e.front.counters(1).asked < id) std::this_thread::yield(); // what comes before is dropped
            for (std::size_t m = 0; m < 2; ++m) {
                std::size_t const sent = e.members[m].core->contribute(id, [&](std::span<float> row) {
                    for (float& each : row) each = static_cast<float>(id);
                });
                CHECK(sent == 1);
            }
        });
        auto const a = e.front.expect(id, 60s, {.k = 2});
        contributes.join();
        CHECK(a.outcome() == outcome::full);
        CHECK(e.is_right(a, static_cast<std::uint32_t>(id)));
    }
}

} // namespace ensemble_shared_lane_cores_test

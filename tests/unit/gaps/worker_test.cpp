// herring: tests of gaps/worker.hpp: a worker waits in virtual time, whose results come when the test says; forecasts, tasks and reports.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gaps/worker.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <limits>

namespace gap_worker_test {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

struct virtual_clock {
    using duration = nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<virtual_clock>;
    static constexpr bool is_steady = true;
    static inline time_point current{};
    static time_point now() noexcept { return current; }
};
using time_point = virtual_clock::time_point;
constexpr time_point no_deadline = time_point::max();

struct task {
    nanoseconds says = 100us, takes = 100us;
    int left = std::numeric_limits<int>::max(); // quanta
    int done = 0;

    nanoseconds quantum() const noexcept { return says; }
    bool next() noexcept {
        if (left == 0) return false;
        --left;
        ++done;
        virtual_clock::current += takes;
        return true;
    }
};

/// A step whose results come so long after its wait began.
struct waits {
    herring::detail::gap_worker<virtual_clock> worker;

    /// Returns by how much later the wait ended than it would have without a task.
    nanoseconds step(task& of, nanoseconds gap, time_point deadline = no_deadline, bool comes = true) {
        time_point const arrival = virtual_clock::current + gap;
        worker.wait(
            of, [&] { return virtual_clock::current >= arrival; },
            [&] {
                virtual_clock::current = std::max(virtual_clock::current, arrival);
                return comes;
            },
            deadline);
        nanoseconds const late = virtual_clock::current - arrival;
        virtual_clock::current += 3ms; // backward
        return late;
    }
};

TEST_CASE(
    "gap_worker: gaps like a clock are used but for the rest of less than a quantum, and no step is late") {
    waits of;
    task work;
    for (int step = 0; step < 8; ++step) {
        CHECK(of.step(work, 1050us) == 0ns);
        CHECK(work.done == 0); // it learns
    }
    for (int step = 0; step < 100; ++step) CHECK(of.step(work, 1050us) == 0ns);
    CHECK(work.done == 100 * 10);
    auto const& report = of.worker.report();
    CHECK(report.steps == 108);
    CHECK(report.quanta == 1000);
    CHECK(report.late == 0);
    CHECK(report.lost == 0ns);
    CHECK(report.gaps == 108 * 1050us);
    CHECK(report.used == 1000 * 100us);
}

TEST_CASE("gap_worker: no quantum is run where the prediction is shorter") {
    waits of;
    task work;
    for (int step = 0; step < 100; ++step) CHECK(of.step(work, 99us) == 0ns);
    CHECK(work.done == 0);
    CHECK(of.worker.report().share() == 0);
    for (int step = 0; step < 7; ++step) of.step(work, 5ms); // one short one is among the last 8
    CHECK(work.done == 0);
    of.step(work, 5ms);
    CHECK(work.done == 0);
    of.step(work, 5ms);
    CHECK(work.done == 50);
}

TEST_CASE("gap_worker: a gap that ends too soon costs less than a quantum, is counted, and is learned") {
    waits of;
    task work;
    for (int step = 0; step < 8; ++step) of.step(work, 1ms);
    CHECK(of.step(work, 430us) == 70ns * 1000); // the fifth quantum was under way
    CHECK(work.done == 5);
    auto const& report = of.worker.report();
    CHECK(report.late == 1);
    CHECK(report.lost == 100us); // at most
    CHECK(report.most_lost == 100us);
    CHECK(report.used == 400us);
    CHECK(of.worker.forecast().gap() == 400us);
    for (int step = 0; step < 7; ++step) CHECK(of.step(work, 430us) == 0ns);
    CHECK(work.done == 5 + 7 * 4);
    CHECK(report.late == 1);
}

TEST_CASE("gap_worker: results that are there already leave no gap") {
    waits of;
    task work;
    for (int step = 0; step < 8; ++step) of.step(work, 1ms);
    CHECK(of.step(work, 0us) == 0ns);
    CHECK(work.done == 0);
    for (int step = 0; step < 7; ++step) of.step(work, 1ms);
    CHECK(work.done == 0); // until that is old
}

TEST_CASE(
    "gap_worker: any gaps: no step is later than a quantum, and the report bounds what all steps lost") {
    waits of;
    task work;
    std::uint32_t state = 5;
    nanoseconds lost{0};
    for (int step = 0; step < 5000; ++step) {
        state = state * 1664525 + 1013904223;
        nanoseconds const late = of.step(work, nanoseconds(300'000 + (state >> 12)));
        CHECK(late < 100us);
        lost += late;
    }
    auto const& report = of.worker.report();
    CHECK(report.late > 50);
    CHECK(report.late < 5000 / 7); // one in nine is the shortest of nine
    CHECK(report.lost >= lost);
    CHECK(report.lost == report.late * 100us);
    CHECK(report.share() > 0.2);
}

TEST_CASE("gap_worker: a task that takes longer than it says is run where what it took fits") {
    waits of;
    task work{.says = 10us, .takes = 400us};
    for (int step = 0; step < 8; ++step) of.step(work, 1ms);
    nanoseconds late = of.step(work, 1ms);
    CHECK(work.done == 2); // 10 us would have fitted a third time
    CHECK(late == 0ns);
    for (int step = 0; step < 20; ++step) CHECK(of.step(work, 1ms) == 0ns);
    CHECK(work.done == 2 + 20 * 2);
}

TEST_CASE("gap_worker: a task with nothing to do is asked once a gap") {
    waits of;
    task work{.left = 3};
    for (int step = 0; step < 10; ++step) of.step(work, 1ms);
    CHECK(work.done == 3);
    auto const& report = of.worker.report();
    CHECK(report.quanta == 3);
    CHECK(report.used == 300us);
    CHECK(report.late == 0);
}

TEST_CASE("gap_worker: no quantum begins that may pass the deadline, and a step that failed is none") {
    waits of;
    task work;
    for (int step = 0; step < 8; ++step) of.step(work, 1ms);
    of.step(work, 1ms, virtual_clock::current + 350us, false);
    CHECK(work.done == 3);
    CHECK(of.worker.report().steps == 8);
    of.step(work, 1ms, virtual_clock::current - 1s, false);
    CHECK(work.done == 3);
}

} // namespace gap_worker_test

namespace gap_forecast_test {

using namespace std::chrono_literals;
using herring::detail::gap_forecast;

gap_forecast after(std::initializer_list<std::chrono::microseconds> gaps) {
    gap_forecast of;
    for (auto const& one : gaps) of.gap_took(one);
    return of;
}

TEST_CASE("gap_forecast: nothing is predicted before 8 gaps were seen") {
    gap_forecast of;
    for (int i = 0; i < 7; ++i) {
        of.gap_took(10ms);
        CHECK(of.gap() == 0ns);
        CHECK(!of.fits(0ns, 1ns));
    }
    of.gap_took(10ms);
    CHECK(of.gap() == 10ms);
    CHECK(of.fits(0ns, 10ms));
    CHECK(!of.fits(0ns, 10ms + 1ns));
    CHECK(of.fits(9900us, 100us));
    CHECK(!of.fits(9900us + 1ns, 100us));
}

TEST_CASE("gap_forecast: the shortest of the last 8, and of no older ones") {
    gap_forecast of = after({900us, 30us, 900us, 800us, 900us, 900us, 900us, 900us});
    CHECK(of.gap() == 30us);
    of.gap_took(900us); // the first one is forgotten
    CHECK(of.gap() == 30us);
    of.gap_took(900us); // and the short one
    CHECK(of.gap() == 800us);
    for (int i = 0; i < 100; ++i) of.gap_took(std::chrono::microseconds(i % 8 == 3 ? 50 : 60));
    CHECK(of.gap() == 50us);
}

TEST_CASE("gap_forecast: gaps that are not there leave no room for any quantum") {
    gap_forecast const of = after({1ms, 1ms, 1ms, 0us, 1ms, 1ms, 1ms, 1ms});
    CHECK(of.gap() == 0ns);
    CHECK(!of.fits(0ns, 0ns)); // a task that says nothing, too
}

TEST_CASE("gap_forecast: a quantum that took longer than the task says is believed, and forgotten in time") {
    gap_forecast of = after({1ms, 1ms, 1ms, 1ms, 1ms, 1ms, 1ms, 1ms});
    CHECK(of.quantum(100us) == 100us);
    of.quantum_took(900us);
    CHECK(of.quantum(100us) == 900us);
    CHECK(!of.fits(200us, 100us));
    of.quantum_took(50us);
    CHECK(of.quantum(100us) == 787'500ns);
    // One that fits in no gap any more is not run again, so gaps have it forgotten.
    of.quantum_took(5ms);
    int gaps = 0;
    for (; !of.fits(0ns, 100us); ++gaps) of.gap_took(1ms);
    CHECK(gaps > 5);
    CHECK(gaps < 20);
}

} // namespace gap_forecast_test

namespace gap_task_test {

struct complete {
    std::chrono::microseconds quantum() const noexcept { return std::chrono::microseconds(5); }
    bool next() noexcept { return ++done < 3; }
    int done = 0;
};
struct may_throw {
    std::chrono::nanoseconds quantum() noexcept { return {}; }
    bool next() { return false; }
};
struct plain_number {
    long quantum() noexcept { return 5; }
    bool next() noexcept { return false; }
};
struct returns_nothing {
    std::chrono::nanoseconds quantum() noexcept { return {}; }
    void next() noexcept {}
};

static_assert(herring::gap_task<complete>);
static_assert(!herring::gap_task<may_throw>);
static_assert(!herring::gap_task<plain_number>); // of which unit?
static_assert(!herring::gap_task<returns_nothing>);

TEST_CASE("gap_task: is asked for one quantum at a time") {
    complete task;
    CHECK(task.next());
    CHECK(task.next());
    CHECK(!task.next());
}

} // namespace gap_task_test

using namespace std::chrono_literals;

TEST_CASE("gap_report: shares, and the text") {
    herring::gap_report of;
    CHECK(of.share() == 0);
    CHECK(of.lost_by_step() == 0ns);
    of = {.steps = 100,
          .quanta = 4000,
          .late = 4,
          .gaps = 800ms,
          .used = 600ms,
          .lost = 200us,
          .most_lost = 88us};
    CHECK(of.share() == 0.75);
    CHECK(of.lost_by_step() == 2us);
    CHECK(to_string(of) ==
          "100 steps: 800.0 ms of gaps, 75.0 % used by 4000 quanta; 4 were late; a step lost at "
          "most 2.0 us, and none more than 88.0 us");
}

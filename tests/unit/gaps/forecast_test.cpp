// herring: tests of gaps/worker.hpp: gaps that come like a clock are used to their end, others as far as the shortest of late.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gaps/worker.hpp"

#include "doctest/doctest.h"

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

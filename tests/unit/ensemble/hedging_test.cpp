// herring: tests of ensemble/request_roster.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/request_roster.hpp"

#include "doctest/doctest.h"

namespace ensemble_hedging_test {

using namespace herring::detail::ensembles;
using herring::hedging_tuning;

TEST_CASE("hedging: the delay is the 95th percentile, once there are samples, and at least the floor") {
    constexpr hedging_tuning tuning{};
    time_window latencies;
    hedge_delay delay;
    auto const sample = [&](std::int64_t ns) {
        latencies.add(ns);
        delay.sampled(latencies, tuning);
    };
    for (int i = 0; i < 99; ++i) sample(i < 50 ? 1'000'000 : 3'000'000);
    CHECK(delay.ns() == never_ns);
    sample(3'000'000);
    CHECK(delay.ns() == time_window::rounded(3'000'000));
    for (int i = 0; i < 1024 + 32; ++i) sample(10'000);
    CHECK(delay.ns() == 200'000); // the floor
}

TEST_CASE("hedging: the percentile is refreshed at every 32nd sample") {
    constexpr hedging_tuning tuning{.floor_us = 0, .samples = 1};
    time_window latencies;
    hedge_delay delay;
    latencies.add(40);
    delay.sampled(latencies, tuning);
    CHECK(delay.ns() == 40);
    for (int i = 0; i < 31; ++i) {
        latencies.add(60);
        delay.sampled(latencies, tuning);
        CHECK(delay.ns() == 40);
    }
    latencies.add(60);
    delay.sampled(latencies, tuning);
    CHECK(delay.ns() == 60);
}

TEST_CASE("hedging: at most 5 in 100 requests, and a bounded number saved up") {
    constexpr hedging_tuning tuning{};
    hedge_budget budget;
    CHECK_FALSE(budget.take());
    int hedges = 0;
    for (int sent = 1; sent <= 10'000; ++sent) {
        budget.sent(1, tuning);
        if (budget.take()) ++hedges;
        CHECK(hedges * 100 <= sent * 5);
    }
    CHECK(hedges == 500);
    budget.sent(1'000'000, tuning);
    for (hedges = 0; budget.take();) ++hedges;
    CHECK(hedges == 32);
    budget.give_back();
    CHECK(budget.take());
    CHECK_FALSE(budget.take());
}

TEST_CASE("hedging: what could not be sent allows nothing, until it is sent") {
    hedge_budget budget;
    hedging_tuning const tuning{.percent = 40};
    for (int tries = 0; tries < 100; ++tries) {
        budget.sent(1, tuning);
        budget.unsent(tuning);
    }
    budget.sent(2, tuning);
    CHECK_FALSE(budget.take());
    budget.sent(1, tuning);
    CHECK(budget.take());
    budget.unsent(tuning); // 20 hundredths are left, and no fewer than none after it
    budget.sent(2, tuning);
    CHECK_FALSE(budget.take());
}

TEST_CASE("hedging: the tuning prints") {
    CHECK(to_string(hedging_tuning{}) == "percent=5 floor_us=200 samples=100 burst=32");
}

} // namespace ensemble_hedging_test

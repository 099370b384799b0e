// herring: tests of ensemble/change.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/change.hpp"

#include "doctest/doctest.h"

#include <chrono>

namespace ensemble_notice_rate_test {

using herring::detail::ensembles::notice_rate;
using namespace std::chrono_literals;

TEST_CASE("notice rate: so many at once, then one each second, however many there are") {
    notice_rate rate;
    auto const start = herring::clock::now();
    int told = 0;
    for (int i = 0; i < 100; ++i) told += rate.take(8, start);
    CHECK(told == 8);
    CHECK_FALSE(rate.take(8, start + 999ms));
    CHECK(rate.take(8, start + 1s));
    CHECK_FALSE(rate.take(8, start + 1s));
    for (int ms = 1000; ms <= 11'000; ++ms) told += rate.take(8, start + std::chrono::milliseconds(ms));
    CHECK(told == 18);
}

TEST_CASE("notice rate: a pause gives back no more than there were at first") {
    notice_rate rate;
    auto const start = herring::clock::now();
    CHECK(rate.take(3, start));
    int told = 0;
    for (int i = 0; i < 10; ++i) told += rate.take(3, start + 1h);
    CHECK(told == 3);
}

TEST_CASE("notice rate: a burst of one") {
    notice_rate rate;
    auto const start = herring::clock::now();
    CHECK(rate.take(1, start));
    CHECK_FALSE(rate.take(1, start + 999ms));
    CHECK(rate.take(1, start + 1s));
}

} // namespace ensemble_notice_rate_test

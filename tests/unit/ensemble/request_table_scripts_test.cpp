// herring: ensemble/request_table.hpp against the history alone, over random scripts in virtual time.
// SPDX-License-Identifier: Apache-2.0
#include "unit/ensemble/table_scripts.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"

#include <cstdint>
#include <cstdio>
#include <string>

namespace ensemble_request_table_scripts_test {

using namespace herring::conformance::ensembles;

TEST_CASE("request_table: what happened alone says what an answer is, over 10,000 scripts") {
    int const scripts = HERRING_TEST_ASAN || HERRING_TEST_TSAN ? 1000 : 10'000;
    static constexpr std::uint32_t percents[] = {0, 15, 15, 100};
    table_script::seen met;
    for (int i = 0; i < scripts; ++i) {
        std::uint64_t const seed = static_cast<std::uint64_t>(i) + 1;
        herring::quorum_tuning const quorum{.grace_percent = percents[i % 4],
                                            .least_grace_us = i % 3 == 0 ? 0u : 50u,
                                            .probation_after = static_cast<std::uint32_t>(i % 4),
                                            .probation_left_after = static_cast<std::uint32_t>(1 + i % 3),
                                            .late_after_us = i % 5 < 2 ? 0u : 1000u};
        std::string const wrong = wrong_in(random_options(seed, quorum, 0), seed, 80, met);
        INFO("script " << seed);
        REQUIRE(wrong == "");
    }
    auto const enough =
        static_cast<std::uint64_t>(scripts / 100); // everything that may happen has happened often
    for (std::uint64_t const n : met.outcomes) CHECK(n > enough);
    for (std::uint64_t const n : met.whys) CHECK(n > enough);
    for (std::uint64_t const n : met.arrivals) CHECK(n > enough);
    CHECK(met.hedges > enough);
    CHECK(met.later > enough);
    CHECK(met.probations > enough);
}

} // namespace ensemble_request_table_scripts_test

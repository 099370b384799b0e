// herring: a checked transport passes the suite, over whatever passes it; repeated messages are dropped, changed ones told.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/transport_suite.hpp"

#include "doctest/doctest.h"

#include "herring/transport/chaos.hpp"
#include "herring/transport/checked.hpp"
#include "herring/transport/tcp.hpp"

using namespace herring::conformance;
namespace transport = herring::transport;
using transport::chaos;
using transport::chaos_tuning;
using transport::checked;

namespace {

inline constexpr chaos_tuning twice{.duplicate_per_1000 = 100};
inline constexpr chaos_tuning fierce{.not_now_per_1000 = 500,
                                     .delay_per_1000 = 900,
                                     .hold_back_per_1000 = 900,
                                     .longest = 40,
                                     .duplicate_per_1000 = 500};

} // namespace

TEST_CASE("checked: over inproc and tcp") {
    CHECK(text(transport_suite<checked<transport::inproc>>()) == "");
    CHECK(text(transport_suite<checked<transport::tcp>>()) == "");
    CHECK(text(transport_suite<checked<transport::tcp>>({.start = ranks_as::processes})) == "");
}

// Seeds are new ones in every run; a finding tells its own.
TEST_CASE("checked: messages come late, in any order and twice") {
    CHECK(text(transport_suite<checked<chaos<transport::inproc, twice>>>()) == "");
    CHECK(text(transport_suite<checked<chaos<transport::inproc, fierce>>>()) == "");
    CHECK(text(transport_suite<checked<chaos<transport::tcp, twice>>>({.start = ranks_as::processes})) == "");
}

TEST_CASE("checked: without it the suite sees what comes twice") {
    settings const how{.patience = std::chrono::milliseconds(300 * (HERRING_TEST_SLOW ? 4 : 1))};
    using repeating = chaos<transport::inproc, chaos_tuning{.duplicate_per_1000 = 1000}>;
    CHECK(text(run_case("one_tag", 2, {}, how, transport_cases<repeating>::one_tag)) != "");
}

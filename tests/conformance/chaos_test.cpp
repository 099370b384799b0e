// herring: chaos is a transport itself: it passes the suite, over whatever passes it.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/transport_suite.hpp"

#include "doctest/doctest.h"

#include "herring/transport/chaos.hpp"
#include "herring/transport/tcp.hpp"

using namespace herring::conformance;
namespace transport = herring::transport;

namespace {

inline constexpr transport::chaos_tuning fierce{
    .not_now_per_1000 = 500, .delay_per_1000 = 900, .hold_back_per_1000 = 900, .longest = 40};

} // namespace

// Seeds are new ones in every run; a finding tells its own.
TEST_CASE("chaos: over inproc") {
    CHECK(text(transport_suite<transport::chaos<transport::inproc>>()) == "");
    CHECK(text(transport_suite<transport::chaos<transport::inproc, fierce>>()) == "");
}

TEST_CASE("chaos: over tcp") {
    using difficult = transport::chaos<transport::tcp>;
    CHECK(text(transport_suite<difficult>()) == "");
    CHECK(text(transport_suite<difficult>({.start = ranks_as::processes})) == "");
}

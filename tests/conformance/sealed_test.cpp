// herring: a sealed transport passes the suite, over whatever passes it; repeated messages are dropped.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/transport_suite.hpp"

#include "doctest/doctest.h"

#include "herring/transport/chaos.hpp"
#include "herring/transport/sealed.hpp"
#include "herring/transport/tcp.hpp"

using namespace herring::conformance;
namespace transport = herring::transport;
using transport::chaos;
using transport::chaos_tuning;
using transport::sealed;

namespace {

inline constexpr chaos_tuning twice{.duplicate_per_1000 = 100};
inline constexpr chaos_tuning fierce{.not_now_per_1000 = 500,
                                     .delay_per_1000 = 900,
                                     .hold_back_per_1000 = 900,
                                     .longest = 40,
                                     .duplicate_per_1000 = 500};

} // namespace

TEST_CASE("sealed: over inproc and tcp") {
    CHECK(text(transport_suite<sealed<transport::inproc>>()) == "");
    CHECK(text(transport_suite<sealed<transport::tcp>>()) == "");
    CHECK(text(transport_suite<sealed<transport::tcp>>({.start = ranks_as::processes})) == "");
}

// Seeds are new ones in every run; a finding tells its own.
TEST_CASE("sealed: messages come late, in any order and twice") {
    CHECK(text(transport_suite<sealed<chaos<transport::inproc, twice>>>()) == "");
    CHECK(text(transport_suite<sealed<chaos<transport::inproc, fierce>>>()) == "");
    CHECK(text(transport_suite<sealed<chaos<transport::tcp, twice>>>({.start = ranks_as::processes})) == "");
}

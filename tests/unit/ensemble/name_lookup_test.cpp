// herring: tests of ensemble/name_lookup.hpp: a name that has an address, one that has none, and one nobody waits for.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/name_lookup.hpp"

#include "doctest/doctest.h"
#include "herring/base/time.hpp"

#include <chrono>

#include <sched.h>

namespace ensemble_name_lookup_test {

using herring::detail::ensembles::name_lookup;

herring::time_point soon() { return herring::clock::now() + std::chrono::seconds(20); }
void finish(name_lookup const& lookup) {
    auto const until = soon();
    while (!lookup.done() && herring::clock::now() < until) ::sched_yield();
    REQUIRE(lookup.done());
}

TEST_CASE("name_lookup: addresses with the port, or why there is none") {
    name_lookup here("localhost", 7001, soon());
    finish(here);
    REQUIRE(!here.found().empty());
    CHECK(here.found()[0].port() == 7001);
    CHECK(here.found()[0].loopback());
    name_lookup nowhere("no-such-host.invalid", 7001, herring::clock::now());
    finish(nowhere);
    CHECK(nowhere.found().empty());
    CHECK(!nowhere.why().empty());
}

TEST_CASE("name_lookup: may be dropped while it is under way") {
    name_lookup const unheard("localhost", 1, soon());
}

} // namespace ensemble_name_lookup_test

// herring: tests of machine/name_lookup.hpp: a name that has an address, one that has none, and one nobody waits for.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/name_lookup.hpp"

#include "doctest/doctest.h"
#include "herring/machine/time.hpp"

#include <chrono>
#include <string>

#include <sched.h>

namespace base_name_lookup_test {

using herring::detail::name_lookup;

herring::time_point soon() { return herring::clock::now() + std::chrono::seconds(20); }
void finish(name_lookup const& lookup) {
    auto const until = soon();
    while (!lookup.done() && herring::clock::now() < until) ::sched_yield();
    REQUIRE(lookup.done());
}

TEST_CASE("name_lookup: addresses with the port, or why there is none") {
    std::string why;
    name_lookup here("localhost", 7001, soon());
    finish(here);
    auto const found = here.found(why);
    REQUIRE(!found.empty());
    CHECK(found[0].port() == 7001);
    CHECK(found[0].loopback());
    CHECK(why.empty());
    name_lookup nowhere("no-such-host.invalid", 7001, soon());
    nowhere.wait();
    why = "of another look-up";
    CHECK(nowhere.found(why).empty());
    CHECK((!why.empty() && why != "of another look-up"));
}

TEST_CASE("name_lookup: a literal is answered at once") {
    std::string why;
    for (char const* const literal : {"127.0.0.1", "::1"}) {
        name_lookup const at(literal, 80, soon());
        CHECK(at.done());
        auto const found = at.found(why);
        REQUIRE(found.size() == 1);
        CHECK(found[0].address() == literal);
    }
}

TEST_CASE("name_lookup: may be dropped while it is under way") {
    name_lookup const unheard("localhost", 1, soon());
}

} // namespace base_name_lookup_test

// herring: tests of ensemble/counters.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/counters.hpp"

#include "doctest/doctest.h"

namespace ensemble_counters_test {

TEST_CASE("counters: by reason") {
    herring::member_counters c;
    c.missing[static_cast<std::size_t>(herring::miss::late)] = 3;
    c.declined[static_cast<std::size_t>(herring::decline::overloaded)] = 2;
    c.refused_rows[1] = 4;
    c.refused_rows[5] = 1;
    CHECK(c.missing_for(herring::miss::late) == 3);
    CHECK(c.missing_for(herring::miss::expired) == 0);
    CHECK(c.declined_for(herring::decline::overloaded) == 2);
    CHECK(c.refused() == 5);
    CHECK(c != herring::member_counters{});
    herring::frontend_counters f;
    f.ended[static_cast<std::size_t>(herring::outcome::busy)] = 7;
    CHECK(f.ended_as(herring::outcome::busy) == 7);
    CHECK(f.ended_as(herring::outcome::full) == 0);
    CHECK(f != herring::frontend_counters{});
}

} // namespace ensemble_counters_test

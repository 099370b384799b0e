// herring: tests of ensemble/guest.hpp: whom the door lets go first, and who has proved itself.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/guest.hpp"

#include "doctest/doctest.h"

namespace ensemble_guest_test {

using herring::detail::ensembles::guest;
using stage = guest::stage;

TEST_CASE("guest: the further it has come, the likelier it is a member; who has been told to go is before "
          "who was challenged") {
    int before = -1;
    for (stage const at : {stage::stranger, stage::ending, stage::challenged, stage::lane_proving}) {
        guest g;
        g.at = at;
        CHECK(g.likelihood() > before);
        before = g.likelihood();
    }
}

TEST_CASE("guest: proven is who was admitted, and is not on the way out") {
    for (stage const at : {stage::stranger, stage::challenged, stage::lane_proving, stage::admitted,
                           stage::up, stage::ending}) {
        guest g;
        g.at = at;
        CHECK(g.proven() == (at == stage::admitted || at == stage::up));
    }
}

TEST_CASE("guest: a new one is a stranger that nothing was promised") {
    guest const g;
    CHECK(!g.proven());
    CHECK(g.likelihood() == 0);
    CHECK(g.until == herring::time_point::max());
    CHECK(g.beat_at == herring::time_point::max());
}

} // namespace ensemble_guest_test

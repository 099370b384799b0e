// herring: tests of ensemble/acceptor_sockets.hpp: whom the acceptor lets go first, and who has proved itself.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/acceptor_sockets.hpp"

#include "doctest/doctest.h"

namespace ensemble_peer_connection_test {

using herring::detail::ensembles::peer_connection;
using stage = peer_connection::stage;

TEST_CASE("peer_connection: the further it has come, the likelier it is a member; who has been told to go is "
          "before "
          "who was challenged") {
    int before = -1;
    for (stage const at : {stage::unknown, stage::ending, stage::challenged, stage::lane_proving}) {
        peer_connection g;
        g.at = at;
        CHECK(g.likelihood() > before);
        before = g.likelihood();
    }
}

TEST_CASE("peer_connection: proven is who was admitted, and is not on the way out") {
    for (stage const at : {stage::unknown, stage::challenged, stage::lane_proving, stage::admitted, stage::up,
                           stage::ending}) {
        peer_connection g;
        g.at = at;
        CHECK(g.proven() == (at == stage::admitted || at == stage::up));
    }
}

TEST_CASE("peer_connection: a new one is a stranger that nothing was promised") {
    peer_connection const g;
    CHECK(!g.proven());
    CHECK(g.likelihood() == 0);
    CHECK(g.until == herring::time_point::max());
    CHECK(g.beat_at == herring::time_point::max());
}

} // namespace ensemble_peer_connection_test

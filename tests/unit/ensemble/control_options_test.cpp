// herring: tests of ensemble/control_options.hpp: what holds where nothing is given.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/control_options.hpp"

#include "doctest/doctest.h"

#include <chrono>

namespace ensemble_control_options_test {

using namespace std::chrono_literals;

TEST_CASE("control_options: heartbeats of 500 ms, lost after 5 s, pauses from 10 ms to 2 s, 64 pending "
          "connections") {
    herring::detail::ensembles::acceptor_options const options;
    CHECK(options.heartbeat == 500ms);
    CHECK(options.peer_timeout == 5s);
    CHECK(options.handshake_time == 2s);
    CHECK(options.pending == 64);
    CHECK(options.lanes == herring::lane::any);
    herring::detail::ensembles::dialler_options const dialler;
    CHECK(dialler.first_pause == 10ms);
    CHECK(dialler.last_pause == 2s);
    CHECK(dialler.handshake_time == 2s);
    herring::detail::ensembles::admission const told;
    CHECK(told.heartbeat == options.heartbeat);
    CHECK(told.peer_timeout == options.peer_timeout);
}

} // namespace ensemble_control_options_test

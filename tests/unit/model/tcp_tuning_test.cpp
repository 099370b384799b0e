// herring: tests of model/tunings.hpp: the defaults are ones that HRG-T10 and HRG-T11 take.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/tunings.hpp"

#include "doctest/doctest.h"

TEST_CASE("tcp_tuning: the defaults") {
    constexpr herring::transport::tcp_tuning usual;
    CHECK(usual.chunk_bytes >= 4096);
    CHECK(usual.window_bytes >= 2 * usual.chunk_bytes);
    CHECK(usual.loopback_window_bytes >= 2 * usual.loopback_chunk_bytes);
    CHECK(usual.connections == 1);
    CHECK(usual.control == herring::transport::congestion::unpaced);
}

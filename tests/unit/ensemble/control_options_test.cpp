// herring: tests of ensemble/control_options.hpp: what holds where nothing is given; what is a sink and what is none.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/control_options.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

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

namespace ensemble_control_sinks_test {

using namespace herring::detail::ensembles;

struct frontend {
    void admitted(peer_index, std::uint64_t, std::uint32_t, lane_ends&&) {}
    void draining(peer_index, std::uint64_t) {}
    void lost(peer_index, std::uint64_t, std::string_view) {}
    void refused(herring::admission_refusal, std::string_view) {}
    int local_memory() { return -1; }
};
struct member {
    void connected(std::size_t, admission const&, lane_ends&&) {}
    void disconnected(std::size_t, std::string_view) {}
    void refused(std::size_t, herring::failure const&) {}
    herring::detail::descriptor local_memory(std::size_t, admission const&) {
        return herring::detail::descriptor();
    }
};
struct forgets : frontend {
    void lost() = delete;
};

TEST_CASE("control_sinks: each end has its own") {
    CHECK(acceptor_sink<frontend>);
    CHECK(dialler_sink<member>);
    CHECK_FALSE(acceptor_sink<member>);
    CHECK_FALSE(dialler_sink<frontend>);
    CHECK_FALSE(acceptor_sink<forgets>);
}

} // namespace ensemble_control_sinks_test

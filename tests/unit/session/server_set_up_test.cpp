// herring: tests of session/server_set_up.hpp: the load of servers, in words, and the core of one.
// SPDX-License-Identifier: Apache-2.0
#include "herring/session/server_set_up.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"
#include "herring/launch.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/sharding/sharding.hpp"

#include <string>
#include <vector>

#include <sched.h>

using namespace herring;

TEST_CASE(
    "server_set_up: the load of a server is what it combines, and what comes in and goes out for that") {
    topology const map({0, 1, 2, 3}, {role::worker, role::worker, role::worker, role::server});
    plan const one = make_plan<fusion::whole_model, sharding::balanced, placement::dedicated>(
        std::vector<std::size_t>{1'000'000}, map, 4, 4, {.chunk_bytes = 4096, .window_bytes = 8192});
    CHECK(load_of(one, map, {0}) ==
          "server 0 of 1 (rank 3) combines 4000000 of 4000000 bytes a step (100.0 %), from 3 "
          "nodes: 12000000 bytes come in, 12000000 go out");
    topology const two({0, 1, 2}, {role::worker, role::server, role::server});
    plan const halves = make_plan<fusion::whole_model, sharding::balanced, placement::dedicated>(
        std::vector<std::size_t>{1'000'000}, two, 4, 4, {.chunk_bytes = 4096, .window_bytes = 8192});
    CHECK(load_of(halves, two, {1})
              .find("server 1 of 2 (rank 2) combines 2000000 of 4000000 bytes a step (50.0 %)") == 0);
}

TEST_CASE(
    "server_set_up: a server runs on the core of its options, and a core that there is not is an error") {
    launch_options options;
    options.roles = {role::worker, role::server};
    auto worlds = thread_worlds(2, options);
    ::cpu_set_t before;
    REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
    int core = 0;
    while (!CPU_ISSET(static_cast<std::size_t>(core), &before)) ++core;
    detail::pin_server(worlds[1], {.pin = core});
    ::cpu_set_t after;
    REQUIRE(::sched_getaffinity(0, sizeof after, &after) == 0);
    CHECK(CPU_COUNT(&after) == 1);
    CHECK(CPU_ISSET(static_cast<std::size_t>(core), &after));
    REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
    detail::pin_server(worlds[1], {});
    std::string what;
    try {
        detail::pin_server(worlds[1], {.pin = 1 << 20});
    } catch (error const& why) {
        what = why.what();
    }
    CHECK(what.find("serve_options::pin is 1048576") != std::string::npos);
    CHECK(worlds[0].failed() != nullptr); // the workers do not wait for it
}

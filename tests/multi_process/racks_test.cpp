// herring: real processes in racks: sums by two levels over real sockets and shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace herring;
using names = std::vector<std::string>;

namespace {

constexpr transport::tcp_tuning small{.loopback_chunk_bytes = 8_KiB,
                                      .loopback_window_bytes = 16_KiB,
                                      .one_hop_bytes = 2_KiB,
                                      .two_level_bytes = 1};
constexpr transport::tcp_tuning one_level{.loopback_chunk_bytes = 8_KiB,
                                          .loopback_window_bytes = 16_KiB,
                                          .one_hop_bytes = 2_KiB,
                                          .two_level_bytes = exchange_tuning::no_two_levels};

} // namespace

TEST_CASE("racks: two levels have the bits of one") {
    for (names const& nodes : {names{"a", "b", "c", "d"}, names{"a", "a", "b", "b", "c", "c", "d", "d"},
                               names{"a", "b", "c", "d", "e", "f"}}) {
        CAPTURE(nodes.size());
        launch_options options;
        options.nodes = nodes;
        options.timeout = std::chrono::seconds(120);
        std::size_t const in_rack = nodes.size() / 2;
        for (std::size_t r = 0; r < nodes.size(); ++r) options.racks.push_back(r < in_rack ? "x" : "y");
        CHECK(launch(
                  static_cast<int>(nodes.size()),
                  [](world& ranks) {
                      using shared = intra_node::shared_memory;
                      reducer<float, transport::basic_tcp<small>, shared, update::average> two(ranks);
                      reducer<float, transport::basic_tcp<one_level>, shared, update::average> one(ranks);
                      for (std::size_t const n : {513u, 20'000u, 300'001u}) {
                          std::vector<float> x(n);
                          for (std::size_t i = 0; i < n; ++i)
                              x[i] = static_cast<float>(
                                         (i * 31 + static_cast<std::size_t>(ranks.rank()) * 7919) % 100'003) *
                                     (i % 3 == 0 ? 0.001f : 1000.0f);
                          std::vector<float> y = x;
                          two.all_reduce(x);
                          one.all_reduce(y);
                          if (std::memcmp(x.data(), y.data(), n * sizeof(float)) != 0) return 2;
                      }
                      return to_string(two.plan()).find("two levels") == std::string::npos ? 4 : 0;
                  },
                  options) == 0);
    }
}

TEST_CASE("racks: a group of one rack has no uplink, and a group of several keeps it") {
    launch_options options;
    options.nodes = {"a", "b", "c", "d"};
    options.racks = {"x", "x", "y", "y"};
    ::setenv("HERRING_LINKS", "latency=1000,send=1000,receive=1000,rate=1000,uplink_rate=750", 1);
    int const ended = launch(
        4,
        [](world& ranks) {
            int sum = 0;
            for (int const colour : {ranks.topology().rack(ranks.node()), ranks.rank() % 2}) {
                world group = ranks.split(colour, ranks.rank());
                reducer<float, transport::tcp, update::sum> reduce(group);
                float x[] = {1};
                reduce.all_reduce(x);
                bool const has_uplink = to_string(reduce.plan()).find("uplink_rate=750") != std::string::npos;
                sum += x[0] == 2 && has_uplink == (group.topology().racks() == 2);
            }
            return sum == 2 ? 0 : 1;
        },
        options);
    ::unsetenv("HERRING_LINKS");
    CHECK(ended == 0);
}

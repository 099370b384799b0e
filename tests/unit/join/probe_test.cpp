// herring: tests of join/probe.hpp: medians, a pair over a real connection, and worlds of one host.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join/probe.hpp"

#include "doctest/doctest.h"

#include "herring/launch.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

using herring::links;
using herring::detail::probe_pair;
using herring::detail::steady_median;

TEST_CASE("probe: the median has two digits; samples that spread, or none, give nothing") {
    auto const median = [](std::vector<int> samples) { return steady_median(samples); };
    CHECK(median({}) == 0);
    CHECK(median({7}) == 7);
    CHECK(median({10'449, 1, 10'449, 10'449, 90'000'000}) == 10'000);
    CHECK(median({10'560, 10'560, 10'560}) == 11'000);
    CHECK(median({100, 100, 100, 201, 201}) == 0); // three quarters are more than twice a quarter
    CHECK(median({100, 100, 100, 200, 200}) == 100);
    CHECK(median({1'000'000'000, 999'999'999}) == 1'000'000'000);
}

TEST_CASE("probe: a pair measures within its time, or nothing where the other end is silent or leaves") {
    auto const pair_of = [](auto other) {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        timeval const patience{0, 100'000};
        ::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        std::thread answers(other, ends[1]);
        auto const found = probe_pair(ends[0], true, herring::clock::now() + std::chrono::milliseconds(100));
        ::shutdown(ends[0], SHUT_RDWR);
        answers.join();
        for (int const end : ends) ::close(end);
        return found;
    };
    auto const answered = pair_of([](int socket) { (void)probe_pair(socket, false, {}); });
    for (std::uint32_t const figure : answered) CHECK(figure <= 1'000'000'000);
    CHECK(pair_of([](int) {}) == std::array<std::uint32_t, 4>{});
    CHECK(pair_of([](int socket) { ::shutdown(socket, SHUT_RDWR); }) == std::array<std::uint32_t, 4>{});
    CHECK(pair_of([](int socket) {
              char byte = 1;
              while (::recv(socket, &byte, 1, 0) == 1) {
              }
          }) == std::array<std::uint32_t, 4>{});
}

TEST_CASE("probe: all ranks have the same links, and what is declared stays") {
    links const declared{.send_ns = 123, .rate_mbit = 25'000, .probe = true};
    std::vector<links> found(5);
    CHECK(herring::launch_threads(5,
                                  [&](herring::world& w) {
                                      found[static_cast<std::size_t>(w.rank())] =
                                          herring::detail::probe_links(w, declared);
                                  },
                                  {.nodes = {"a", "a", "b", "c", "d"}}) == 0);
    for (links const& one : found) {
        CHECK(one == found[0]);
        CHECK(one.send_ns == 123);
        CHECK(one.rate_mbit == 25'000);
        CHECK(one.probe);
    }
}

TEST_CASE("probe: a world of one node has nobody to measure with, and keeps what is declared") {
    CHECK(herring::launch_threads(2, [](herring::world& w) {
              links const declared{.rate_mbit = 10, .probe = true};
              if (!(herring::detail::probe_links(w, declared) == declared)) throw 1;
          }) == 0);
}

// herring: tests of transport/tcp/connections.hpp: who is at the other end of each connection.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp/connections.hpp"

#include "doctest/doctest.h"

#include "herring/launch.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

using namespace herring;
using namespace std::chrono_literals;

namespace {

struct label {
    int from, to, lane;
};

/// Each rank writes on every connection what it is; the other end reads the same of its peer.
int all_are_as_labelled(world& ranks, std::vector<int> const& peers, int lanes) {
    auto const own = static_cast<std::uint32_t>(100 + ranks.rank());
    detail::tcp_connections const connected = detail::connect_all(ranks, peers, lanes, own, 20s);
    if (connected.all.size() != peers.size() * static_cast<std::size_t>(lanes)) return 1;
    if (connected.rejected != 0) return 2;
    std::size_t at = 0;
    for (int const peer : peers)
        for (int lane = 0; lane < lanes; ++lane) {
            detail::tcp_connection const& c = connected.all[at++];
            if (c.incarnation != static_cast<std::uint32_t>(100 + peer)) return 3;
            if ((::fcntl(c.socket.get(), F_GETFL) & O_NONBLOCK) == 0) return 4;
            label const sent{ranks.rank(), peer, lane};
            if (::send(c.socket.get(), &sent, sizeof sent, MSG_NOSIGNAL) != sizeof sent) return 5;
        }
    at = 0;
    for (int const peer : peers)
        for (int lane = 0; lane < lanes; ++lane) {
            int const socket = connected.all[at++].socket.get();
            pollfd polled{socket, POLLIN, 0};
            if (::poll(&polled, 1, 20'000) != 1) return 6;
            label got{};
            if (::recv(socket, &got, sizeof got, 0) != sizeof got) return 7;
            if (got.from != peer || got.to != ranks.rank() || got.lane != lane) return 8;
        }
    ranks.barrier();
    return 0;
}

} // namespace

TEST_CASE("connect_all: connection i * lanes + lane leads to peer i, lane by lane") {
    for (int const lanes : {1, 3}) {
        std::atomic<int> wrong{0};
        CHECK(launch_threads(4, [&](world& ranks) {
                  std::vector<int> peers;
                  for (int r = 0; r < ranks.size(); ++r)
                      if (r != ranks.rank()) peers.push_back(r);
                  int const code = all_are_as_labelled(ranks, peers, lanes);
                  if (code != 0) wrong.store(code);
                  return 0;
              }) == 0);
        CHECK(wrong.load() == 0);
    }
}

TEST_CASE("connect_all: some pairs only, as ranks of two nodes have") {
    std::atomic<int> wrong{0};
    CHECK(launch_threads(4, [&](world& ranks) {
              int const code = all_are_as_labelled(ranks, {(ranks.rank() + 2) % 4}, 2);
              if (code != 0) wrong.store(code);
              return 0;
          }) == 0);
    CHECK(wrong.load() == 0);
}

TEST_CASE("connect_all: a rank without peers has no connections") {
    world alone;
    CHECK(detail::connect_all(alone, {}, 2, 0, 20s).all.empty());
}

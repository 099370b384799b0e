// herring: tests of session/session.hpp: its phases, its memory, and executions of a caller that has no steps.
// SPDX-License-Identifier: Apache-2.0
#include "herring/session/session.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/progress/progress.hpp"
#include "herring/reducer.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"
#include "herring/update/rules.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using namespace herring;
using transport::inproc;
using shared = intra_node::shared_memory;

namespace {

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error(what);
}

template <class... Policies>
using session_of = detail::session<resolve_t<float, inproc, update::sum, Policies...>>;

/// Two executions of the first bucket, by a session and nothing else.
template <class Session> void sums(world& ranks) {
    Session session(ranks, layout{{"a", 3000}, {"b", 5}});
    std::size_t const no_step = 0;
    session.connect();
    session.open(no_step);
    auto* const memory = reinterpret_cast<float*>(session.node().memory());
    bucket const& first = session.plan().buckets[0];
    for (int round = 1; round <= 2; ++round) {
        std::fill(memory, memory + first.elements, static_cast<float>(ranks.rank() + round));
        std::uint64_t const count = session.submit(detail::execution_of(
            first, session.plan().shards.data(), {.own = session.node().memory()}, 0, 1));
        require(count == static_cast<std::uint64_t>(round), "executions are counted");
        session.finish(count, clock::now() + std::chrono::seconds(20)).value();
        require(session.released() == count && session.requested() == count, "released");
        float const due = static_cast<float>(ranks.size() * (ranks.size() - 1) / 2 + ranks.size() * round);
        require(memory[0] == due && memory[first.elements - 1] == due, std::to_string(memory[0]));
    }
    require(session.failed() == nullptr, "no failure");
    require(session.counters().operations == 2, "operations");
}

launch_options two_nodes() {
    launch_options options;
    options.nodes = {"a", "a", "b", "b"};
    return options;
}

} // namespace

TEST_CASE("session: runs executions without a step, over every kind of world") {
    CHECK(launch_threads(1, sums<session_of<>>) == 0);
    CHECK(launch_threads(3, sums<session_of<>>) == 0);
    CHECK(launch_threads(3, sums<session_of<shared>>) == 0);
    CHECK(launch_threads(4, sums<session_of<shared>>, two_nodes()) == 0);
    CHECK(launch_threads(4, sums<session_of<shared, progress::thread>>, two_nodes()) == 0);
}

TEST_CASE("session: the memory map follows from the policies and the topology") {
    CHECK(launch_threads(2, [](world& ranks) {
              session_of<shared> joined(ranks, layout{{"a", 300'000}});
              joined.connect();
              require(joined.memory().tensors == memory_path::bounced, "tensors of a shared node");
              require(joined.memory().buffers == memory_path::bounced, "buffers of a shared node");
              require(joined.plan().buckets.size() > 1, "split");
              session_of<shared, progress::thread> background(ranks, layout{{"a", 300'000}});
              background.connect();
              require(background.memory().tensors == memory_path::copied, "tensors beside a thread");
              require(background.memory().region_bytes == joined.memory().region_bytes, "regions are alike");
              session_of<> apart(ranks, layout{{"a", 300'000}});
              apart.connect();
              require(apart.memory().tensors == memory_path::copied,
                      "tensors that other threads would touch");
              require(apart.memory().buffers == memory_path::in_place, "their buffers");
              require(apart.plan().buckets.size() == 1, "not split");
              using over_tcp = detail::session<resolve_t<float, transport::tcp, update::sum>>;
              over_tcp alone(ranks, layout{{"a", 300'000}});
              alone.connect();
              require(alone.memory().tensors == memory_path::in_place, "tensors of ranks that share nothing");
              ranks.barrier();
          }) == 0);
}

TEST_CASE("session: ranks that differ are told at connect, and who fails before is named by the others") {
    CHECK(launch_threads(3, [](world& ranks) {
              session_of<> session(ranks, layout{{"a", ranks.rank() == 2 ? 7u : 8u}});
              try {
                  session.connect();
                  require(false, "connected");
              } catch (error const& why) {
                  require(why.code() == errc::mismatch && why.peer() == (ranks.rank() == 2 ? 0 : 2),
                          why.what());
              }
          }) == 0);
    CHECK(launch_threads(2, [](world& ranks) {
              if (ranks.rank() == 1) {
                  try {
                      throw std::runtime_error("a policy of the program's");
                  } catch (...) {
                      try {
                          detail::announce_and_rethrow(ranks);
                      } catch (std::runtime_error const&) {
                      }
                  }
                  return;
              }
              try {
                  session_of<> session(ranks, layout{{"a", 8}});
                  session.connect();
                  require(false, "connected");
              } catch (error const& why) {
                  require(why.code() == errc::peer_failed && why.peer() == 1, why.what());
              }
          }) == 0);
}

TEST_CASE("session: is made once: neither copied nor moved") {
    CHECK_FALSE(std::is_copy_constructible_v<session_of<>>);
    CHECK_FALSE(std::is_move_constructible_v<session_of<>>);
}

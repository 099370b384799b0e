// herring: declared links over real sockets: whatever they choose, results have the bits of a reducer without them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace herring;

namespace {

using names = std::vector<std::string>;

/// Sums whose order shows in the bits.
float value(int rank, std::size_t i) {
    return 1.0f / static_cast<float>(1 + (i * 31 + static_cast<std::size_t>(rank) * 17) % 1009);
}

template <class Reducer> std::vector<float> results(world& ranks, std::string& text) {
    std::vector<std::size_t> const sizes{1, 300, 1025, 5000, 40'001, 200'000};
    Reducer reduce(ranks, layout::of(sizes));
    text = to_string(reduce.plan());
    std::vector<float> all;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        for (std::size_t k = 0; k < sizes[i]; ++k) reduce.tensor(i)[k] = value(ranks.rank(), k);
        reduce.ready(i);
    }
    reduce.wait();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        all.insert(all.end(), reduce.tensor(i).begin(), reduce.tensor(i).end());
        std::vector<float> buffer(sizes[i]);
        for (std::size_t k = 0; k < sizes[i]; ++k) buffer[k] = value(ranks.rank(), k);
        reduce.all_reduce(buffer);
        all.insert(all.end(), buffer.begin(), buffer.end());
    }
    return all;
}

/// Some links for every route and number of servers.
std::vector<links> various() {
    std::vector<links> all;
    for (std::uint32_t const message : {10u, 1'000u, 20'000u})
        for (std::uint32_t const latency : {100u, 100'000u})
            all.push_back(
                {.latency_ns = latency, .send_ns = message, .receive_ns = message, .rate_mbit = 10'000});
    all.push_back({.latency_ns = 1'000,
                   .send_ns = 2'000,
                   .receive_ns = 2'000,
                   .rate_mbit = 1'000,
                   .local_rate_mbit = 50'000,
                   .queue_bytes = 65'536});
    return all;
}

template <class Reducer> int same_bits(world& ranks) {
    std::string text;
    std::vector<float> const plain = results<Reducer>(ranks, text);
    if (text.find("links") != std::string::npos) return 1;
    for (links const& by : various()) {
        ranks.state().links = by;
        std::vector<float> const found = results<Reducer>(ranks, text);
        bool const told = (text.find("links " + to_string(by)) != std::string::npos) == (ranks.nodes() > 1);
        if (!told || found.size() != plain.size() ||
            std::memcmp(found.data(), plain.data(), plain.size() * sizeof(float)) != 0) {
            std::fprintf(stderr, "rank %d, links %s: %s; plan: %s\n", ranks.rank(), to_string(by).c_str(),
                         told ? "other bits" : "not in the plan's text", text.c_str());
            return 2;
        }
    }
    return 0;
}

template <class... Policies> int run(names nodes) {
    launch_options options;
    options.nodes = std::move(nodes);
    options.timeout = std::chrono::seconds(120);
    return launch(
        static_cast<int>(options.nodes.size()),
        [](world& ranks) {
            return same_bits<reducer<float, transport::tcp, update::sum, Policies...>>(ranks);
        },
        options);
}

} // namespace

TEST_CASE("links: over tcp, one rank a node, all that they choose has the same bits") {
    for (int const n : {2, 3, 5}) {
        names nodes;
        for (int r = 0; r < n; ++r) nodes.push_back(std::to_string(r));
        CAPTURE(n);
        CHECK(run<fusion::per_tensor>(nodes) == 0);
    }
}

TEST_CASE("links: the same on nodes of several ranks, even and uneven, and on one node") {
    CHECK(run<intra_node::shared_memory>({"a", "a", "b", "b", "c", "c"}) == 0);
    CHECK(run<intra_node::shared_memory>({"a", "b", "b", "c"}) == 0);
    CHECK(run<intra_node::shared_memory>({"a", "a"}) == 0);
}

TEST_CASE("links: launched ranks read HERRING_LINKS, and refuse an uplink without racks") {
    auto const with = [](char const* text, auto work) {
        ::setenv("HERRING_LINKS", text, 1);
        launch_options options;
        options.nodes = {"a", "b"};
        int const status = launch(2, work, options);
        ::unsetenv("HERRING_LINKS");
        return status;
    };
    CHECK(with("latency=2000,rate=40000", [](world& ranks) {
              return ranks.links() == links{.latency_ns = 2'000, .rate_mbit = 40'000} ? 0 : 1;
          }) == 0);
    CHECK(with("rate=40000,uplink_rate=10000", [](world& ranks) {
              try {
                  reducer<float, transport::tcp, update::sum> reduce(ranks, layout{{"one", 1}});
              } catch (error const& why) {
                  bool const said = std::strstr(why.what(), "no racks are declared") != nullptr;
                  return why.code() == errc::bad_argument && said ? 0 : 1;
              }
              return 2;
          }) == 0);
}

TEST_CASE(
    "links: a launch refuses what HERRING_LINKS must not be, before there are ranks, and keeps no memory") {
    auto const shared_maps = [] {
        std::ifstream maps("/proc/self/maps");
        std::size_t count = 0;
        for (std::string line; std::getline(maps, line);) count += line.find(" rw-s ") != line.npos;
        return count;
    };
    auto const refuses = [](auto start) {
        try {
            start();
        } catch (error const& why) {
            return why.code() == errc::bad_argument &&
                   std::strstr(why.what(), "HERRING_LINKS is 'junk'") != nullptr;
        }
        return false;
    };
    std::size_t const before = shared_maps();
    auto const live = herring::thread_worlds(2);
    CHECK(shared_maps() > before);
    ::setenv("HERRING_LINKS", "junk", 1);
    auto const none = [](world&) { return 0; };
    std::size_t const with_one = shared_maps();
    CHECK(refuses([&] { launch(2, none); }));
    CHECK(refuses([&] { herring::launch_threads(2, none); }));
    CHECK(refuses([&] { herring::thread_worlds(2); }));
    CHECK(shared_maps() == with_one);
    ::unsetenv("HERRING_LINKS");
}

// herring: groups of real processes reduce side by side: rows and columns of a grid, over every transport, as they must.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace herring;

namespace {

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error("not so: " + what);
}

/// What rank r of the whole world gives in a step, and what a group has to have of it: exact in any order.
std::int64_t value_of(int rank, int step, std::size_t i) {
    return (rank + 1) * (step + 3) + static_cast<std::int64_t>(i % 97) * (rank + 2);
}

template <class Reducer> void steps(Reducer& reduce, int mine, std::vector<int> const& members, int count) {
    for (int s = 0; s < count; ++s) {
        for (std::size_t t = 0; t < reduce.size(); ++t) {
            auto const tensor = reduce.tensor(t);
            for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = value_of(mine, s, i);
            reduce.ready(t);
        }
        reduce.wait();
        for (std::size_t t = 0; t < reduce.size(); ++t) {
            auto const tensor = reduce.tensor(t);
            for (std::size_t i = 0; i < tensor.size(); ++i) {
                std::int64_t expected = 0;
                for (int const r : members) expected += value_of(r, s, i);
                require(tensor[i] == expected, "element " + std::to_string(i) + " of step " +
                                                   std::to_string(s) + " is " + std::to_string(expected) +
                                                   ", not " + std::to_string(tensor[i]));
            }
        }
    }
}

layout const tensors{{"bias", 7}, {"empty", 0}, {"weight", 9'001}, {"head", 300}};

template <class Transport, class... More> using sums = reducer<std::int64_t, Transport, update::sum, More...>;

/// A grid of `columns`: rows and columns by turns, then in two threads at once, then groups of groups.
template <class Reducer> void grid(world& w, int columns) {
    int const r = w.rank(), first = r / columns * columns;
    std::vector<int> in_row, in_column, reversed;
    for (int c = 0; c < columns; ++c) in_row.push_back(first + c);
    for (int c = r % columns; c < w.size(); c += columns) in_column.push_back(c);
    world row = w.split(r / columns, r), column = w.split(r % columns, r);
    world pair = row.split(row.rank() / 2, -row.rank()); // neighbours in a row, the later one first
    Reducer by_row(row, tensors), by_column(column, tensors), whole(w, tensors), by_pair(pair, tensors);
    std::vector<int> all, neighbours;
    for (int each = 0; each < w.size(); ++each) all.push_back(each);
    for (int const each : in_row)
        if ((each - first) / 2 == (r - first) / 2) neighbours.push_back(each);
    for (int round = 0; round < 2; ++round) {
        steps(by_row, r, in_row, 2);
        steps(by_column, r, in_column, 2);
        steps(whole, r, all, 1);
        steps(by_pair, r, neighbours, 2);
    }
    std::string wrong;
    std::thread other([&] {
        try {
            steps(by_column, r, in_column, 4);
        } catch (std::exception const& why) {
            wrong = why.what();
        }
    });
    steps(by_row, r, in_row, 4);
    other.join();
    require(wrong.empty(), wrong);
}

launch_options on(std::vector<std::string> nodes) {
    launch_options options;
    options.nodes = std::move(nodes);
    options.timeout = std::chrono::seconds(120);
    return options;
}

/// Ranks that join from the processes of a launch, each on one of two nodes.
template <class Rank> int joined(int ranks, Rank const& rank, bool secret = false) {
    std::string const address = free_address();
    return launch(
        ranks,
        [&](world& launched) {
            join_options options;
            options.rank = launched.rank();
            options.size = ranks;
            options.address = address;
            options.node = launched.rank() % 4 < 2 ? "a" : "b";
            if (secret) options.secret = std::string(64, 'b');
            world w = join(options);
            rank(w);
        },
        on({}));
}

using shared = intra_node::shared_memory;

} // namespace

TEST_CASE("split: rows and columns of a grid reduce side by side") {
    std::vector<std::string> const nodes{"a", "a", "b", "b", "a", "a", "b", "b"};
    CHECK(launch(
              8, [](world& w) { grid<sums<transport::tcp, shared>>(w, 4); }, on(nodes)) == 0);
    CHECK(launch_threads(
              4, [](world& w) { grid<sums<transport::inproc, shared>>(w, 2); }, on({"a", "a", "b", "b"})) ==
          0);
    CHECK(joined(8, [](world& w) { grid<sums<transport::tcp, shared>>(w, 4); }) == 0);
    CHECK(joined(
              4, [](world& w) { grid<sums<transport::tcp, shared>>(w, 2); }, true) == 0);
}

TEST_CASE("split: many groups side by side are destroyed in any order, also before and behind their parent") {
    auto const play = [](world& given) {
        auto parent = std::make_unique<world>(std::move(given));
        int const r = parent->rank();
        std::vector<std::unique_ptr<world>> groups;
        for (int i = 0; i < 24; ++i)
            groups.push_back(
                std::make_unique<world>(parent->split(i % 5 == 4 && r == i % 4 ? -1 : (r + i) % 2)));
        // Each rank destroys some of its own accord; what all are to use stays with all.
        for (std::size_t i = static_cast<std::size_t>(r); i < groups.size(); i += 3) groups[i].reset();
        parent->barrier();
        world last = parent->split(0, -r);
        if (r % 2 == 0) parent.reset();
        groups.clear();
        sums<transport::tcp, shared> reduce(last, tensors);
        steps(reduce, r, {0, 1, 2, 3}, 2);
        parent.reset();
        steps(reduce, r, {0, 1, 2, 3}, 2);
    };
    CHECK(launch(4, play, on({})) == 0);
    CHECK(joined(4, play) == 0);
}

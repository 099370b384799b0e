// herring: every route gives what the rule says: lifted once, combined in the order of ranks and nodes, finished once.
// SPDX-License-Identifier: Apache-2.0
#include "rules_suite.hpp"

#include "conformance/small_transports.hpp"

#include "herring/launch.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"

#include <span>

using namespace rules;
using herring::conformance::small_inproc;

namespace {

constexpr std::size_t shapes_of_nodes = 13 / HERRING_TEST_PART; // the first four reach every route

template <class T, class Update, class... Policies> void every_route() {
    struct shape {
        names nodes, racks{};
    };
    // Racks are uneven, lie between each other, have one node, or one rank a node.
    shape const shapes[] = {{{"a", "b", "b", "c", "c", "c"}},
                            {{"a", "a", "a"}},
                            {{"a", "b", "b", "c", "c", "d"}, {"x", "y", "y", "x", "x", "y"}},
                            {{"a", "b", "c", "d", "e"}, {"x", "x", "y", "y", "z"}},
                            {{"a", "a"}},
                            {{"a"}},
                            {{"a", "b"}},
                            {{"a", "b", "c", "d"}},
                            {{"a", "a", "b"}},
                            {{"a", "a", "b", "b"}},
                            {{"a", "b", "c", "d"}, {"x", "x", "y", "y"}},
                            {{"a", "b", "c"}, {"x", "y", "z"}},
                            {{"a", "a", "b", "b", "c", "c"}, {"x", "x", "y", "y", "y", "y"}}};
    for (auto const& [nodes, racks] : std::span(shapes).first(shapes_of_nodes)) {
        launch_options options;
        options.nodes = nodes;
        options.racks = racks;
        std::string text;
        for (auto const& part : {nodes, racks})
            for (auto const& name : part) text += name;
        CAPTURE(text);
        auto const n = static_cast<int>(nodes.size());
        CHECK_NOTHROW(launch_threads(n, work<T, Update, small_inproc, Policies...>, options));
        CHECK_NOTHROW(launch_threads(n, work<T, Update, small_inproc, shared, Policies...>, options));
    }
}

} // namespace

TEST_CASE("rules: lifted once on every route") {
    every_route<double, counted>();
    every_route<bfloat16, mean_of_squares>();
    every_route<int, most_distant>();
}
TEST_CASE("rules: product and the logical ones") {
    every_route<unsigned, update::product>();
    every_route<long long, update::logical_and>();
    every_route<unsigned long, update::logical_or>();
}

TEST_CASE("rules: integers of 8 and 16 bits, and bool") {
    every_route<std::int8_t, update::sum>();
    every_route<std::uint16_t, update::product>();
    every_route<bool, update::logical_or>();
}

TEST_CASE("rules: structs, whatever their size, one by one") {
    every_route<triple, spread_out>();
    every_route<triple, counted_triples>();
    every_route<flags, spread_out>();
    every_route<wide_struct, spread_out, fusion::per_tensor>();
}
TEST_CASE("rules: numbers of other types, which are said to be elements") {
    every_route<char, update::sum>();
    every_route<long double, update::max>();
}
TEST_CASE("rules: a value with its index, statistics, complex numbers") {
    every_route<indexed<double>, update::min>();
    every_route<indexed<double>, update::max, progress::thread>();
    every_route<statistics<double>, update::sum>();
    every_route<std::complex<double>, update::average>();
    every_route<std::complex<double>, update::product>();
}

TEST_CASE("rules: ranks with different structs of one size are told so") {
    std::string text;
    try {
        launch_threads(2, [](world& ranks) {
            if (ranks.rank() == 0)
                reducer<triple, small_inproc, spread_out>{ranks};
            else
                reducer<other_triple, small_inproc, spread_out>{ranks};
        });
    } catch (error const& why) {
        text = why.what();
    }
    CHECK(text.find("mismatch") != std::string::npos);
    CHECK(text.find("triple") != std::string::npos);
}

TEST_CASE("rules: the quadratic mean of four ranks") {
    // 1, 4, 5 and 6.63: (1 + 16 + 25 + 44) / 4 is 21.5, whose root is 4.64.
    launch_options options;
    for (names const& nodes : {names{"a", "a", "a", "a"}, names{"a", "a", "b", "b"},
                               names{"a", "b", "c", "d"}, names{"a", "b", "b", "b"}}) {
        options.nodes = nodes;
        CHECK_NOTHROW(launch_threads(
            4,
            [](world& ranks) {
                reducer<double, small_inproc, shared, mean_of_squares> reduce(ranks);
                double const mine[] = {1, 4, 5, 6.6332495807108};
                double const mean = reduce.all_reduce(mine[ranks.rank()]);
                if (mean < 21.499 || mean > 21.501) throw std::runtime_error(std::to_string(mean));
            },
            options));
    }
}

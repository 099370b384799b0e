// herring: update::any between processes: rules mixed call by call; ranks that differ in the rule are told both.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/rules_suite.hpp"

#include "conformance/small_transports.hpp"

#include "herring/launch.hpp"
#include "herring/serve.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

using namespace rules;
using herring::conformance::small_tcp;

namespace {

using numbers = update::any<update::sum, update::average, update::min, update::max, update::product>;

launch_options on(names const& nodes) {
    launch_options options;
    options.nodes = nodes;
    options.timeout = std::chrono::seconds(120);
    return options;
}

/// The last rank calls by max, all others by min: each is told so, and names both rules.
template <class Reducer> int differ(world& ranks, std::size_t elements, bool scatters) {
    bool const last = ranks.worker() + 1 == ranks.workers();
    Reducer reduce(ranks);
    std::vector<float> x(elements, 1.0f), mine(reduce.owned(elements).elements);
    typename Reducer::pack::update::rule const by =
        last ? typename Reducer::pack::update::rule(update::max()) : update::min();
    status const ended = scatters ? reduce_scatter(reduce, x, mine, by, std::chrono::seconds(60))
                                  : reduce.all_reduce(x, by, std::chrono::seconds(60));
    std::string const text = ended.why().message();
    auto const says = [&](char const* what) { return text.find(what) != std::string::npos; };
    bool const right = ended.why().what == errc::mismatch && says("by max") && says("by min") &&
                       says(scatters ? "reduce_scatter" : "all_reduce");
    if (!right) std::fprintf(stderr, "rank %d of %zu elements: %s\n", ranks.rank(), elements, text.c_str());
    return right ? 0 : 1;
}

} // namespace

TEST_CASE("any between processes: rules mixed in one program") {
    for (names const& nodes :
         {names{"a", "a", "b", "b"}, names{"a", "b", "c", "d"}, names{"a", "a", "a", "a"}, names{"a", "a"}}) {
        auto const n = static_cast<int>(nodes.size());
        using work = listed<float, update::average, update::sum, update::max>;
        CHECK(launch(n, work::work<small_tcp, shared>, on(nodes)) == 0);
    }
}

TEST_CASE("any between processes: ranks that call by different rules are told both") {
    using reducing = reducer<float, small_tcp, shared, numbers>;
    for (names const& nodes : {names{"a", "b"}, names{"a", "a"}, names{"a", "a", "b"}})
        for (std::size_t const elements : {10u, 5000u, 100'000u})
            for (bool const scatters : {false, true}) {
                CAPTURE(nodes.size());
                CAPTURE(elements);
                CAPTURE(scatters);
                CHECK(launch(
                          static_cast<int>(nodes.size()),
                          [&](world& ranks) { return differ<reducing>(ranks, elements, scatters); },
                          on(nodes)) == 0);
            }
}

TEST_CASE("any between processes: workers that call servers by different rules are told both") {
    using served = reducer<float, small_tcp, shared, numbers, placement::dedicated>;
    launch_options options = on({"a", "b", "c"});
    options.roles = {role::worker, role::worker, role::server};
    auto const run = [](world& ranks) {
        if (ranks.role() == role::worker) return differ<served>(ranks, 1000, false);
        try {
            serve<served>(ranks, layout{});
        } catch (error const& why) {
            return why.code() == errc::mismatch ? 0 : 1;
        }
        return 1;
    };
    CHECK(launch(3, run, options) == 0);
}

TEST_CASE("any between processes: other rules, or another order of them, are told at construction") {
    auto const construct = [](world& ranks) {
        try {
            if (ranks.rank() == 0)
                reducer<float, small_tcp, update::any<update::sum, update::max>>{ranks};
            else
                reducer<float, small_tcp, update::any<update::max, update::sum>>{ranks};
        } catch (error const& why) {
            bool const named = std::string(why.what()).find("any<max, sum>") != std::string::npos;
            return why.code() == errc::mismatch && named ? 0 : 1;
        }
        return 1;
    };
    CHECK(launch(2, construct, on({"a", "b"})) == 0);
}

// herring: the member that programs have, over a stand-in for its engine.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/member.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace ensemble_member_test {

using namespace herring;
using namespace std::chrono_literals;
namespace ensembles = herring::detail::ensembles;

struct core {
    using job = int;
    core(std::size_t elements, std::size_t concurrency, ensembles::shape const&,
         ensembles::dialler_options const& to)
        : n(elements), at_once(concurrency), options(to) {}
    job next(std::chrono::nanoseconds timeout = 0ns) { return static_cast<int>(timeout.count()); }
    std::size_t elements() const { return n; }
    template <class Fill> std::size_t contribute(std::uint64_t, Fill&& fill) {
        row.resize(n);
        fill(std::span<float>(row));
        return 1;
    }
    std::size_t n, at_once;
    ensembles::dialler_options options;
    std::vector<float> row;
};

TEST_CASE("ensemble member: options reach the dialler; times of any unit, rows of the right size") {
    member_options const o = ensembles::checked(
        {.frontends = {"h:1"}, .name = "a", .replica = 2, .elements = 3, .concurrency = 4, .credits = 9});
    ensembles::basic_member<float, core> me(o, {});
    CHECK(me.core().options.name == "a");
    CHECK(me.core().options.replica == 2);
    CHECK(me.core().options.credits == 9);
    CHECK(me.core().at_once == 4);
    CHECK(me.next(2us) == 2000);
    CHECK(me.next() == 0);
    float const row[] = {1, 2, 3};
    CHECK(me.contribute(1, row) == 1);
    CHECK(me.core().row == std::vector<float>{1, 2, 3});
    CHECK(me.contribute(1, [](std::span<float> to) { to[2] = 9; }) == 1);
    CHECK(me.core().row[2] == 9);
    CHECK_THROWS_AS((void)me.contribute(1, std::span<float const>(row, 2)), error);
    CHECK_THROWS_AS((void)ensembles::checked({}), error);
}

} // namespace ensemble_member_test

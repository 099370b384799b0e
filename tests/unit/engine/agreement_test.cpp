// herring: tests of engine/agreement.hpp: who differs is named, with both values.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/agreement.hpp"

#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <string_view>

using namespace herring;

TEST_CASE("agreement: the first line that differs, from either side") {
    auto const [mine, theirs] = detail::declaration::difference("a=1\nb=2\n", "a=1\nb=3\n");
    CHECK(mine == "b=2");
    CHECK(theirs == "b=3");
    auto const [more, less] = detail::declaration::difference("a=1\nb=2\n", "a=1\n");
    CHECK(more == "b=2");
    CHECK(less.empty());
}

TEST_CASE("agreement: every rank hears which rank differs and in what") {
    std::atomic<int> named{0};
    launch_threads(3, [&](world& ranks) {
        detail::declaration const mine =
            detail::declare("float", {}, true, plan{}, layout{{"w", 10}, {"b", ranks.rank() == 2 ? 3u : 4u}});
        try {
            detail::agree(ranks, mine, std::chrono::seconds(10));
        } catch (error const& differs) {
            std::string_view const text = differs.what();
            bool const whom = differs.peer() == (ranks.rank() == 2 ? 0 : 2);
            if (differs.code() == errc::mismatch && whom && text.find("b of 3") != text.npos &&
                text.find("b of 4") != text.npos)
                ++named;
        }
    });
    CHECK(named == 3);
}

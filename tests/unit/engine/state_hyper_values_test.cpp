// herring: tests of the hyper values in engine/state.hpp: hyper values as text, and how two ranks' differ.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/state.hpp"

#include "doctest/doctest.h"

#include <array>
#include <string>

using herring::detail::hyper_values;

namespace {

constexpr std::array<char const*, 2> members{"rate", nullptr};

std::string difference(hyper_values const& own, char const* listed) {
    char text[160] = "";
    return own.compare(text, listed, 1, 2) ? text : "";
}

} // namespace

TEST_CASE("hyper_values: as many are listed as there is room for") {
    std::array<double, 4> const values{0.001, -2, 1, 65536};
    hyper_values const of{values, members};
    char text[32];
    CHECK(of.list(text, sizeof text) == 16);
    CHECK(std::string(text) == "0.001 -2 1 65536");
    CHECK(of.list(text, 16) == 10); // one more would be cut
    CHECK(std::string(text) == "0.001 -2 1");
    CHECK(hyper_values{}.list(text, sizeof text) == 0);
}

TEST_CASE("hyper_values: the first that differs is named, with both ranks' values") {
    std::array<double, 4> const values{0.001, -2, 0, 65536};
    hyper_values const one{values, members};
    CHECK(difference(one, "0.001 -2 0 65536").empty());
    CHECK(difference(one, "0.5 -2 0 65536") == "hyper::rate is 0.5 on rank 1 and 0.001 on rank 2");
    CHECK(difference(one, "0.001 2 0") == "member 1 of hyper is 2 on rank 1 and -2 on rank 2");
    CHECK(difference(one, "0.001 -2 1") ==
          "whether group 0 is frozen (0 or 1) is 1 on rank 1 and 0 on rank 2");
    CHECK(difference(one, "0.001 -2 0 1; more") == "the loss scale is 1 on rank 1 and 65536 on rank 2");
    std::array<double, 7> const two_groups{0.001, -2, 0, 0.5, 3, 0, 1};
    CHECK(difference({two_groups, members}, "0.001 -2 0 0.25 3 0 1") ==
          "hyper::rate of group 1 is 0.25 on rank 1 and 0.5 on rank 2");
}

TEST_CASE("hyper_values: a list that ends early, or is none, is compared as far as it goes") {
    std::array<double, 4> const values{0.001, -2, 0, 65536};
    hyper_values const of{values, members};
    CHECK(difference(of, "").empty());
    CHECK(difference(of, "0.001").empty());
    CHECK(difference(of, "0.001 -2 0 65536 7").empty()); // more than there are
    std::string const long_word(300, 'x');
    CHECK(difference(of, long_word.c_str()) ==
          "hyper::rate is " + std::string(24, 'x') + " on rank 1 and 0.001 on rank 2");
}

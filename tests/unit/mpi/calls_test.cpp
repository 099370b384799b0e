// herring: tests of mpi/calls.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/mpi/calls.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

using namespace herring::detail;

TEST_CASE("calls: each has a name, by rule and type") {
    CHECK(std::string(mpi_call_name(mpi_call_number<int>(mpi_rule::sum))) == "sum of int");
    CHECK(std::string(mpi_call_name(mpi_call_number<long>(mpi_rule::min))) == "min of long");
    CHECK(std::string(mpi_call_name(mpi_call_number<long long>(mpi_rule::max))) == "max of long long");
    CHECK(std::string(mpi_call_name(mpi_call_number<float>(mpi_rule::sum))) == "sum of float");
    CHECK(std::string(mpi_call_name(mpi_call_number<double>(mpi_rule::min))) == "min of double");
    CHECK(std::string(mpi_call_name(mpi_call_number<int>(mpi_rule::minloc))) == "minloc of int");
    CHECK(std::string(mpi_call_name(mpi_call_number<double>(mpi_rule::maxloc))) == "maxloc of double");
}

namespace ordered_words_test {

/// Of numbers in ascending order: their words ascend, complemented ones descend, and all come back.
template <class Element> void check_order(std::vector<Element> const& ascending) {
    using order = herring::detail::mpi_ordered<Element>;
    for (std::size_t i = 0; i < ascending.size(); ++i) {
        CHECK(order::value(order::word(ascending[i], false), false) == ascending[i]);
        CHECK(order::value(order::word(ascending[i], true), true) == ascending[i]);
        if (i == 0) continue;
        CHECK(order::word(ascending[i - 1], false) < order::word(ascending[i], false));
        CHECK(order::word(ascending[i - 1], true) > order::word(ascending[i], true));
    }
}
template <class Element> std::vector<Element> floating() {
    using is = std::numeric_limits<Element>;
    return {-is::infinity(),  is::lowest(), Element(-1.5), -is::min(), -is::denorm_min(), Element(0),
            is::denorm_min(), is::min(),    Element(1.5),  is::max(),  is::infinity()};
}
template <class Element> std::vector<Element> integers() {
    using is = std::numeric_limits<Element>;
    return {is::min(), is::min() + 1, -1, 0, 1, is::max() - 1, is::max()};
}

} // namespace ordered_words_test

using namespace ordered_words_test;

TEST_CASE("ordered_words: the order of numbers, both ways, and the numbers again") {
    check_order(floating<float>());
    check_order(floating<double>());
    check_order(integers<int>());
    check_order(integers<long>());
    check_order(integers<long long>());
}

TEST_CASE("ordered_words: no number has the word of what is no number, which is the greatest both ways") {
    using order = herring::detail::mpi_ordered<double>;
    double const nan = std::numeric_limits<double>::quiet_NaN();
    for (bool const complemented : {false, true}) {
        CHECK(order::word(nan, complemented) == order::largest);
        CHECK(order::value(order::largest, complemented) != order::value(order::largest, complemented));
        for (double const x : floating<double>()) CHECK(order::word(x, complemented) < order::largest);
    }
}

TEST_CASE("ordered_words: of pairs the better value wins, then the lower index, and the pair comes back") {
    using pairs = herring::detail::mpi_ordered_pair<double>;
    double const nan = std::numeric_limits<double>::quiet_NaN();
    int const least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
    for (bool const complemented : {false, true}) {
        auto const word = [&](double x, int index) { return pairs::word(x, index, complemented); };
        auto const first = [&](double x, int i, double y, int j) {
            auto const best = greatest(word(x, i), word(y, j));
            CHECK(best == greatest(word(y, j), word(x, i)));
            return best == word(x, i);
        };
        CHECK(first(complemented ? 1 : 2, 9, complemented ? 2 : 1, 0));
        CHECK(first(1, least, 1, most));
        CHECK(first(nan, 4, 1, 0));
        CHECK(first(nan, 3, nan, 4));
        CHECK(first(-0.0, 3, 0.0, 4));
        CHECK(first(0.0, 3, -0.0, 4));
        for (int const index : {least, -1, 0, 1, most})
            for (double const x : {-0.0, 0.0, -1.5, std::numeric_limits<double>::infinity()}) {
                CHECK(pairs::index(word(x, index)) == index);
                CHECK(1 / pairs::value(word(x, index), complemented) == 1 / x);
            }
    }
}

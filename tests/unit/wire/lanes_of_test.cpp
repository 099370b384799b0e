// herring: tests of wire/codecs.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/codecs.hpp"

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "doctest/doctest.h"

namespace lanes_of_test {

template <class> struct as_double { using type = double; };
using lanes = herring::wire::lanes_of<as_double>; // of rows of doubles only
static_assert(lanes::supports<double> && !lanes::supports<float> && lanes::bytes<double>(3) == 24);

TEST_CASE("lanes_of: at any alignment, a NaN as the canonical one") {
    std::vector<double> row(21);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<double>(i) - 5;
    row[3] = -std::numeric_limits<double>::quiet_NaN();
    std::vector<std::byte> bytes(lanes::bytes<double>(21) + 1);
    std::vector<double> back(21);
    lanes::encode<double>(row, std::span(bytes).subspan(1));
    lanes::decode<double>(std::span<std::byte const>(bytes).subspan(1), back);
    for (std::size_t i = 0; i < row.size(); ++i) CHECK((i == 3 ? back[i] != back[i] : back[i] == row[i]));
}

} // namespace lanes_of_test

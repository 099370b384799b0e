// herring: tests of wire/codecs.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/codecs.hpp"

#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "doctest/doctest.h"

namespace as_is_test {

using herring::wire::as_is;
static_assert(std::is_empty_v<as_is> && as_is::facts.exact && as_is::name == std::string_view("as_is"));
static_assert(as_is::bytes<double>(10) == 80 && as_is::bytes<herring::bfloat16>(10) == 20);
static_assert(!herring::wire_supports<as_is, int>);

TEST_CASE("as_is: every bit comes back, but those of a NaN") {
    std::vector<float> const row{
        0.0f, -0.0f, 1e-45f, 3.4e38f, -1.5f, 7, std::numeric_limits<float>::infinity()};
    std::vector<std::byte> bytes(as_is::bytes<float>(row.size()));
    std::vector<float> back(row.size());
    as_is::encode<float>(row, bytes);
    as_is::decode<float>(bytes, back);
    CHECK(std::memcmp(row.data(), back.data(), bytes.size()) == 0);
}

} // namespace as_is_test

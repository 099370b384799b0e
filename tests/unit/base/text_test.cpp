// herring: tests of base/text.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/text.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

using herring::detail::append;
using herring::detail::text;

TEST_CASE("text: texts and numbers in the order given") {
    std::string const name = "weights";
    CHECK(text({"tensor ", 3, " of ", std::string_view(name).substr(0, 4), " ", name}) ==
          "tensor 3 of weig weights");
    CHECK(text({}).empty());
    CHECK(text({""}).empty());
}

TEST_CASE("text: whole numbers to their limits") {
    CHECK(text({0}) == "0");
    CHECK(text({-1}) == "-1");
    CHECK(text({10}) == "10");
    CHECK(text({std::numeric_limits<std::uint64_t>::max()}) == "18446744073709551615");
    CHECK(text({std::numeric_limits<std::int64_t>::min()}) == "-9223372036854775808");
    CHECK(text({std::numeric_limits<std::int32_t>::min()}) == "-2147483648");
    CHECK(text({std::int16_t{-300}, ",", std::uint8_t{200}}) == "-300,200");
}

TEST_CASE("append: adds to the end") {
    std::string line = "rank";
    append(line, {" ", 7, ":"});
    CHECK(line == "rank 7:");
    append(line, {});
    CHECK(line == "rank 7:");
}

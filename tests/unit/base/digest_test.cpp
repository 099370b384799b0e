// herring: digests tell things apart and stay what they are.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/digest.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "doctest/doctest.h"

using herring::detail::digest;

// Written down, so that a change of the algorithm cannot pass unseen: ranks of two builds compare these.
static_assert(digest{}.value() == 0xefd0'1f60'ba99'2926u);
static_assert(digest{}.add(1).value() != digest{}.add(2).value());
static_assert(digest{}.add("fc.weight").add(4096u).value() ==
              digest{}.add(std::string_view("fc.weight")).add(4096L).value());

TEST_CASE("order, lengths and boundaries count") {
    auto const of = [](auto const&... parts) {
        digest made;
        (made.add(parts), ...);
        return made.value();
    };
    CHECK(of("ab", "c") != of("a", "bc"));
    CHECK(of("ab") != of("a", "b"));
    CHECK(of(1, 2) != of(2, 1));
    CHECK(of("") != of());
    CHECK(of(0) != of());
    CHECK(of(0, 0) != of(0));
    CHECK(of("a\0b") == of("a")); // a C string ends there
    CHECK(of(std::string("a\0b", 3)) != of("a"));
    CHECK(of(std::string(8, 'x')) != of(std::string(9, 'x')));
    CHECK(of(-1) == of(std::int64_t{-1}));
    CHECK(digest(1).value() != digest(2).value());
    CHECK(digest{}.add_all(std::vector<int>{1, 2}).add_all(std::vector<int>{3}).value() !=
          digest{}.add_all(std::vector<int>{1}).add_all(std::vector<int>{2, 3}).value());
}

TEST_CASE("a stream may be looked at and go on") {
    digest made;
    made.add("layout").add(7);
    auto const once = made.value();
    CHECK(made.value() == once);
    CHECK(made.add(8).value() != once);
    CHECK(made.value() == digest{}.add("layout").add(7).add(8).value());
}

TEST_CASE("small inputs do not meet") {
    std::vector<std::uint64_t> all;
    for (int a = 0; a < 300; ++a)
        for (int b = 0; b < 300; ++b) all.push_back(digest{}.add(a).add(b).value());
    for (int a = 0; a < 100'000; ++a) all.push_back(digest{}.add(std::to_string(a)).value());
    std::sort(all.begin(), all.end());
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

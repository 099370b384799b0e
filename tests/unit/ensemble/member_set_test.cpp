// herring: tests of ensemble/member_set.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/member_set.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <type_traits>
#include <vector>

namespace member_set_test {

using herring::member_set;

std::vector<std::size_t> members(member_set const& of) {
    std::vector<std::size_t> all;
    of.for_each([&](std::size_t m) { all.push_back(m); });
    return all;
}

static_assert(std::is_trivially_copyable_v<member_set> && sizeof(member_set) == 128);
static_assert(member_set{0, 3}.count() == 2 && member_set{0, 3}.word(0) == 9);

TEST_CASE("member_set: what is put in is in, in ascending order") {
    member_set s;
    CHECK(s.empty());
    for (std::size_t const m : {std::size_t{1023}, std::size_t{0}, std::size_t{64}, std::size_t{63}})
        s.insert(m);
    s.insert(64);
    CHECK(members(s) == std::vector<std::size_t>{0, 63, 64, 1023});
    CHECK(s.count() == 4);
    CHECK(s.contains(63));
    CHECK_FALSE(s.contains(62));
    CHECK(s.word(0) == (std::uint64_t{1} | std::uint64_t{1} << 63));
    CHECK(s.word(1) == 1);
    CHECK(s.word(15) == std::uint64_t{1} << 63);
    CHECK(s.word(16) == 0);
    s.erase(63);
    s.erase(62);
    CHECK(s == member_set{0, 64, 1023});
    s.clear();
    CHECK(s.empty());
    CHECK(s == member_set());
}

TEST_CASE("member_set: union, intersection, difference") {
    member_set const a{0, 1, 100}, b{1, 2, 100, 1000};
    CHECK((a | b) == member_set{0, 1, 2, 100, 1000});
    CHECK((a & b) == member_set{1, 100});
    CHECK((a - b) == member_set{0});
    CHECK((b - a) == member_set{2, 1000});
    CHECK((a - a).empty());
}

TEST_CASE("member_set: the first n") {
    for (std::size_t const n : {0u, 1u, 63u, 64u, 65u, 128u, 1000u, 1023u, 1024u, 5000u}) {
        member_set const s = member_set::first(n);
        std::size_t const in = n < member_set::capacity ? n : member_set::capacity;
        CHECK(s.count() == in);
        CHECK((in == 0 || s.contains(in - 1)));
        CHECK_FALSE(s.contains(in));
    }
}

TEST_CASE("member_set: a member beyond its capacity is refused, and is in no set") {
    member_set s;
    CHECK_THROWS_WITH_AS(
        s.insert(1024),
        "herring: member_set: bad argument: member 1024 is beyond the 1024 that a roster may have",
        herring::error);
    CHECK_THROWS_AS((member_set{1, 9999}), herring::error);
    s.erase(9999);
    CHECK_FALSE(s.contains(1024));
    CHECK_FALSE(s.contains(static_cast<std::size_t>(-1)));
    CHECK(s.empty());
}

} // namespace member_set_test

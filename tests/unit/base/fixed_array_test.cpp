// herring: tests of base/fixed_array.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/fixed_array.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

using herring::detail::fixed_array;

namespace {

struct counted_element {
    static inline int alive = 0;
    counted_element() { ++alive; }
    ~counted_element() { --alive; }
    int value = 7;
};

} // namespace

TEST_CASE("fixed_array: elements are value-initialised, and in order") {
    fixed_array<int> numbers(3);
    CHECK(numbers.size() == 3);
    CHECK_FALSE(numbers.empty());
    for (int const number : numbers) CHECK(number == 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i) + 1;
    fixed_array<int> const& same = numbers;
    CHECK(same.data()[0] == 1);
    CHECK(same[2] == 3);
    CHECK(same.end() - same.begin() == 3);
}

TEST_CASE("fixed_array: an empty array has no elements") {
    fixed_array<int> const none;
    CHECK(none.empty());
    CHECK(none.begin() == none.end());
    fixed_array<int> const zero(0);
    CHECK(zero.empty());
    CHECK(zero.begin() == zero.end());
}

TEST_CASE("fixed_array: elements end with their owner, and once") {
    {
        fixed_array<counted_element> first(2), second(3);
        CHECK(counted_element::alive == 5);
        counted_element* const of_second = second.data();
        first = std::move(second);
        CHECK(first.size() == 3);
        CHECK(first.data() == of_second);
        CHECK(counted_element::alive == 5); // assignment swaps
        fixed_array<counted_element> third(std::move(first));
        CHECK(third.data() == of_second);
        CHECK(first.empty());
        CHECK(counted_element::alive == 5);
    }
    CHECK(counted_element::alive == 0);
}

TEST_CASE("fixed_array: it moves, and is not copied") {
    CHECK(std::is_nothrow_move_constructible_v<fixed_array<int>>);
    CHECK(std::is_nothrow_move_assignable_v<fixed_array<int>>);
    CHECK_FALSE(std::is_copy_constructible_v<fixed_array<int>>);
    CHECK_FALSE(std::is_copy_assignable_v<fixed_array<int>>);
}

TEST_CASE("pile: values stay in order, within the room that was made and beyond it") {
    for (std::size_t const room : {0u, 3u, 100u}) {
        herring::detail::append_buffer<int> pile(room);
        std::vector<int> twin;
        int const* const before = pile.begin();
        for (int i = 0; i < 50; ++i) {
            CHECK(pile.empty() == twin.empty());
            pile.push(i * i);
            twin.push_back(i * i);
            REQUIRE(std::equal(pile.begin(), pile.end(), twin.begin(), twin.end()));
        }
        CHECK((pile.begin() == before) == (room >= 50));
        pile.clear();
        CHECK(pile.empty());
    }
}

TEST_CASE("double pile: what is pushed while it is handed out comes the next time") {
    herring::detail::drain_buffer<int> pile(2);
    std::vector<int> seen;
    auto take = [&](int value) {
        seen.push_back(value);
        if (value < 3) pile.push(value + 10);
    };
    CHECK(pile.hand_out(take) == 0);
    for (int i = 0; i < 5; ++i) pile.push(i);
    CHECK(pile.hand_out(take) == 5);
    CHECK(seen == std::vector{0, 1, 2, 3, 4});
    CHECK_FALSE(pile.empty());
    CHECK(pile.hand_out(take) == 3);
    CHECK(seen == std::vector{0, 1, 2, 3, 4, 10, 11, 12});
    CHECK(pile.empty());
}

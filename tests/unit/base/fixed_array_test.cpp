// herring: tests of base/fixed_array.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/fixed_array.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <type_traits>
#include <utility>

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

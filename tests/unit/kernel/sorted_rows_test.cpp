// herring: tests of kernel/sorted_rows.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/sorted_rows.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "doctest/doctest.h"

namespace sorted_rows_test {

typedef float four __attribute__((vector_size(16)));

TEST_CASE("sorted rows: all orders of zeroes and ones, which is all orders") {
    // A network that sorts every list of zeroes and ones sorts everything (Knuth, 5.3.4).
    for (std::size_t count = 0; count <= 12; ++count)
        for (unsigned bits = 0; bits < 1u << count; ++bits) {
            std::vector<float> rows(count);
            for (std::size_t i = 0; i < count; ++i) rows[i] = static_cast<float>(bits >> i & 1);
            herring::kernel::sort_rows(std::span(rows));
            bool const sorted = std::is_sorted(rows.begin(), rows.end());
            auto const ones = static_cast<unsigned>(std::count(rows.begin(), rows.end(), 1.0f));
            if (!sorted || ones != static_cast<unsigned>(__builtin_popcount(bits))) {
                CAPTURE(count);
                CAPTURE(bits);
                CHECK(sorted);
                CHECK(ones == static_cast<unsigned>(__builtin_popcount(bits)));
            }
        }
}

TEST_CASE("sorted rows: each lane by itself, infinities too") {
    float const infinite = std::numeric_limits<float>::infinity();
    for (std::size_t const count : {2u, 5u, 8u, 11u}) {
        std::vector<four> rows(count);
        std::vector<std::vector<float>> columns(4);
        std::uint32_t seed = 7;
        for (four& row : rows)
            for (int lane = 0; lane < 4; ++lane) {
                seed = seed * 1664525u + 1013904223u;
                row[lane] = seed % 5 == 0 ? -infinite : static_cast<float>(seed >> 20);
                columns[static_cast<std::size_t>(lane)].push_back(row[lane]);
            }
        herring::kernel::sort_rows(std::span<four>(rows));
        for (int lane = 0; lane < 4; ++lane) {
            auto& due = columns[static_cast<std::size_t>(lane)];
            std::sort(due.begin(), due.end());
            for (std::size_t i = 0; i < count; ++i) CHECK(float(rows[i][lane]) == due[i]);
        }
    }
}

} // namespace sorted_rows_test

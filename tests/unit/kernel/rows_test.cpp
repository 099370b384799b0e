// herring: tests of kernel/rows.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/rows.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "doctest/doctest.h"

namespace rows_test {

using herring::bfloat16;
using herring::float16;
namespace kernel = herring::kernel;

std::byte const* bytes_of(void const* from) { return static_cast<std::byte const*>(from); }

template <class T> void check_extremes() {
    using number = herring::accumulator<T>;
    number const infinite = std::numeric_limits<number>::infinity();
    for (std::size_t const count : {1u, 2u, 15u, 16u, 17u, 32u, 33u, 100u})
        for (std::size_t const at : {std::size_t{0}, count / 2, count - 1}) {
            std::vector<T> row(count, static_cast<T>(number(-2)));
            row[at] = static_cast<T>(number(-1));
            auto found = kernel::extremes_of(row.data(), count);
            CHECK(!found.has_nan);
            CHECK(found.largest == -1);
            CHECK(found.largest_magnitude == (count == 1 ? 1 : 2));
            CHECK(kernel::index_of_largest(row.data(), count) == at);
            row.assign(count, static_cast<T>(number(3)));
            CHECK(kernel::index_of_largest(row.data(), count) == 0); // ties
            row[at] = static_cast<T>(-infinite);
            found = kernel::extremes_of(row.data(), count);
            CHECK(found.largest_magnitude == infinite);
            CHECK(found.largest == (count == 1 ? -infinite : 3));
            row[at] = static_cast<T>(std::numeric_limits<number>::quiet_NaN());
            CHECK(kernel::extremes_of(row.data(), count).has_nan);
            CHECK(kernel::index_of(row.data(), count, number(9)) == count);
        }
}
TEST_CASE("rows: extremes and where they are") {
    check_extremes<float>();
    check_extremes<double>();
    check_extremes<bfloat16>();
    check_extremes<float16>();
}

TEST_CASE("rows: which bits of 16 a lane may have") {
    kernel::lane_limits<bfloat16> const finite{0x7f7f, 0x7f7f}, unit{0x3f80, -1}, logits{0, 0x7f80};
    for (unsigned bits = 0; bits < 0x1'0000; ++bits) {
        std::vector<std::uint16_t> row(21);
        row[bits % 21] = static_cast<std::uint16_t>(bits);
        auto const x = static_cast<float>(__builtin_bit_cast(bfloat16, row[bits % 21]));
        bool const negative_zero = bits == 0x8000;
        bool const good =
            kernel::within(bytes_of(row.data()), 21, finite) == std::isfinite(x) &&
            kernel::within(bytes_of(row.data()), 21, unit) == (x >= 0 && x <= 1 && !negative_zero) &&
            kernel::within(bytes_of(row.data()), 21, logits) == (x <= 0);
        if (!good) CHECK(bits == 0xffff'ffffu); // says which
    }
}

TEST_CASE("rows: a sum has its order from the index") {
    // A number that swallows others: the sum says with which it was added first.
    for (std::size_t const at : {0u, 5u, 31u, 47u}) {
        std::vector<float> row(64, 1.0f);
        row[at] = 3e7f;
        kernel::lane_sum sum;
        for (std::size_t i = 0; i < 64; i += kernel::block<float>::size)
            sum.add(kernel::load_row<float>(bytes_of(row.data() + i), kernel::block<float>::size));
        float lanes[16] = {};
        for (std::size_t i = 0; i < 64; ++i) lanes[i % 16] += row[i];
        for (std::size_t half = 8; half > 0; half /= 2)
            for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
        CHECK(sum.total() == lanes[0]);
    }
}

TEST_CASE("rows: the end of a row") {
    std::vector<float> row(40, 2.0f), out(40, -1.0f);
    for (std::size_t count = 0; count < kernel::block<float>::size; ++count) {
        auto const x = kernel::load_row<float>(bytes_of(row.data()), count, 7.0f);
        float all[kernel::block<float>::size];
        x.store_wide(all);
        for (std::size_t i = 0; i < kernel::block<float>::size; ++i)
            CHECK(all[i] == (i < count ? 2.0f : 7.0f));
        out.assign(40, -1.0f);
        kernel::store_row(out.data(), x, count);
        CHECK(out[count] == -1.0f);
    }
}

} // namespace rows_test

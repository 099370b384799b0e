// herring: tests of checkpoint/file.hpp: tables come back, hostile ones do not, and ranges cover tensors once.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint/file.hpp"

#include "doctest/doctest.h"

#include "herring/base/codec.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace file_table_test {

namespace checkpoints = herring::detail::checkpoints;
using checkpoints::file_table;
using checkpoints::tensor_range;

bool covers(std::vector<tensor_range> ranges, std::initializer_list<std::uint64_t> tensors) {
    std::vector<std::uint64_t> const elements(tensors);
    return checkpoints::cover_once(ranges, elements);
}
constexpr std::uint64_t huge = ~std::uint64_t{0};

} // namespace file_table_test

using namespace file_table_test;

TEST_CASE("file_table: it comes back, and nothing shorter or longer does") {
    for (file_table const& sound : {file_table{}, file_table{{{1, 2, 3}, {huge, huge, huge}}, {}},
                                    file_table{{{4, 5, 6}}, {7, 0xffffffff}}}) {
        auto const bytes = checkpoints::write_table(sound);
        CHECK(bytes.size() == 16 + 24 * sound.ranges.size() + 4 * sound.blocks.size());
        file_table again;
        CHECK(checkpoints::read_table(bytes, again));
        CHECK(again == sound);
        std::vector<std::byte> all(bytes.begin(), bytes.end());
        for (std::size_t size = 0; size < all.size(); ++size)
            CHECK(!checkpoints::read_table(std::span(all).first(size), again));
        all.push_back(std::byte{0});
        CHECK(!checkpoints::read_table(all, again));
        CHECK(again == sound);
    }
}

TEST_CASE("file_table: numbers of entries beyond its bytes ask for no memory") {
    for (std::uint64_t const ranges : {huge, huge / 24, std::uint64_t{1} << 60, std::uint64_t{1}})
        for (std::uint64_t const blocks : {std::uint64_t{0}, huge, huge / 4}) {
            herring::detail::byte_buffer bytes;
            herring::detail::wire::append<std::uint64_t>(bytes, ranges);
            herring::detail::wire::append<std::uint64_t>(bytes, blocks);
            file_table read;
            CHECK(!checkpoints::read_table(bytes, read));
        }
}

TEST_CASE("file_table: ranges cover tensors once, in any order, or not") {
    CHECK(covers({}, {}));
    CHECK(covers({}, {0, 0}));
    CHECK(covers({{0, 0, 5}, {2, 0, 7}}, {5, 0, 7}));
    CHECK(covers({{1, 3, 4}, {0, 0, 5}, {1, 0, 3}}, {5, 7}));
    CHECK(!covers({}, {1}));
    CHECK(!covers({{0, 0, 5}}, {5, 1}));
    CHECK(!covers({{0, 0, 5}}, {}));
    CHECK(!covers({{0, 0, 5}, {0, 0, 5}}, {5}));               // twice
    CHECK(!covers({{0, 0, 3}, {0, 2, 3}}, {5}));               // overlap
    CHECK(!covers({{0, 0, 2}, {0, 3, 2}}, {5}));               // gap
    CHECK(!covers({{0, 0, 2}, {0, 2, 2}, {1, 1, 1}}, {5, 1})); // as many elements, other ones
    CHECK(!covers({{0, 0, 6}}, {5}));
    CHECK(!covers({{0, 0, 0}, {0, 0, 5}}, {5})); // empty ones are not written
    CHECK(!covers({{1, 0, 5}}, {0, 0}));
    CHECK(!covers({{huge, 0, 5}}, {5}));
    CHECK(!covers({{0, 0, huge}}, {5}));
    CHECK(!covers({{0, 0, 2}, {0, 2, huge}}, {5}));
    CHECK(!covers({{0, 5, huge - 4}, {0, 0, 5}}, {5}));
    CHECK(covers({{0, 1, huge - 1}, {0, 0, 1}}, {huge}));
}

// herring: tests of base/byte_buffer.hpp. SPDX-License-Identifier: Apache-2.0
#include <herring/base/byte_buffer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

using herring::detail::byte_buffer;

TEST_CASE("byte_buffer: appends and drops as a vector would") {
    byte_buffer buffer;
    std::vector<std::byte> twin;
    unsigned seed = 1;
    for (int turn = 0; turn < 400; ++turn) {
        std::vector<std::byte> more((seed = seed * 1103515245 + 12345) >> 16 & 255);
        for (std::byte& b : more) b = static_cast<std::byte>((seed = seed * 1103515245 + 12345) >> 16);
        buffer.append(more);
        twin.insert(twin.end(), more.begin(), more.end());
        if (turn % 3 == 0) {
            std::size_t const some = turn % 30 == 0 ? twin.size() : twin.size() / 2;
            buffer.drop(some);
            twin.erase(twin.begin(), twin.begin() + static_cast<std::ptrdiff_t>(some));
        }
        REQUIRE(std::ranges::equal(std::span<std::byte const>(buffer), twin));
    }
    buffer.clear();
    CHECK(buffer.empty());
    buffer.append(twin);
    CHECK(std::ranges::equal(buffer, twin));
}

TEST_CASE("byte_buffer: moves leave an empty one; much room is given back") {
    byte_buffer first;
    first.append(std::vector<std::byte>(100'000, std::byte{7}));
    byte_buffer second = std::move(first);
    CHECK(first.empty());
    CHECK(second.size() == 100'000);
    first.append(std::vector<std::byte>(3));
    second = std::move(first);
    CHECK(second.size() == 3);
    second = byte_buffer();
    CHECK(second.empty());
    second.append(std::vector<std::byte>(100'000));
    second.drop(100'000);
    CHECK(second.empty());
    CHECK(second.data() == nullptr);
}

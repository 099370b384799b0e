// herring: tests of ensemble/data_frames.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/data_frames.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace ensemble_data_frames_test {

using namespace herring::detail::ensembles;
using herring::decline;

using head_buffer = std::array<std::byte, data_head_bytes>;

head_buffer bytes_of(data_head const& head) {
    head_buffer bytes;
    bytes.fill(std::byte{0xA5});
    encode(head, bytes.data());
    return bytes;
}
bool is_head(head_buffer const& bytes) {
    data_head head;
    return decode(bytes, head);
}

constexpr data_head ask{.kind = data_kind::ask, .id = 0x0123456789abcdef, .remaining_us = 77, .length = 4096};
constexpr data_head row{.kind = data_kind::row, .id = ~std::uint64_t{0}, .length = ~std::uint32_t{0}};
constexpr data_head declined{.kind = data_kind::declined, .reason = decline::stopping, .id = 5};

TEST_CASE("ensemble data frames: heads come back as they were") {
    for (data_head const& each : {ask, row, declined}) {
        data_head read;
        REQUIRE(decode(bytes_of(each), read));
        CHECK(read.kind == each.kind);
        CHECK(read.reason == each.reason);
        CHECK(read.id == each.id);
        CHECK(read.remaining_us == each.remaining_us);
        CHECK(read.length == each.length);
    }
}

TEST_CASE("ensemble data frames: the layout is little-endian, whatever the machine") {
    head_buffer const bytes = bytes_of(ask);
    CHECK(bytes[0] == std::byte{'H'});
    CHECK(bytes[3] == std::byte{'1'});
    CHECK(bytes[4] == std::byte{1});
    CHECK(bytes[8] == std::byte{0xef});
    CHECK(bytes[15] == std::byte{0x01});
    CHECK(bytes[16] == std::byte{77});
    CHECK(bytes[25] == std::byte{0x10});
}

TEST_CASE("ensemble data frames: what is not due in a head makes it none") {
    for (std::size_t const at : {0u, 1u, 2u, 3u, 6u, 7u, 28u, 31u}) { // magic and zeros
        head_buffer bytes = bytes_of(ask);
        bytes[at] ^= std::byte{0x80};
        CAPTURE(at);
        CHECK_FALSE(is_head(bytes));
    }
    for (int const kind : {0, 4, 255}) {
        head_buffer bytes = bytes_of(ask);
        bytes[4] = static_cast<std::byte>(kind);
        CHECK_FALSE(is_head(bytes));
    }
    head_buffer far = bytes_of(declined);
    far[5] = std::byte{herring::declines};
    CHECK_FALSE(is_head(far));

    data_head reasoned = ask;
    reasoned.reason = decline::overloaded;
    CHECK_FALSE(is_head(bytes_of(reasoned)));
    data_head timed = row;
    timed.remaining_us = 1;
    CHECK_FALSE(is_head(bytes_of(timed)));
    data_head filled = declined;
    filled.length = 1;
    CHECK_FALSE(is_head(bytes_of(filled)));
}

} // namespace ensemble_data_frames_test

// herring: tests of crypto/secret_key.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/secret_key.hpp"

#include "doctest/doctest.h"
#include "unit/crypto/hex.hpp"

#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

using herring::detail::bytes_of;
using herring::detail::equal_in_constant_time;
using herring::detail::secret_key;

static_assert(!std::is_copy_constructible_v<secret_key> && !std::is_copy_assignable_v<secret_key>);

TEST_CASE("secret_key: equal are bytes of one size of which none differs, in whatever bit") {
    std::vector<std::byte> const a = counted(7, 32);
    CHECK(equal_in_constant_time(a, counted(7, 32)));
    CHECK(equal_in_constant_time({}, {}));
    CHECK_FALSE(equal_in_constant_time(a, counted(7, 31)));
    CHECK_FALSE(equal_in_constant_time(a, {}));
    for (std::size_t bit = 0; bit < 256; ++bit) {
        std::vector<std::byte> other = a;
        other[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        REQUIRE_FALSE(equal_in_constant_time(a, other));
    }
    // Two differences do not cancel.
    std::vector<std::byte> other = a;
    other[0] ^= std::byte{1};
    other[31] ^= std::byte{1};
    CHECK_FALSE(equal_in_constant_time(a, other));
}

TEST_CASE("secret_key: moves, and leaves nothing where it was") {
    std::vector<std::byte> const bytes = counted(1, 32);
    secret_key from{std::span<std::byte const, 32>(bytes)};
    secret_key to = std::move(from);
    CHECK(hex(to.bytes()) == hex(bytes));
    CHECK(hex(std::as_const(from).bytes()) == std::string(64, '0'));
    from = std::move(to);
    CHECK(hex(from.bytes()) == hex(bytes));
    CHECK(hex(to.bytes()) == std::string(64, '0'));
    secret_key& self = from;
    from = std::move(self);
    CHECK(hex(from.bytes()) == hex(bytes));
}

TEST_CASE("secret_key: the destructor erases, also what nobody reads afterwards") {
    struct holds {
        std::byte bytes[32];
        ~holds() { herring::detail::erase(bytes, sizeof bytes); }
    };
    std::vector<std::byte> const bytes = counted(1, 32);
    alignas(holds) std::byte room[sizeof(holds)];
    auto* const made = new (room) holds;
    std::memcpy(made->bytes, bytes.data(), 32);
    CHECK(std::memcmp(room, bytes.data(), 32) == 0);
    made->~holds();
    CHECK(hex(room) == std::string(64, '0'));
}

TEST_CASE("secret_key: the bytes of a text") {
    CHECK(hex(bytes_of("az")) == "617a");
    CHECK(bytes_of("").empty());
}

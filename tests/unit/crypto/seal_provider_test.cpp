// herring: tests of crypto/seal_provider.hpp: the table of a library's functions, and who owns what it makes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/seal_provider.hpp"

#include "herring/crypto/random.hpp"

#include "doctest/doctest.h"
#include "toy_seals.hpp"

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

using namespace herring::detail;

TEST_CASE("seal_provider: a cipher opens what one of the same key sealed; each is freed once") {
    {
        secret_key const key(random_nonce()), other(random_nonce());
        seal_cipher seals(toy_seals::table(), true, key), opens(toy_seals::table(), false, key);
        std::array<std::byte, 40> data{}, sent{};
        std::array<std::byte, seal_tag_bytes> tag{};
        REQUIRE(seals.seal({}, sent, tag.data()));
        CHECK(sent != data);
        seal_cipher moved(std::move(opens));
        CHECK(moved.open({}, sent, tag.data()));
        CHECK(sent == data);
        REQUIRE(seals.seal({}, sent, tag.data()));
        CHECK(moved.take(other));
        CHECK_FALSE(moved.open({}, sent, tag.data()));
        moved = seal_cipher(toy_seals::table(), false, key);
        CHECK(moved.open({}, sent, tag.data()));
        seal_cipher none;
        CHECK_FALSE(none.take(key));
        CHECK_FALSE(none.seal({}, sent, tag.data()));
        CHECK_FALSE(none.open({}, sent, tag.data()));
        CHECK(toy_seals::ciphers == 2);
    }
    CHECK(toy_seals::ciphers == 0);
    static_assert(!std::is_copy_constructible_v<seal_cipher> && !std::is_copy_constructible_v<key_exchange>);
}

TEST_CASE("seal_provider: both ends of an exchange share a key; each is freed once") {
    {
        key_exchange one(toy_seals::table()), two(toy_seals::table()), none;
        CHECK(one.begun());
        CHECK_FALSE(none.begun());
        CHECK(one.shown() != two.shown());
        secret_key first, second;
        REQUIRE(one.agree(two.shown(), first));
        key_exchange moved(std::move(two));
        REQUIRE(moved.agree(one.shown(), second));
        CHECK(equal_in_constant_time(first.bytes(), second.bytes()));
        CHECK_FALSE(one.agree({}, first)); // with which everybody knows what is shared
        CHECK_FALSE(none.agree(one.shown(), first));
        moved = {};
        CHECK_FALSE(moved.begun());
        CHECK(toy_seals::exchanges == 1);
    }
    CHECK(toy_seals::exchanges == 0);
}

// herring: tests of crypto/sha256.hpp: published values, every cut, both ways to compute it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/sha256.hpp"

#include "doctest/doctest.h"
#include "herring/crypto/secret_key.hpp"
#include "unit/crypto/hex.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using herring::detail::bytes_of;
using herring::detail::sha256;
using herring::detail::sha256_blocks;
using herring::detail::sha256_blocks_plain;
using herring::detail::sha256_bytes_of;
using herring::detail::sha256_digest;
using herring::detail::sha256_start;
using herring::detail::sha256_state;

namespace {

std::string digest_of(std::string_view text) { return hex(sha256().update(bytes_of(text)).finish()); }

} // namespace

TEST_CASE("sha256: the examples of FIPS 180-4, one of no bytes and one of a million") {
    CHECK(digest_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(digest_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(
        digest_of(
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
            "mnopqrstnopqrstu") == "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    CHECK(digest_of(std::string(1'000'000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256: the first round of NIST's Monte Carlo test, a thousand digests") {
    auto const seed = from_hex("6d1e72ad03ddeb5de891e572e2396f8da015d899ef0e79503152d6010a3fe691");
    std::array<std::byte, 96> last{};
    for (std::size_t i = 0; i < 3; ++i)
        std::copy(seed.begin(), seed.end(), last.begin() + 32 * static_cast<int>(i));
    for (int i = 0; i < 1000; ++i) {
        sha256_digest const next = sha256().update(last).finish();
        std::copy(last.begin() + 32, last.end(), last.begin());
        std::copy(next.begin(), next.end(), last.begin() + 64);
    }
    CHECK(hex(std::span(last).last(32)) ==
          "e93c330ae5447738c8aa85d71a6c80f2a58381d05872d26bdd39f1fcd4f2b788");
}

TEST_CASE("sha256: however the message is cut") {
    std::vector<std::byte> const data = counted(11, 200);
    std::span<std::byte const> const all = data;
    for (std::size_t size = 0; size <= all.size(); ++size) {
        std::string const right = hex(sha256().update(all.first(size)).finish());
        for (std::size_t cut = 0; cut <= size; ++cut)
            REQUIRE(hex(sha256().update(all.first(cut)).update(all.subspan(cut, size - cut)).finish()) ==
                    right);
        sha256 in_bytes;
        for (std::size_t i = 0; i < size; ++i) in_bytes.update(all.subspan(i, 1));
        REQUIRE(hex(in_bytes.finish()) == right);
    }
}

TEST_CASE("sha256: the processor's instructions, where it has them, make what the plain code makes") {
    std::mt19937 from(7);
    std::vector<std::byte> blocks(5 * 64 + 3);
    for (int turn = 0; turn < 100; ++turn) {
        for (std::byte& b : blocks) b = static_cast<std::byte>(from());
        sha256_state chosen, plain;
        for (std::uint32_t& word : chosen) word = static_cast<std::uint32_t>(from());
        plain = chosen;
        sha256_blocks(chosen, blocks.data() + turn % 4, static_cast<std::size_t>(turn % 6));
        sha256_blocks_plain(plain, blocks.data() + turn % 4, static_cast<std::size_t>(turn % 6));
        REQUIRE(chosen == plain);
    }
    // The empty message by the plain code alone, which a machine with the instructions takes nowhere else.
    std::array<std::byte, 64> end{};
    end[0] = std::byte{0x80};
    sha256_state state = sha256_start;
    sha256_blocks_plain(state, end.data(), 1);
    CHECK(hex(sha256_bytes_of(state)) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

// herring: tests of join/sealed.hpp: control connections sealed by libcrypto.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join/sealed.hpp"

#include "herring/control/wire/message_kind.hpp"
#include "herring/crypto/random.hpp"
#include "herring/net/frame.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"
#include "unit/crypto/hex.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace join_sealed_tests {

using namespace herring::detail;
using herring::errc;

seal_provider const& libcrypto() { return seal_provider_of<libcrypto_seals>; }

std::string text_of(std::span<std::byte const> bytes) {
    return std::string(reinterpret_cast<char const*>(bytes.data()), bytes.size());
}

herring::join_options as(int rank, std::string const& address, herring::control_protection how) {
    herring::join_options made;
    made.rank = rank;
    made.size = 2;
    made.address = address;
    made.secret = std::string(64, 'c');
    made.control = how;
    made.timeout = std::chrono::seconds(30);
    return made;
}

TEST_CASE("join_sealed: libcrypto has both, and the header says so to HERRING_CONTROL") {
    libcrypto().check(0);
    CHECK(linked_seal_provider.load() == &libcrypto());
    CHECK(herring::sealed_control().seals() == &libcrypto());
    CHECK(herring::control_protection().seals() == nullptr);
}

TEST_CASE("join_sealed: AES-256-GCM as NIST has it") {
    // The GCM specification (McGrew and Viega), test case 14: key and nonce of zeroes, 16 zeroes.
    seal_cipher seals(libcrypto(), true, secret_key()), opens(libcrypto(), false, secret_key());
    std::array<std::byte, 16> data{}, tag{};
    REQUIRE(seals.seal({}, data, tag.data()));
    CHECK(std::ranges::equal(data, from_hex("cea7403d4d606b6e074ec5d3baf39d18")));
    CHECK(std::ranges::equal(tag, from_hex("d0d1c8a799996bf0265b98b5d48ab919")));
    REQUIRE(opens.open({}, data, tag.data()));
    CHECK(data == std::array<std::byte, 16>{});
    // Test case 13: nothing.
    REQUIRE(seals.seal({}, {}, tag.data()));
    CHECK(std::ranges::equal(tag, from_hex("530f8afbc74536b9a963b4f1c4cb738b")));
    CHECK(opens.open({}, {}, tag.data()));
    tag[3] ^= std::byte{1};
    CHECK_FALSE(opens.open({}, {}, tag.data()));
}

TEST_CASE("join_sealed: X25519 shares a key, and refuses points of small order") {
    key_exchange const one(libcrypto()), two(libcrypto());
    REQUIRE(one.begun());
    CHECK(one.shown() != two.shown());
    secret_key first, second;
    REQUIRE(one.agree(two.shown(), first));
    REQUIRE(two.agree(one.shown(), second));
    CHECK(equal_in_constant_time(first.bytes(), second.bytes()));
    CHECK_FALSE(one.agree({}, first)); // RFC 7748, 6.1: all zeroes
    CHECK_FALSE(one.agree({std::byte{1}}, first));
}

TEST_CASE("join_sealed: no byte of a message can be changed, under several keys") {
    auto const end = [](bool seals) {
        return wire::seal_direction(libcrypto(), seals, secret_key(std::array<std::byte, 32>{}), 16);
    };
    auto const both = [&] { return wire::frame_seal(end(true), end(false)); };
    auto const body = random_nonce();
    auto const opens = [](wire::frame_seal& by, std::vector<std::byte> message) {
        std::span<std::byte> const all(message);
        return by.open_head(all.first<wire::sealed_head_bytes>()) &&
               by.open_body(all.subspan(wire::sealed_head_bytes));
    };
    wire::frame_seal seals = both(), in_order = both();
    for (int turn = 0; turn < 9; ++turn) {
        byte_buffer out;
        REQUIRE(seals.append(out, wire::message_kind::contribute, 1, 1, body, wire::protocol_version));
        std::vector<std::byte> const good(out.begin(), out.end());
        CHECK(text_of(good).find(text_of(body)) == std::string::npos);
        if (turn == 0)
            for (std::size_t at = 0; at < good.size(); ++at) {
                std::vector<std::byte> changed = good;
                changed[at] ^= std::byte{0x10};
                wire::frame_seal fresh = both();
                CHECK_FALSE(opens(fresh, changed));
            }
        CHECK(opens(in_order, good));
        if (turn == 8) CHECK_FALSE(opens(in_order, good));
    }
}

TEST_CASE("join_sealed: ranks join by it, and one that does not seal is told so") {
    std::string const address = "127.0.0.1:" + std::to_string(free_port());
    std::thread rank_0([&] {
        herring::world w = herring::join(as(0, address, herring::sealed_control()));
        CHECK(text_of(w.all_gather(bytes_of("zero"))[1]) == "one");
    });
    try {
        (void)herring::join(as(1, address, {}));
        FAIL_CHECK("it joins");
    } catch (herring::error const& why) {
        CHECK(why.code() == errc::mismatch);
        CHECK(std::string(why.what()).find("authenticated only, rank 0's are to be sealed") !=
              std::string::npos);
    }
    {
        herring::world w = herring::join(as(1, address, herring::sealed_control()));
        CHECK(text_of(w.all_gather(bytes_of("one"))[0]) == "zero");
    }
    rank_0.join();
}

} // namespace join_sealed_tests

// herring: tests of crypto/secret_key.hpp: wiped after use, and not in core dumps.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/secret_key.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"
#include "unit/crypto/hex.hpp"
#include "unit/crypto/memory_of_process.hpp"

#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/crypto/sha256.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace key_place_test {

using herring::detail::key_page;
using herring::detail::key_place;
using key = std::array<std::byte, 32>;

key const ones = [] {
    key made;
    made.fill(std::byte{1});
    return made;
}();

bool is_inside(void const* at, void const* object, std::size_t size) {
    return std::less_equal<>()(object, at) && std::less<>()(at, static_cast<std::byte const*>(object) + size);
}

TEST_CASE("key_place: a core dump has no page of it, and has others") {
    int here = 0;
    CHECK(is_dumped(&here));
    key_place<key> const one;
    CHECK_FALSE(is_dumped(&*one));
    herring::detail::secret_key const with_bytes = herring::detail::random_key();
    CHECK_FALSE(is_dumped(with_bytes.bytes().data()));
    herring::detail::hmac_sha256 const mac(ones);
    CHECK_FALSE(is_dumped(&mac.inner()));
    CHECK_FALSE(is_dumped(&mac.outer()));
}

TEST_CASE("key_place: it is zeroes at first, moves, and leaves nothing where it was or at its end") {
    std::byte const volatile* place = nullptr;
    {
        key_place<key> from;
        CHECK(*from == key{});
        *from = ones;
        key_place<key> to = std::move(from);
        CHECK(*to == ones);
        CHECK(*from == key{});
        from = std::move(to);
        CHECK(*from == ones);
        CHECK(*to == key{});
        key_place<key>& self = from;
        from = std::move(self);
        CHECK(*from == ones);
        place = from->data();
    }
    for (std::size_t i = 0; i < sizeof(key); ++i) CHECK(place[i] == std::byte{0}); // pages are never freed
}

TEST_CASE("key_place: many, in any order, by many threads: no place is two's") {
    std::vector<std::thread> threads;
    std::array<bool, 4> sound{};
    for (unsigned t = 0; t < sound.size(); ++t)
        threads.emplace_back([t, &sound] {
            key mine;
            mine.fill(static_cast<std::byte>(t + 1));
            bool all = true;
            std::vector<std::optional<key_place<key>>> kept(200);
            for (std::size_t i = 0; i < 4000; ++i) {
                std::optional<key_place<key>>& at = kept[i * 7919 % kept.size()];
                if (at) {
                    all = all && **at == mine;
                    at.reset();
                } else {
                    all = all && *at.emplace() == key{};
                    **at = mine;
                }
            }
            sound[t] = all;
        });
    for (std::thread& each : threads) each.join();
    CHECK(std::all_of(sound.begin(), sound.end(), [](bool s) { return s; }));
    // As many as were there at a time, and their pages, come again.
    std::set<void*> places;
    std::vector<key_place<key>> many(1000);
    for (auto& one : many) places.insert(&*one);
    CHECK(places.size() == many.size());
}

TEST_CASE("key_place: without memory the key lies in its object, and is wiped there" *
          doctest::skip(HERRING_TEST_ASAN || HERRING_TEST_TSAN)) {
    pid_t const child = ::fork();
    if (child == 0) {
        constexpr std::size_t most = 1 << 14;
        auto const kept = std::make_unique<std::optional<key_place<key>>[]>(most);
        rlimit const none{0, 0};
        ::setrlimit(RLIMIT_AS, &none);
        for (std::size_t i = 0; i < most; ++i) {
            key_place<key>& one = kept[i].emplace();
            if (!is_inside(&*one, &one, sizeof one)) continue;
            *one = ones;
            std::byte const volatile* const at = (*one).data();
            kept[i].reset();
            bool wiped = true;
            for (std::size_t b = 0; b < sizeof(key); ++b) wiped = wiped && at[b] == std::byte{0};
            ::_exit(wiped ? 0 : 2);
        }
        ::_exit(1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
}

TEST_CASE("key_place: of a secret file a core dump has nothing, while it is used and afterwards" *
          doctest::skip(HERRING_TEST_TSAN)) {
    // Another process makes it, and says masked what it is.
    std::string const path = "/tmp/herring-test-dump-" + std::to_string(::getpid());
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_t const child = ::fork();
    if (child == 0) {
        std::string const digits = hex(herring::detail::random_nonce());
        int const file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        bool sound = ::write(file, digits.data(), 64) == 64;
        for (std::byte const b : from_hex(digits)) {
            std::byte const masked = b ^ mask_of_needle;
            sound = sound && ::write(ends[1], &masked, 1) == 1;
        }
        for (char const c : digits) {
            std::byte const masked = static_cast<std::byte>(c) ^ mask_of_needle;
            sound = sound && ::write(ends[1], &masked, 1) == 1;
        }
        ::_exit(sound ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    REQUIRE(status == 0);
    std::array<std::byte, 32> raw;
    std::array<std::byte, 64> text;
    REQUIRE(::read(ends[0], raw.data(), raw.size()) == 32);
    REQUIRE(::read(ends[0], text.data(), text.size()) == 64);
    {
        herring::detail::secrets const found = herring::detail::read_secrets(path, "HERRING_SECRET_FILE");
        herring::detail::secret_key const with = found.proves.key(ones);
        CHECK_FALSE(
            std::ranges::equal(with.bytes(), herring::detail::secret_key().bytes())); // there is a key
        CHECK(times_in_dump(text) == 0);
        CHECK(times_in_dump(raw) == 0);
        std::array<std::byte, 32> derived;
        for (std::size_t i = 0; i < derived.size(); ++i) derived[i] = with.bytes()[i] ^ mask_of_needle;
        CHECK(times_in_dump(derived) == 0);
        std::vector<std::byte> const shown(with.bytes().begin(), with.bytes().end());
        asm volatile("" : : "r"(shown.data()) : "memory"); // what is there is found
        CHECK(times_in_dump(derived) == 1);
    }
    CHECK(times_in_dump(raw) == 0);
    ::unlink(path.c_str());
    ::close(ends[0]);
    ::close(ends[1]);
}

} // namespace key_place_test

// herring: tests of crypto/random.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/random.hpp"

#include "doctest/doctest.h"
#include "unit/crypto/hex.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

using herring::detail::random_bytes;
using herring::detail::random_nonce;

TEST_CASE("random: no nonce comes twice, and none is left as it was") {
    std::set<std::string> seen{std::string(64, '0')};
    for (int i = 0; i < 1000; ++i) CHECK(seen.insert(hex(random_nonce())).second);
}

TEST_CASE("random: what comes in parts, or after a signal, is whole") {
    std::vector<std::byte> bytes(10);
    int calls = 0;
    random_bytes(bytes, [&](void* to, std::size_t size, unsigned flags) -> ssize_t {
        CHECK(flags == 0);
        CHECK(size <= bytes.size());
        if (++calls == 2) {
            errno = EINTR;
            return -1;
        }
        static_cast<std::byte*>(to)[0] = static_cast<std::byte>(calls);
        return 1;
    });
    CHECK(calls == 11);
    CHECK(hex(bytes) == "01030405060708090a0b");
}

TEST_CASE("random: without the kernel's bytes there are none, and the error says what to do") {
    std::array<std::byte, 32> bytes{};
    for (ssize_t const answer : {ssize_t{-1}, ssize_t{0}}) try {
            random_bytes(bytes, [&](void*, std::size_t, unsigned) {
                errno = ENOSYS;
                return answer;
            });
            FAIL("nobody gave a byte");
        } catch (herring::error const& e) {
            CHECK(e.code() == herring::errc::unsupported);
            CHECK(std::string(e.what()).find(answer == 0 ? "none" : "Function not implemented") !=
                  std::string::npos);
            CHECK(std::string(e.what()).find("getrandom") != std::string::npos);
        }
}

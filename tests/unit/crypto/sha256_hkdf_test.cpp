// herring: tests of crypto/sha256.hpp: the values of RFC 5869, and of Project Wycheproof.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/sha256.hpp"

#include "doctest/doctest.h"
#include "unit/crypto/hex.hpp"
#include "unit/crypto/wycheproof.hpp"

#include <csignal>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using herring::detail::bytes_of;
using herring::detail::hkdf_expand;
using herring::detail::hkdf_extract;
using herring::detail::hkdf_key;
using herring::detail::secret_key;

namespace {

void check(std::vector<std::byte> const& material, std::vector<std::byte> const& salt,
           std::vector<std::byte> const& info, std::string const& key, std::string const& expanded) {
    secret_key const extracted = hkdf_extract(salt, material);
    CHECK(hex(extracted.bytes()) == key);
    std::span<std::byte const> const whole = info;
    for (std::size_t cut = 0; cut <= info.size(); cut += 5) {
        std::vector<std::byte> out(expanded.size() / 2);
        hkdf_expand(extracted, {whole.first(cut), whole.subspan(cut)}, out);
        CHECK(hex(out) == expanded);
    }
}

} // namespace

TEST_CASE("hkdf: the test cases of RFC 5869 with SHA-256") {
    std::vector<std::byte> const material(22, std::byte{0x0b});
    check(material, counted(0, 13), counted(0xf0, 10),
          "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
          "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    check(counted(0, 0x50), counted(0x60, 0x50), counted(0xb0, 0x50),
          "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
          "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
          "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
    check(material, {}, {}, "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
          "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

TEST_CASE("hkdf: Wycheproof's vectors: empty salts and longer ones than a block, the largest output, and one "
          "byte more") {
    for (wycheproof::derivation const& each : wycheproof::hkdf_sha256) {
        CAPTURE(each.id);
        auto const key = hkdf_extract(from_hex(each.salt), from_hex(each.material));
        std::vector<std::byte> out(each.size);
        auto const expand = [&] { hkdf_expand(key, {from_hex(each.info)}, out); };
        if (each.valid) {
            expand();
            CHECK((each.size == 8160 ? hex(herring::detail::sha256().update(out).finish()) : hex(out)) ==
                  each.output);
            continue;
        }
        CHECK(each.size == 8161);
#ifndef NDEBUG // what is asked for is a constant of the library, so it is asserted
        ::pid_t const child = ::fork();
        if (child == 0) {
            ::close(2);
            ::signal(SIGABRT, SIG_DFL);
            expand();
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
#endif
    }
}

TEST_CASE("hkdf: as much as there is, 255 digests") {
    secret_key const key = hkdf_extract({}, {});
    std::vector<std::byte> most(255 * 32), less(254 * 32 + 1);
    hkdf_expand(key, {}, most);
    hkdf_expand(key, {}, less);
    CHECK(hex(less) == hex(most).substr(0, 2 * less.size()));
    CHECK(hex(std::span(most).last(32)) != hex(std::span(most).last(64).first(32)));
}

TEST_CASE("hkdf: keys by label and context; a byte does not pass from one to the other") {
    secret_key const key = hkdf_extract({}, bytes_of("material"));
    auto const of = [&](std::string_view label, std::string_view context) {
        return hex(hkdf_key(key, label, bytes_of(context)).bytes());
    };
    std::byte info[] = {std::byte{'a'}, std::byte{'b'}, std::byte{0}, std::byte{'c'}};
    std::vector<std::byte> plain(32);
    hkdf_expand(key, {info}, plain);
    CHECK(of("ab", "c") == hex(plain));
    CHECK(of("ab", "c") != of("a", "bc"));
    CHECK(of("ab", "c") != of("abc", ""));
    CHECK(of("ab", "") == hex(hkdf_key(key, "ab").bytes()));
}

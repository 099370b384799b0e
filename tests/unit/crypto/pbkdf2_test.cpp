// herring: tests of crypto/pbkdf2.hpp: published values.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/pbkdf2.hpp"

#include "doctest/doctest.h"
#include "herring/crypto/secret_key.hpp"
#include "unit/crypto/hex.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using herring::detail::bytes_of;

namespace {

std::string derived(std::string_view password, std::string_view salt, std::uint32_t rounds,
                    std::size_t size) {
    std::vector<std::byte> key(size);
    herring::detail::pbkdf2_sha256(bytes_of(password), bytes_of(salt), rounds, key);
    return hex(key);
}

} // namespace

TEST_CASE("pbkdf2: RFC 7914, section 11") {
    CHECK(derived("passwd", "salt", 1, 64) ==
          "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
          "49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783");
    CHECK(derived("Password", "NaCl", 80'000, 64) ==
          "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56"
          "a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d");
}

TEST_CASE("pbkdf2: the inputs of RFC 6070, with SHA-256") {
    using namespace std::string_view_literals;
    CHECK(derived("password", "salt", 1, 32) ==
          "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b");
    CHECK(derived("password", "salt", 2, 32) ==
          "ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43");
    CHECK(derived("password", "salt", 4096, 32) ==
          "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a");
    CHECK(derived("passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096, 40) ==
          "348c89dbcbd32b2f32d814b8116e84cf2b17347ebc1800181c4e2a1fb8dd53e1c635518c7dac47e9");
    CHECK(derived("pass\0word"sv, "sa\0lt"sv, 4096, 16) == "89b69d0516f829893c696226650a8687");
}

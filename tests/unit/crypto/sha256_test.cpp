// herring: tests of crypto/sha256.hpp: published values, every cut.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/sha256.hpp"

#include "doctest/doctest.h"
#include "herring/crypto/secret_key.hpp"
#include "unit/crypto/hex.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using herring::detail::bytes_of;
using herring::detail::sha256;
using herring::detail::sha256_digest;

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

TEST_CASE("sha256: of NIST's SHA256ShortMsg and SHA256LongMsg (CAVS 11.0), by sizes around those of a block "
          "and of its padding") {
    constexpr std::string_view vectors[][2] = {
        {"d3", "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"},
        {"b4190e", "dff2e73091f6c05e528896c4c831b9448653dc2ff043528f6769437bc7b975c2"},
        {"5738c929c4f4ccb6", "963bb88f27f512777aab6c8b1a02c70ec0ad651d428f870036e1917120fb48bf"},
        {"95a765809caf30ada90ad6d61c2b4b30250df0a7ce23b7753c9187f4319ce2",
         "a4139b74b102cf1e2fce229a6cd84c87501f50afa4c80feacf7d8cf5ed94f042"},
        {"09fc1accc230a205e4a208e64a8f204291f581a12756392da4b8c0cf5ef02b95",
         "4f44c1c7fbebb6f9601829f3897bfd650c56fa07844be76489076356ac1886a4"},
        {"0546f7b8682b5b95fd32385faf25854cb3f7b40cc8fa229fbd52b16934aab388a7",
         "b31ad3cd02b10db282b3576c059b746fb24ca6f09fef69402dc90ece7421cbb7"},
        {"c4ad3c5e78d917ecb0cbbcd1c481fc2aaf232f7e289779f40e504cc309662ee96fecbd20647ef00e46199fbc482f46",
         "50dbf40066f8d270484ee2ef6632282dfa300a85a8530eceeb0e04275e1c1efd"},
        {"25362a4b9d74bde6128c4fdc672305900947bc3ada9d9d316ebcf1667ad4363189937251f149c72e064a48608d940b7574b"
         "17fefc0df",
         "f8e4ccab6c979229f6066cc0cb0cfa81bb21447c16c68773be7e558e9f9d798d"},
        {"3ebfb06db8c38d5ba037f1363e118550aad94606e26835a01af05078533cc25f2f39573c04b632f62f68c294ab31f2a3e2a"
         "1a0d8c2be51",
         "6595a2ef537a69ba8583dfbf7f5bec0ab1f93ce4c8ee1916eff44a93af5749c4"},
        {"2d52447d1244d2ebc28650e7b05654bad35b3a68eedc7f8515306b496d75f3e73385dd1b002625024b81a02f2fd6dffb6e6"
         "d561cb7d0bd7a",
         "cfb88d6faf2de3a69d36195acec2e255e2af2b7d933997f348e09f6ce5758360"},
        {"4cace422e4a015a75492b3b3bbfbdf3758eaff4fe504b46a26c90dacc119fa9050f603d2b58b398cad6d6d9fa922a154d9e"
         "0bc4389968274b0",
         "4d54b2d284a6794581224e08f675541c8feab6eefa3ac1cfe5da4e03e62f72e4"},
        {"6511a2242ddb273178e19a82c57c85cb05a6887ff2014cf1a31cb9ba5df1695aadb25c22b3c5ed51c10d047d256b8e34428"
         "42ae4e6c525f8d7a5a944af2a",
         "d6859c0b5a0b66376a24f56b2ab104286ed0078634ba19112ace0d6d60a9c1ae"},
        {"e2f76e97606a872e317439f1a03fcd92e632e5bd4e7cbc4e97f1afc19a16fde92d77cbe546416b51640cddb92af996534df"
         "d81edb17c4424cf1ac4d75aceeb",
         "18041bd4665083001fba8c5411d2d748e8abbfdcdfd9218cb02b68a78e7d4c23"},
        {"5a86b737eaea8ee976a0a24da63e7ed7eefad18a101c1211e2b3650c5187c2a8a650547208251f6d4237e661c7bf4c77f33"
         "5390394c37fa1a9f9be836ac28509",
         "42e61e174fbb3897d6dd6cef3dd2802fe67b331953b06114a65c772859dfc1aa"},
        {"451101250ec6f26652249d59dc974b7361d571a8101cdfd36aba3b5854d3ae086b5fdd4597721b66e3c0dc5d8c606d9657d"
         "0e323283a5217d1f53f2f284f57b85c8a61ac8924711f895c5ed90ef17745ed2d728abd22a5f7a13479a462d71b56c19a74"
         "a40b655c58edfe0a188ad2cf46cbf30524f65d423c837dd1ff2bf462ac4198007345bb44dbb7b1c861298cdf61982a833af"
         "c728fae1eda2f87aa2c9480858bec",
         "3c593aa539fdcdae516cdf2f15000f6634185c88f505b39775fb9ab137a10aa2"},
    };
    for (auto const& [message, digest] : vectors)
        CHECK(hex(sha256().update(from_hex(message)).finish()) == digest);
}

TEST_CASE("sha256: of NIST's SHA256Monte (CAVS 11.0) six of a hundred rounds, the last one too") {
    constexpr std::pair<int, std::string_view> rounds[] = {
        {0, "e93c330ae5447738c8aa85d71a6c80f2a58381d05872d26bdd39f1fcd4f2b788"},
        {1, "2e78f8c8772ea7c9331d41ed3f9cdf27d8f514a99342ee766ee3b8b0d0b121c0"},
        {2, "d6a23dff1b7f2eddc1a212f8a218397523a799b07386a30692fd6fe9d2bf0944"},
        {9, "72361401c670d07f1151a95e2ee914665c2bdb1228581833c7dc53b89c01c927"},
        {19, "52519e6319505df7a9aa83778618ec10b78c5771bac50e8d3f59bc815dabfb1f"},
        {99, "6a912ba4188391a78e6f13d88ed2d14e13afce9db6f7dcbf4a48c24f3db02778"},
    };
    auto seed = from_hex("6d1e72ad03ddeb5de891e572e2396f8da015d899ef0e79503152d6010a3fe691");
    int round = 0;
    for (auto const& [at, digest] : rounds) {
        for (; round <= at; ++round) {
            std::array<std::byte, 96> last{};
            for (int i = 0; i < 3; ++i) std::copy(seed.begin(), seed.end(), last.begin() + 32 * i);
            for (int i = 0; i < 1000; ++i) {
                sha256_digest const next = sha256().update(last).finish();
                std::copy(last.begin() + 32, last.end(), last.begin());
                std::copy(next.begin(), next.end(), last.begin() + 64);
            }
            std::copy(last.begin() + 64, last.end(), seed.begin());
        }
        CHECK(hex(seed) == digest);
    }
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

// herring: tests of net/handshake.hpp: what a proof and a key depend on.
// SPDX-License-Identifier: Apache-2.0
#include "herring/net/handshake.hpp"

#include "herring/crypto/random.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <set>

namespace control_wire_transcript_test {

using herring::detail::bytes_of;
using herring::detail::secret_key;
using herring::detail::wire::transcript;

std::set<std::array<std::byte, 32>> seen;
void differs(std::array<std::byte, 32> const& proof) { CHECK(seen.insert(proof).second); }
std::array<std::byte, 32> bytes(secret_key const& key) {
    std::array<std::byte, 32> made{};
    std::memcpy(made.data(), key.bytes().data(), made.size());
    return made;
}

TEST_CASE("transcript: secret, protocol, messages and their borders, role, purpose and what is sent along "
          "all count") {
    secret_key const one(herring::detail::random_nonce()), two(herring::detail::random_nonce());
    auto const a = bytes_of("aa"), b = bytes_of("b"), ab = bytes_of("a"), bb = bytes_of("ab");
    transcript const base(one, "p", {a, b});
    CHECK(base.prove("r", {}) == transcript(one, "p", {a, b}).prove("r", {}));
    differs(base.prove("r", {}));
    differs(base.prove("s", {}));
    differs(base.prove("r", b));
    differs(transcript(two, "p", {a, b}).prove("r", {}));
    differs(transcript(one, "q", {a, b}).prove("r", {}));
    differs(transcript(one, "p", {ab, bb}).prove("r", {})); // the same bytes, cut elsewhere
    differs(transcript(one, "p", {a}).prove("r", {}));
    differs(bytes(base.key("r")));
    differs(bytes(base.key("proof")));
    differs(bytes(transcript(one, "p", {ab, bb}).key("r")));
    std::array<std::byte, 32> key{};
    base.wrap(key);
    differs(key);
    base.wrap(key);
    CHECK(key == std::array<std::byte, 32>{});
}

} // namespace control_wire_transcript_test

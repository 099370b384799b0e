// herring: tests of net/message_link.hpp: where a message ends, and what is none.
// SPDX-License-Identifier: Apache-2.0
#include "herring/net/message_link.hpp"

#include "herring/control/wire/message_kind.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstddef>
#include <span>

using namespace herring::detail;
using state = parsed_message::state;

namespace {

secret_key const one(random_nonce()), two(random_nonce());

parsed_message parsed(message_link& link, std::size_t most = 64) {
    return link.parse(0, [&](wire::head const&) { return most; });
}
void send(message_link& link, std::span<std::byte const> body) {
    link.append(wire::message_kind::contribute, 3, 7, body, sha256().update(body).finish(), 9);
}

} // namespace

TEST_CASE("message_link: a message is whole with its last byte, and says before how many are due") {
    message_link from, to;
    from.keys.emplace(one, two);
    to.keys.emplace(two, one);
    std::byte const body[5]{};
    send(from, body);
    std::size_t const all = from.out.size();
    for (std::size_t i = 0; i < all; ++i) {
        parsed_message const part = parsed(to);
        CHECK(part.is == state::incomplete);
        CHECK(part.bytes == (i < wire::head_bytes ? wire::head_bytes : all));
        to.in.append(std::span<std::byte const>(from.out).subspan(i, 1));
    }
    parsed_message const whole = parsed(to);
    CHECK(whole.is == state::whole);
    CHECK(whole.bytes == all);
    CHECK(whole.front.version == 9);
    CHECK(whole.front.rank == 3);
    CHECK(whole.front.sequence == 7);
    CHECK(std::ranges::equal(whole.body, body));
}

TEST_CASE("message_link: what is no message is told by what is wrong with it") {
    std::byte const body[5]{};
    message_link foreign, plain;
    foreign.in.append(bytes_of("GE"));
    CHECK(parsed(foreign).is == state::foreign);
    send(plain, body);
    plain.in.append(plain.out);
    CHECK(parsed(plain, 4).is == state::too_long);
    CHECK(parsed(plain, 5).is == state::whole);
    plain.in.data()[wire::head_bytes] ^= std::byte{1};
    CHECK(parsed(plain).is == state::damaged);
    message_link tagged;
    tagged.keys.emplace(one, two);
    send(tagged, body);
    tagged.in.append(tagged.out); // came back to its sender
    CHECK(parsed(tagged).is == state::forged);
    tagged.in.data()[8] ^= std::byte{1};
    CHECK(parsed(tagged).is == state::foreign);
}

// herring: tests of net/handshake.hpp: what is proved, by whom, and that nothing recorded proves it again.
// SPDX-License-Identifier: Apache-2.0
#include "herring/net/handshake.hpp"

#include "herring/control/wire/messages.hpp"
#include "herring/crypto/random.hpp"

#include "doctest/doctest.h"
#include "toy_seals.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

using namespace herring::detail;
using wire::handshake;

namespace {

secret_key const& the_key() {
    static secret_key const key(random_nonce());
    return key;
}
byte_buffer challenge_of(std::byte salt, std::byte nonce) {
    wire::challenge made;
    made.salt.fill(salt);
    made.nonce.fill(nonce);
    made.has_secret = true;
    return made.write();
}
byte_buffer hello_of(std::uint32_t rank, std::byte nonce) {
    wire::hello made;
    made.rank = rank;
    made.size = 4;
    made.nonce.fill(nonce);
    made.has_secret = true;
    made.node = made.boot = "n";
    return made.write();
}

constexpr std::byte one{1}, two{2};

} // namespace

TEST_CASE("handshake: both ends prove the same, and agree on the world's key and the keys of messages") {
    handshake const rank(wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, two));
    handshake const rank_0(wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, two));
    CHECK(rank.proof_of_dialler() == rank_0.proof_of_dialler());
    wire::nonce const world_key = random_nonce();
    wire::nonce wrapped = world_key;
    rank_0.wrap(wrapped);
    CHECK(wrapped != world_key);
    CHECK(rank.proof_of_acceptor(wrapped) == rank_0.proof_of_acceptor(wrapped));
    rank.wrap(wrapped);
    CHECK(wrapped == world_key);
    std::array<std::byte, 32> const head{}, body{one};
    wire::message_keys a = rank.keys(false), b = rank_0.keys(true);
    for (int i = 0; i < 3; ++i) {
        CHECK(b.accepts(head, body, a.next(head, sha256().update(body).finish())));
        CHECK(a.accepts(head, body, b.next(head, sha256().update(body).finish())));
    }
}

TEST_CASE("handshake: another key, challenge, nonce, rank or role is another proof") {
    secret_key const other(random_nonce());
    handshake const base(wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, two));
    std::vector<wire::proof> proofs{base.proof_of_dialler(), base.proof_of_acceptor({}),
                                    base.proof_of_refusal(wire::refusal_front(0), {}),
                                    base.proof_of_refusal(wire::refusal_front(1), {})};
    auto const add = [&](handshake const& differs) { proofs.push_back(differs.proof_of_dialler()); };
    add(handshake(wire::rank_names, other, challenge_of(one, one), hello_of(1, two)));
    add(handshake(wire::rank_names, the_key(), challenge_of(two, one), hello_of(1, two)));
    add(handshake(wire::rank_names, the_key(), challenge_of(one, two), hello_of(1, two)));
    add(handshake(wire::rank_names, the_key(), challenge_of(one, one), hello_of(2, two)));
    add(handshake(wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, one)));
    // The same bytes, cut at another place.
    byte_buffer all, longer, shorter;
    all.append(challenge_of(one, one));
    all.append(hello_of(1, two));
    longer.append(std::span<std::byte const>(all).first(challenge_of(one, one).size() + 1));
    shorter.append(std::span<std::byte const>(all).subspan(longer.size()));
    add(handshake(wire::rank_names, the_key(), longer, shorter));
    // What an exchange shares goes into all of them, and so into the world's key as it is wrapped.
    for (secret_key const* const shared : {&other, &the_key()})
        add(handshake(wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, two), shared));
    for (std::size_t i = 0; i < proofs.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) CHECK(proofs[i] != proofs[j]);
    wire::nonce plain{}, mixed{};
    base.wrap(plain);
    handshake(wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, two), &other).wrap(mixed);
    CHECK(plain != mixed);
}

TEST_CASE(
    "handshake: seals are of one direction and what the exchange shares, and their keys not those of tags") {
    secret_key const shared(random_nonce()), other(random_nonce());
    auto const seen = [&](secret_key const* by) {
        return handshake(wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, two), by);
    };
    auto const opens = [](wire::frame_seal from, wire::frame_seal at) {
        byte_buffer out;
        REQUIRE(from.append(out, wire::message_kind::leave, 1, 0, {}, wire::protocol_version));
        return at.open_head(
            std::span<std::byte, wire::sealed_head_bytes>(out.data(), wire::sealed_head_bytes));
    };
    seal_provider const& by = toy_seals::table();
    CHECK(opens(seen(&shared).seal(false, by), seen(&shared).seal(true, by)));
    CHECK(opens(seen(&shared).seal(true, by), seen(&shared).seal(false, by)));
    CHECK_FALSE(opens(seen(&shared).seal(false, by), seen(&shared).seal(false, by))); // reflected
    CHECK_FALSE(opens(seen(&shared).seal(false, by), seen(&other).seal(true, by)));
    CHECK_FALSE(opens(seen(&shared).seal(false, by), seen(nullptr).seal(true, by)));
}

TEST_CASE("handshake: the key of resumptions is of one handshake, the same at both ends") {
    handshake const rank(wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, two));
    handshake const rank_0(wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, two));
    secret_key const same = rank.resumption_key();
    CHECK(equal_in_constant_time(same.bytes(), rank_0.resumption_key().bytes()));
    handshake const others[] = {
        {wire::rank_names, the_key(), challenge_of(one, two), hello_of(1, two)},
        {wire::rank_names, the_key(), challenge_of(one, one), hello_of(2, two)},
        {wire::rank_names, secret_key(random_nonce()), challenge_of(one, one), hello_of(1, two)},
        {wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, two), &same}};
    for (handshake const& other : others)
        CHECK_FALSE(equal_in_constant_time(same.bytes(), other.resumption_key().bytes()));
}

TEST_CASE("handshake: a tag is of one direction, one number, one head and one body") {
    handshake const seen(wire::rank_names, the_key(), challenge_of(one, one), hello_of(1, two));
    std::array<std::byte, 32> const head{}, odd{one};
    sha256_digest const digest = sha256().update(odd).finish();
    auto const fresh = [&] { return std::pair(seen.keys(false), seen.keys(true)); };
    {
        auto [rank, rank_0] = fresh();
        CHECK_FALSE(rank.accepts(head, odd, rank.next(head, digest))); // reflected
    }
    {
        auto [rank, rank_0] = fresh();
        auto const first = rank.next(head, digest);
        CHECK(rank_0.accepts(head, odd, first));
        CHECK_FALSE(rank_0.accepts(head, odd, first)); // repeated
    }
    {
        auto [rank, rank_0] = fresh();
        (void)rank.next(head, digest); // left out
        CHECK_FALSE(rank_0.accepts(head, odd, rank.next(head, digest)));
    }
    for (int what = 0; what < 4; ++what) {
        auto [rank, rank_0] = fresh();
        auto tag = rank.next(head, digest);
        if (what == 0) CHECK_FALSE(rank_0.accepts(odd, odd, tag));
        if (what == 1) CHECK_FALSE(rank_0.accepts(head, head, tag));
        if (what == 2) CHECK_FALSE(rank_0.accepts(head, odd, std::span(tag).first(15)));
        tag[15] ^= one;
        if (what == 3) CHECK_FALSE(rank_0.accepts(head, odd, tag));
    }
}

TEST_CASE("handshake: a challenge, a hello, a resume and an admission come back, and nothing that is cut, "
          "longer or "
          "odd does") {
    byte_buffer const asked = challenge_of(one, two);
    wire::challenge read;
    REQUIRE(read.read(asked));
    CHECK(read.salt[15] == one);
    CHECK(read.nonce[31] == two);
    CHECK(read.has_secret);
    for (std::size_t size = 0; size < asked.size(); ++size)
        CHECK_FALSE(read.read(std::span<std::byte const>(asked).first(size)));
    std::vector<std::byte> odd(asked.begin(), asked.end());
    CHECK_FALSE(read.seals);
    odd.back() = std::byte{3}; // a secret, and it seals
    CHECK((read.read(odd) && read.has_secret && read.seals));
    for (std::byte const none :
         {two, std::byte{4}, std::byte{5}, std::byte{0xFF}}) { // nobody seals without a secret
        odd.back() = none;
        CHECK_FALSE(read.read(odd));
    }
    odd.back() = one;
    odd.push_back(one);
    CHECK_FALSE(read.read(odd));

    wire::admit told;
    told.proof.fill(one);
    told.wrapped.fill(two);
    byte_buffer const admission = told.write();
    wire::admit heard;
    REQUIRE(heard.read(admission));
    CHECK(heard.proof == told.proof);
    CHECK(heard.wrapped == told.wrapped);
    for (std::size_t size = 0; size < admission.size(); ++size)
        CHECK_FALSE(heard.read(std::span<std::byte const>(admission).first(size)));

    wire::resume again;
    again.nonce.fill(one);
    again.rank = 3;
    again.incarnation = 5;
    again.job = 7;
    again.attempt = 9;
    byte_buffer const words = again.write();
    wire::resume said;
    REQUIRE(said.read(words));
    CHECK(said.nonce == again.nonce);
    CHECK((said.rank == 3 && said.incarnation == 5 && said.job == 7 && said.attempt == 9));
    for (std::size_t size = 0; size < words.size(); ++size)
        CHECK_FALSE(said.read(std::span<std::byte const>(words).first(size)));
    std::vector<std::byte> longer(words.begin(), words.end());
    longer.push_back(one);
    CHECK_FALSE(said.read(longer));

    std::span<std::byte const> before;
    wire::proof end{};
    CHECK_FALSE(wire::split_proof(std::span<std::byte const>(admission).first(31), before, end));
    REQUIRE(wire::split_proof(admission, before, end));
    CHECK(before.size() == 32);
    CHECK(end == told.wrapped);
}

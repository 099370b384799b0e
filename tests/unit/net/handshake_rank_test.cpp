// herring: tests of net/handshake.hpp: a rank's reply, and what proves rank 0 to it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/net/handshake.hpp"

#include "herring/control/wire/messages.hpp"

#include "doctest/doctest.h"
#include "toy_seals.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

using namespace herring::detail;
using wire::dialler_handshake, wire::rank_names, wire::refusal_front;

namespace {

wire::challenge asks(bool seals = false) {
    wire::challenge made;
    made.nonce = random_nonce();
    made.has_secret = true;
    made.seals = seals;
    return made;
}
wire::hello hello_of(std::uint32_t rank) {
    wire::hello made;
    made.rank = rank;
    made.size = 4;
    made.has_secret = true;
    made.node = made.boot = "n";
    return made;
}

/// A rank's reply, as rank 0 reads it.
struct heard {
    byte_buffer reply;
    std::span<std::byte const> words{};
    wire::proof shown{};
    wire::hello said{};
    heard(dialler_handshake& rank, wire::challenge const& asked, std::uint32_t number,
          seal_provider const* seals, secret_key const* by) {
        REQUIRE(rank.reply(rank_names, reply, asked.write(), asked, hello_of(number), seals, by));
        REQUIRE(wire::split_proof(reply, words, shown));
        REQUIRE(said.read(words));
    }
};

} // namespace

TEST_CASE("rank_handshake: both prove to each other that they have the secret") {
    secret_key const key(random_nonce()), other(random_nonce());
    wire::challenge const asked = asks();
    byte_buffer const challenge = asked.write();
    dialler_handshake rank;
    wire::admit told;
    CHECK_FALSE(rank.begun());
    CHECK_FALSE(rank.proves(told.proof, told.wrapped)); // nothing was proved
    heard const at_0(rank, asked, 2, nullptr, &key);
    CHECK(rank.begun());
    CHECK(at_0.said.rank == 2);
    wire::handshake const rank_0(rank_names, key, challenge, at_0.words),
        false_0(rank_names, other, challenge, at_0.words);
    CHECK(at_0.shown == rank_0.proof_of_dialler());
    told.proof = false_0.proof_of_acceptor(told.wrapped);
    CHECK_FALSE(rank.proves(told.proof, told.wrapped));
    told.proof = rank_0.proof_of_acceptor(told.wrapped);
    CHECK(rank.proves(told.proof, told.wrapped));
    told.wrapped[0] ^= std::byte{1};
    CHECK_FALSE(rank.proves(told.proof, told.wrapped));
    CHECK(rank.keys().proof_of_dialler() == rank_0.proof_of_dialler());
    heard const again(rank, asked, 2, nullptr, &key);
    CHECK(again.said.nonce != at_0.said.nonce);
    rank.reset();
    CHECK_FALSE(rank.begun());
}

TEST_CASE("rank_handshake: a refusal is rank 0's if it proves so, with that number") {
    secret_key const key(random_nonce());
    wire::challenge const asked = asks();
    byte_buffer const challenge = asked.write();
    dialler_handshake rank;
    heard const at_0(rank, asked, 2, nullptr, &key);
    wire::handshake const rank_0(rank_names, key, challenge, at_0.words);
    byte_buffer const& words = challenge; // any
    byte_buffer body;
    body.append(words);
    body.append(rank_0.proof_of_refusal(refusal_front(1), words));
    std::span<std::byte const> read = body;
    CHECK_FALSE(rank.proves_refusal(refusal_front(0), body, read));
    CHECK_FALSE(rank.proves_refusal(refusal_front(1), words, read));
    CHECK(read.size() == body.size()); // as it was
    REQUIRE(rank.proves_refusal(refusal_front(1), body, read));
    CHECK(read.size() == words.size());
    rank.reset();
    CHECK_FALSE(rank.proves_refusal(refusal_front(1), body, read));
}

TEST_CASE("rank_handshake: without a key nothing is proved") {
    wire::challenge const asked = asks();
    dialler_handshake rank;
    heard const at_0(rank, asked, 1, nullptr, nullptr);
    CHECK(at_0.shown == wire::proof{});
    CHECK_FALSE(rank.begun());
}

TEST_CASE("rank_handshake: where both seal, what they share by an exchange goes into the proofs") {
    secret_key const key(random_nonce());
    key_exchange const rank_0s(toy_seals::table());
    wire::challenge asked = asks(true);
    asked.nonce = rank_0s.shown();
    byte_buffer const challenge = asked.write();
    dialler_handshake rank;
    heard const at_0(rank, asked, 1, &toy_seals::table(), &key);
    secret_key shared;
    REQUIRE(rank_0s.agree(at_0.said.nonce, shared));
    CHECK(at_0.shown == wire::handshake(rank_names, key, challenge, at_0.words, &shared).proof_of_dialler());
    CHECK(at_0.shown != wire::handshake(rank_names, key, challenge, at_0.words).proof_of_dialler());
    asked.nonce.fill(std::byte{0}); // a key with which everybody knows what is shared
    dialler_handshake refused;
    byte_buffer none;
    CHECK_FALSE(
        refused.reply(rank_names, none, asked.write(), asked, hello_of(1), &toy_seals::table(), &key));
    CHECK_FALSE(refused.begun());
}

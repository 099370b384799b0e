// herring: tests of ensemble/messages.hpp: what is proved, by whom, and that nothing recorded proves it again.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/messages.hpp"

#include "herring/crypto/random.hpp"
#include "herring/net/handshake.hpp"

#include "doctest/doctest.h"
#include "herring/control/wire/messages.hpp"

#include <array>
#include <cstddef>
#include <set>
#include <string>

namespace ensemble_admission_test {

namespace ensembles = herring::detail::ensembles;
namespace wire = herring::detail::wire;
using ensembles::admission_names;
using ensembles::lane_names;
using herring::detail::bytes_of;
using herring::detail::secret_key;

TEST_CASE("admission: another secret, challenge, hello, role, body or protocol is another proof") {
    secret_key const one(herring::detail::random_nonce()), two(herring::detail::random_nonce());
    auto const a = bytes_of("challenge"), b = bytes_of("hello"), c = bytes_of("other");
    std::set<wire::proof> proofs;
    auto const add = [&](wire::proof const& next) { CHECK(proofs.insert(next).second); };
    wire::handshake const base(admission_names, one, a, b);
    add(base.proof_of_dialler());
    add(base.proof_of_acceptor({}));
    add(base.proof_of_acceptor(c));
    add(base.proof_of_refusal({}, {}));
    add(base.proof_of_refusal({}, c));
    add(wire::handshake(admission_names, two, a, b).proof_of_dialler());
    add(wire::handshake(admission_names, one, c, b).proof_of_dialler());
    add(wire::handshake(admission_names, one, a, c).proof_of_dialler());
    add(wire::handshake(lane_names, one, a, b).proof_of_dialler());
    add(wire::handshake(lane_names, one, a, b).proof_of_acceptor({}));
    add(wire::handshake(wire::rank_names, one, a, b).proof_of_dialler());
    CHECK(wire::handshake(admission_names, one, a, b).proof_of_dialler() == base.proof_of_dialler());
}

TEST_CASE("admission: both ends agree on the lane's key and on the keys of messages") {
    secret_key const secret(herring::detail::random_nonce());
    wire::handshake const member(admission_names, secret, bytes_of("a"), bytes_of("b")),
        frontend(admission_names, secret, bytes_of("a"), bytes_of("b"));
    wire::nonce const key = herring::detail::random_nonce();
    wire::nonce wrapped = key;
    frontend.wrap(wrapped);
    CHECK(wrapped != key);
    member.wrap(wrapped);
    CHECK(wrapped == key);
    std::array<std::byte, 32> const head{};
    auto const digest = herring::detail::sha256().finish();
    wire::message_keys at_member = member.keys(false), at_frontend = frontend.keys(true);
    wire::message_tag const first = at_member.next(head, digest);
    CHECK(at_frontend.accepts(head, {}, first));
    CHECK_FALSE(at_frontend.accepts(head, {}, first)); // again
    CHECK_FALSE(at_member.accepts(head, {}, first));   // to where it came from
}

} // namespace ensemble_admission_test

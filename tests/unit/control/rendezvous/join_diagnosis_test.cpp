// herring: tests of control/rendezvous/join_diagnosis.hpp: what the error of a rank that has not joined says.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/rendezvous/join_diagnosis.hpp"

#include "herring/crypto/secret_key.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <string>
#include <string_view>

using herring::errc;
using herring::failure;
using herring::detail::bytes_of;
using herring::detail::rendezvous::join_diagnosis;
using namespace std::chrono_literals;

namespace {

join_diagnosis of_rank_3() { return {3, "10.0.0.1:4711", 20s}; }

bool says(failure const& why, std::string_view words) {
    return std::string_view(why.text).find(words) != std::string_view::npos;
}

failure refusal(std::string_view words) { return failure::make(errc::mismatch, 3, 0, "join", words); }

} // namespace

TEST_CASE("join_diagnosis: nobody takes connections") {
    failure const why = of_rank_3().timed_out(false, "10.0.0.1:4711: Connection refused");
    CHECK(why.what == errc::timeout);
    CHECK(why.reporter == 3);
    CHECK(why.peer == 0);
    CHECK(says(why, "no answer from rank 0 on 10.0.0.1:4711 within 20 s (last: 10.0.0.1:4711: Connection "
                    "refused); see whether rank 0 runs"));
    CHECK(says(of_rank_3().timed_out(false, ""), "within 20 s; see whether rank 0 runs"));
}

TEST_CASE("join_diagnosis: what answers is silent, another program, or without the secret") {
    join_diagnosis seen = of_rank_3();
    CHECK(says(seen.timed_out(true, "trouble"), "takes connections and does not answer within 20 s"));
    seen.unproven();
    CHECK(says(seen.timed_out(true, "trouble"), "has not proved that it has this rank's secret"));
    seen.foreign(bytes_of("SSH-2.0-OpenSSH_9\r\n"));
    CHECK(says(seen.timed_out(true, "trouble"), "is not Herring: it sent 'SSH-2.0-OpenSSH_9'; another"));
    seen.foreign(bytes_of("\x01"));
    CHECK(says(seen.timed_out(true, "trouble"), "it sent bytes that are no control message; another"));
    seen.foreign(bytes_of(std::string(100, 'x')));
    CHECK(says(seen.timed_out(true, ""), "it sent '" + std::string(60, 'x') + "'; another"));
}

TEST_CASE("join_diagnosis: where rank 0 says whom it waits for, they are named") {
    join_diagnosis seen = of_rank_3();
    seen.missing() = {2, "ranks 2, 5"};
    failure const why = seen.timed_out(true, "");
    CHECK(why.peer == 2);
    CHECK(says(why, "ranks 2, 5 did not join rank 0 on 10.0.0.1:4711 within 20 s"));
}

TEST_CASE("join_diagnosis: who has proved nothing is believed when it has said the same three times in two "
          "seconds") {
    join_diagnosis seen = of_rank_3();
    herring::time_point const begun = herring::clock::now();
    CHECK_FALSE(seen.believes(refusal("go away"), begun));
    CHECK_FALSE(seen.believes(refusal("go away"), begun + 1s));
    CHECK_FALSE(seen.believes(refusal("another size"), begun + 2s)); // begins anew
    CHECK_FALSE(seen.believes(refusal("another size"), begun + 3s));
    CHECK_FALSE(seen.believes(refusal("another size"), begun + 3'900ms)); // too soon
    CHECK(seen.believes(refusal("another size"), begun + 4s));
    CHECK(seen.unverified().what == errc::mismatch);
    CHECK(says(seen.unverified(), "what answers on 10.0.0.1:4711 says, unverified: another size"));
    CHECK(says(seen.timed_out(false, ""), "unverified: another size"));
    CHECK_FALSE(says(seen.timed_out(true, ""), "unverified")); // it takes connections again
}

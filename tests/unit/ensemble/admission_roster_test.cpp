// herring: tests of ensemble/admission_roster.hpp: who gets which place, who is refused, and who takes over.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/admission_roster.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ensemble_admission_roster_test {

namespace ensembles = herring::detail::ensembles;
using ensembles::admission_roster;
using herring::admission_refusal;
using herring::lane;

ensembles::shape const own{"speech", "combine::mean", "float", 8, 32, 64, "v1"};

ensembles::hello hello_of(std::string const& name, std::uint32_t replica, std::uint64_t incarnation) {
    ensembles::hello made;
    made.name = name;
    made.replica = replica;
    made.incarnation = incarnation;
    made.shape = own;
    return made;
}
admission_roster::decision decide(admission_roster const& at, ensembles::hello const& said) {
    return at.decide(said, own, lane::any, true, true);
}
std::string error_of(std::vector<std::string> const& names, std::uint32_t replicas) {
    try {
        admission_roster const made(names, replicas);
    } catch (herring::error const& why) {
        CHECK(why.code() == herring::errc::bad_argument);
        return why.what();
    }
    return {};
}

TEST_CASE("admission_roster: a place is member times replicas and the replica's number; names can be added "
          "at the end") {
    admission_roster at({"a", "b"}, 2);
    CHECK(decide(at, hello_of("a", 0, 1)).peer == 0);
    CHECK(decide(at, hello_of("a", 1, 1)).peer == 1);
    CHECK(decide(at, hello_of("b", 1, 1)).peer == 3);
    CHECK(decide(at, hello_of("c", 0, 1)).reason == admission_refusal::member);
    CHECK(decide(at, hello_of("c", 0, 1)).text.find("no 'c'; it has 'a', 'b'") != std::string::npos);
    CHECK(decide(at, hello_of("a", 2, 1)).reason == admission_refusal::replica);
    at.add("c");
    CHECK(decide(at, hello_of("c", 0, 1)).peer == 4);
    CHECK(at.peers() == 6);
}

TEST_CASE("admission_roster: the newer of two processes takes over, and the older one stays out") {
    admission_roster at({"a"}, 1);
    at.take(decide(at, hello_of("a", 0, 10)).peer, 10);
    CHECK(decide(at, hello_of("a", 0, 10)).reason == admission_refusal::none); // on a new connection
    CHECK_FALSE(decide(at, hello_of("a", 0, 10)).takes_over);
    CHECK(decide(at, hello_of("a", 0, 9)).reason == admission_refusal::replaced);
    CHECK(decide(at, hello_of("a", 0, 11)).takes_over);
    at.take(0, 11);
    CHECK(decide(at, hello_of("a", 0, 10)).reason == admission_refusal::replaced);
    at.gone(0, 10); // late news of the older one
    CHECK(decide(at, hello_of("a", 0, 9)).reason == admission_refusal::replaced);
    at.gone(0, 11);
    CHECK(decide(at, hello_of("a", 0, 10)).reason == admission_refusal::replaced); // it was told so
    CHECK(decide(at, hello_of("a", 0, 9)).reason ==
          admission_refusal::none); // a time of day that was set back
}

TEST_CASE("admission_roster: lanes that both have") {
    admission_roster const at({"a"}, 1);
    ensembles::hello said = hello_of("a", 0, 1);
    auto const reason = [&](lane member, lane frontend, bool memory, bool same) {
        said.lanes = member;
        return at.decide(said, own, frontend, memory, same).reason;
    };
    CHECK(reason(lane::any, lane::any, false, false) == admission_refusal::none);
    CHECK(reason(lane::tcp, lane::any, true, true) == admission_refusal::none);
    CHECK(reason(lane::shared, lane::any, true, true) == admission_refusal::none);
    CHECK(reason(lane::shared, lane::any, true, false) == admission_refusal::lane);
    CHECK(reason(lane::any, lane::shared, true, false) == admission_refusal::lane);
    CHECK(reason(lane::shared, lane::any, false, true) == admission_refusal::lane);
    CHECK(reason(lane::shared, lane::tcp, true, true) == admission_refusal::lane);
    CHECK(reason(lane::tcp, lane::shared, true, true) == admission_refusal::lane);
}

TEST_CASE("admission_roster: names are unique lines of up to 128 bytes") {
    CHECK(error_of({"a", "b"}, 2).empty());
    CHECK(error_of({"a", "a"}, 1).find("'a' twice") != std::string::npos);
    CHECK(error_of({""}, 1).find("empty") != std::string::npos);
    CHECK(error_of({std::string(129, 'x')}, 1).find("1 to 128 bytes") != std::string::npos);
    CHECK(error_of({"a\nb"}, 1).find("no line") != std::string::npos);
    CHECK(error_of({"a\x07"}, 1).find("'a?'") != std::string::npos);
    CHECK(error_of({"a"}, 0).find("replicas is 0") != std::string::npos);
    CHECK(error_of({"a"}, 65).find("1 to 64") != std::string::npos);
    std::vector<std::string> many;
    for (int i = 0; i < 1025; ++i) many.push_back(std::to_string(i));
    CHECK(error_of(many, 1).find("more than 1024") != std::string::npos);
}

} // namespace ensemble_admission_roster_test

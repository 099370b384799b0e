// herring: tests of ensemble/member_links.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/member_links.hpp"

#include "doctest/doctest.h"

namespace ensemble_member_link_test {

using namespace herring::detail::ensembles;

struct numbered {
    int number;
    explicit numbered(int of) : number(of) {}
};

TEST_CASE("ensemble member link: requests wait in order, as many as there are credits") {
    member_link<numbered> link(2, 3, 77);
    CHECK(link.lane.number == 77);
    CHECK(link.frontend == 2);
    CHECK(link.is_open);
    waiting_request request;
    CHECK_FALSE(link.pop(request));
    std::uint64_t in = 0, out = 0;
    for (int round = 0; round < 7; ++round) {
        while (link.waiting() < 3) CHECK(link.push({.id = in++}));
        CHECK_FALSE(link.push({.id = 1000}));
        for (int i = 0; i < 1 + round % 3; ++i) {
            REQUIRE(link.pop(request));
            CHECK(request.id == out++);
        }
    }
}

TEST_CASE("ensemble member link: without credits nothing waits") {
    member_link<numbered> link(0, 0, 1);
    waiting_request request;
    CHECK_FALSE(link.push({.id = 1}));
    CHECK_FALSE(link.pop(request));
}

} // namespace ensemble_member_link_test

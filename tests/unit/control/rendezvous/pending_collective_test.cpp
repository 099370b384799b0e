// herring: tests of control/rendezvous/pending_collective.hpp: who has come, who is in another call, what all get.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/rendezvous/pending_collective.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

using namespace herring;
using detail::rendezvous::pending_collective;
using detail::wire::message_kind;

TEST_CASE("pending_collective: an all_gather, with the bytes of all in order of rank") {
    pending_collective pending(3);
    CHECK(pending.empty());
    std::array<std::byte, 2> const two{std::byte{1}, std::byte{2}};
    pending.add(2, message_kind::contribute, two);
    CHECK_FALSE(pending.empty());
    CHECK(pending.has(2));
    CHECK(pending.absent() == std::vector<int>{0, 1});
    CHECK(pending.first_conflict(message_kind::contribute) == -1);
    CHECK(pending.first_conflict(message_kind::barrier) == 2);
    pending.add(0, message_kind::contribute, {});
    CHECK(pending.first_conflict(message_kind::barrier) == 0); // the lowest that has come
    CHECK_FALSE(pending.complete());
    pending.add(1, message_kind::contribute, std::span(two).first(1));
    REQUIRE(pending.complete());
    auto const body = pending.take();
    CHECK(pending.empty());
    CHECK(pending.first_conflict(message_kind::barrier) == -1);

    gather_result all;
    REQUIRE(detail::rendezvous::unpack(body, 3, all));
    REQUIRE(all.size() == 3);
    CHECK(std::as_const(all)[0].empty());
    CHECK(std::as_const(all)[1].size() == 1);
    REQUIRE(std::as_const(all)[2].size() == 2);
    CHECK(std::as_const(all)[2][1] == std::byte{2});
    for (std::size_t size = 0; size < body.size(); ++size)
        CHECK_FALSE(detail::rendezvous::unpack(std::span<std::byte const>(body).first(size), 3, all));
}

TEST_CASE("pending_collective: a barrier has no bytes") {
    pending_collective pending(2);
    pending.add(0, message_kind::barrier, {});
    pending.add(1, message_kind::barrier, {});
    CHECK(pending.kind() == message_kind::barrier);
    CHECK(pending.complete());
    CHECK(pending.take().size() == 0);
    CHECK(pending.empty());
}

// herring: tests of model/roles.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/roles.hpp"

#include "doctest/doctest.h"

#include <type_traits>

using namespace herring;

namespace {
template <class A, class B>
concept comparable = requires(A a, B b) {
    a == b;
};
} // namespace

TEST_CASE("ids: one kind is no other, and no int") {
    CHECK(comparable<peer_id, peer_id>);
    CHECK_FALSE(comparable<peer_id, server_id>);
    CHECK_FALSE(comparable<contributor_id, server_id>);
    CHECK_FALSE(comparable<peer_id, int>);
    CHECK_FALSE(std::is_convertible_v<peer_id, int>);
    CHECK_FALSE(std::is_convertible_v<int, peer_id>);
    CHECK_FALSE(std::is_convertible_v<server_id, contributor_id>);
    CHECK(sizeof(peer_id) == sizeof(int));
    CHECK(std::is_trivially_copyable_v<peer_id>);
}

TEST_CASE("ids: none unless given, in the order of their numbers, and back to a place in a table") {
    static_assert(peer_id{} == peer_id{-1});
    static_assert(peer_id{2} < peer_id{3} && peer_id{3} != peer_id{2});
    static_assert(peer_id::at(7) == peer_id{7} && peer_id{7}.place() == 7);
}

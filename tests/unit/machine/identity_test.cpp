// herring: tests of machine/identity.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/identity.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <set>
#include <string>

#include <sched.h>

using namespace herring;

TEST_CASE("identity: random bits are never 0, and differ") {
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 100; ++i) seen.insert(detail::random_bits());
    CHECK(seen.size() == 100);
    CHECK(seen.count(0) == 0);
}

TEST_CASE("identity: the hash is FNV-1a, and goes on where another ended") {
    CHECK(detail::hash_of("", 0) == 0xCBF29CE484222325u);
    CHECK(detail::hash_of("a", 1) == 0xAF63DC4C8601EC8Cu);
    CHECK(detail::hash_of("foobar", 6) == 0x85944171F73967E8u);
    CHECK(detail::hash_of("bar", 3, detail::hash_of("foo", 3)) == detail::hash_of("foobar", 6));
}

TEST_CASE("identity: a node is named by host, boot and network namespace") {
    std::string const node = detail::node_identity();
    CHECK(node == detail::node_identity());
    CHECK(node.starts_with(detail::host_name() + "/" + detail::boot_id() + "/net:"));
    CHECK(detail::boot_id().size() >= 12);
}

TEST_CASE("identity: usable cores are those that the thread may run on") {
    cpu_set_t before, one;
    REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
    CHECK(detail::usable_cores() == CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core)
        if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
    REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(detail::usable_cores() == 1);
    REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
}

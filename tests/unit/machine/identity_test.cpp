// herring: tests of machine/identity.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/identity.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <fstream>
#include <set>
#include <string>

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

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

using herring::detail::small_file;

TEST_CASE("small_file: the whole contents, however many reads they take") {
    std::string path = "/tmp/herring-test-XXXXXX";
    int const file = ::mkstemp(path.data());
    REQUIRE(file >= 0);
    ::close(file);
    CHECK(small_file(path).empty());
    std::string text;
    for (int line = 0; text.size() < 10'000; ++line) text += std::to_string(line) + "\n";
    text += '\0'; // as in /proc/self/cmdline
    text += "last";
    std::ofstream(path, std::ios::binary) << text;
    CHECK(small_file(path) == text);
    ::unlink(path.c_str());
    CHECK(small_file(path).empty()); // there is none
}

TEST_CASE("small_file: a folder, which cannot be read, is empty") { CHECK(small_file("/proc").empty()); }

TEST_CASE("small_file: a file of /proc, which has no size before it is read") {
    CHECK(small_file("/proc/self/stat").starts_with(std::to_string(::getpid()) + " "));
}

TEST_CASE("small_file: of a file without an end only so much") {
    CHECK(small_file("/dev/zero").size() == herring::detail::most_of_a_small_file);
}

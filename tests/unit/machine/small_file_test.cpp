// herring: tests of machine/identity.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/identity.hpp"

#include "doctest/doctest.h"

#include <fstream>
#include <string>

#include <stdlib.h>
#include <unistd.h>

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

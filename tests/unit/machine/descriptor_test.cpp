// herring: tests of machine/descriptor.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/descriptor.hpp"

#include "doctest/doctest.h"

#include <utility>

#include <fcntl.h>

using herring::detail::descriptor;

namespace {
int opened() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }
} // namespace

TEST_CASE("descriptor: is closed with its scope, unless it was released") {
    int const closed = opened(), released = opened();
    {
        descriptor const first(closed);
        descriptor second(released);
        CHECK(first.get() == closed);
        CHECK(second.release() == released);
        CHECK(second.get() == -1);
    }
    CHECK_FALSE(is_open(closed));
    CHECK(is_open(released));
    ::close(released);
}

TEST_CASE("descriptor: moves; what was held before is closed with what it was moved from") {
    int const one = opened(), other = opened();
    descriptor kept(one);
    kept = descriptor(other);
    CHECK(kept.get() == other);
    CHECK_FALSE(is_open(one));
    descriptor const taken(std::move(kept));
    CHECK(taken.get() == other);
    CHECK(is_open(other));
}

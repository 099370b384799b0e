// herring: tests of base/manual_lifetime.hpp. SPDX-License-Identifier: Apache-2.0
#include <herring/base/manual_lifetime.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

namespace {

struct counted {
    explicit counted(int& alive, bool fails = false) : alive_(alive) {
        if (fails) throw std::runtime_error("no");
        ++alive_;
    }
    counted(counted const&) = delete;
    ~counted() { --alive_; }
    int& alive_;
};

} // namespace

TEST_CASE("late: nothing is made before emplace, and what was made ends with its owner") {
    int alive = 0;
    {
        herring::detail::manual_lifetime<counted> never;
        herring::detail::manual_lifetime<counted> made;
        CHECK(!never);
        CHECK(!made);
        CHECK(alive == 0);
        CHECK(&made.emplace(alive) == &*made);
        CHECK(made);
        CHECK(made->alive_ == 1);
    }
    CHECK(alive == 0);
}

TEST_CASE("late: what could not be made is not destroyed") {
    int alive = 0;
    {
        herring::detail::manual_lifetime<counted> failed;
        CHECK_THROWS_AS(failed.emplace(alive, true), std::runtime_error);
        CHECK(!failed);
    }
    CHECK(alive == 0);
}

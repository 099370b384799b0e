// herring: tests of the call mark in step/calls.hpp: one call at a time, and who holds it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/step/calls.hpp"

#include "doctest/doctest.h"

#include <thread>

using herring::detail::call_mark;

TEST_CASE("call_mark: taken by one call, refused to the others, and free again") {
    call_mark mark;
    for (int n = 0; n < 2; ++n) {
        CHECK(mark.take() == call_mark::taken::yes);
        CHECK(mark.take() == call_mark::taken::by_itself);
        std::thread([&] { CHECK(mark.take() == call_mark::taken::by_another_one); }).join();
        CHECK(mark.take() == call_mark::taken::by_itself); // who was refused has changed nothing
        mark.release();
    }
    std::thread([&] {
        CHECK(mark.take() == call_mark::taken::yes);
        mark.release();
    }).join();
    CHECK(mark.take() == call_mark::taken::yes);
}

// herring: tests of trace/trace.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/trace.hpp"

#include "doctest/doctest.h"

TEST_CASE("off: empty, and constant") {
    CHECK(std::is_empty_v<herring::trace::off>);
    CHECK(std::is_trivial_v<herring::trace::off>);
    static_assert((herring::trace::off()(herring::trace_event::wait_begin, 0), true));
}

// herring: tests of trace/trace.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/trace.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <limits>
#include <string_view>

namespace {
struct counting {
    using axis = herring::axes::trace;
    int seen = 0;
    void operator()(herring::trace_event, std::uint32_t) noexcept { ++seen; }
};
struct may_throw {
    using axis = herring::axes::trace;
    void operator()(herring::trace_event, std::uint32_t) {}
};
struct no_index {
    using axis = herring::axes::trace;
    void operator()(herring::trace_event) noexcept {}
};
} // namespace

TEST_CASE("trace: the concept") {
    CHECK(herring::trace_policy<counting>);
    CHECK_FALSE(herring::trace_policy<may_throw>);
    CHECK_FALSE(herring::trace_policy<no_index>);
}

TEST_CASE("trace: every event has a name of its own") {
    using enum herring::trace_event;
    herring::trace_event const all[] = {tensor_ready, bucket_submitted, bucket_reduced, wait_begin, wait_end};
    for (auto const a : all) {
        CHECK(to_string(a) != std::string_view("unknown"));
        for (auto const b : all) CHECK((a == b) == (to_string(a) == std::string_view(to_string(b))));
    }
}

TEST_CASE("trace: no_bucket is the number of no bucket") {
    static_assert(herring::no_bucket == std::numeric_limits<std::uint32_t>::max());
}

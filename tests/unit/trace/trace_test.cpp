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
struct detailed {
    using axis = herring::axes::trace;
    static constexpr herring::trace_facts facts{.details = true};
    herring::trace_event seen{};
    int peer = 0;
    void record(herring::trace_event event, herring::trace_details const& of) noexcept {
        seen = event;
        peer = of.peer;
    }
};
struct both {
    using axis = herring::axes::trace;
    static constexpr herring::trace_facts facts{.attaches = true};
    void operator()(herring::trace_event, std::uint32_t) noexcept {}
    void attach(herring::trace_context const&) {}
};
struct without_facts : counting {
    void record(herring::trace_event, herring::trace_details const&) noexcept {}
};
struct fact_beside_facts : counting {
    static constexpr bool details = true;
};
struct promises_more : counting {
    static constexpr herring::trace_facts facts{.details = true};
};
struct promises_less : detailed {
    static constexpr herring::trace_facts facts{};
    void operator()(herring::trace_event, std::uint32_t) noexcept {}
};
struct details_may_throw {
    using axis = herring::axes::trace;
    static constexpr herring::trace_facts facts{.details = true};
    void record(herring::trace_event, herring::trace_details const&) {}
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

TEST_CASE("trace: details and attach are stated, and never found by silence") {
    CHECK(herring::trace_policy<detailed>);
    CHECK(herring::trace_policy<both>);
    CHECK_FALSE(herring::trace_policy<without_facts>);
    CHECK_FALSE(herring::trace_policy<fact_beside_facts>);
    CHECK_FALSE(herring::trace_policy<promises_more>);
    CHECK_FALSE(herring::trace_policy<promises_less>);
    CHECK_FALSE(herring::trace_policy<details_may_throw>);
    CHECK(herring::detail::traces_details<detailed>);
    CHECK_FALSE(herring::detail::traces_details<counting>);
    CHECK(herring::detail::trace_attaches<both>);
    CHECK_FALSE(herring::detail::trace_attaches<counting>);
}

TEST_CASE("trace: every event has a name of its own") {
    herring::trace_event all[herring::trace_event_count];
    for (int i = 0; i < herring::trace_event_count; ++i) all[i] = static_cast<herring::trace_event>(i);
    CHECK(to_string(static_cast<herring::trace_event>(herring::trace_event_count)) ==
          std::string_view("unknown"));
    for (auto const a : all) {
        CHECK(to_string(a) != std::string_view("unknown"));
        for (auto const b : all) CHECK((a == b) == (to_string(a) == std::string_view(to_string(b))));
    }
}

TEST_CASE("trace: no_bucket is the number of no bucket") {
    static_assert(herring::no_bucket == std::numeric_limits<std::uint32_t>::max());
}

TEST_CASE("off: empty, and constant") {
    CHECK(std::is_empty_v<herring::trace::off>);
    CHECK(std::is_trivial_v<herring::trace::off>);
    static_assert((herring::trace::off()(herring::trace_event::wait_begin, 0), true));
}

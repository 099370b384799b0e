// herring: tests of sync/sync.hpp: what models the concept, and what does not.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sync/sync.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <type_traits>
#include <vector>

namespace {
namespace axes = herring::axes;
using herring::sync::ballot;
struct plain {
    using axis = axes::sync;
    static constexpr herring::sync_facts facts{};
    bool due(std::size_t) const noexcept { return true; }
    void agreed(ballot const&) noexcept {}
};
struct votes : plain {
    static constexpr herring::sync_facts facts{.votes = true};
    ballot vote() noexcept { return {}; }
};
struct votes_for_nobody : votes {
    static constexpr herring::sync_facts facts{};
};
struct observes : votes {
    static constexpr herring::sync_facts facts{.observes = true, .votes = true, .ahead = 0};
    void observe(std::size_t, double) noexcept {}
};
struct does_not_observe : votes {
    static constexpr herring::sync_facts facts{.observes = true, .votes = true};
};
struct far_ahead : plain {
    static constexpr herring::sync_facts facts{.ahead = 2};
};
struct owns : plain {
    std::vector<double> norms;
};
} // namespace

TEST_CASE("sync: policies") {
    CHECK(herring::sync_policy<herring::sync::every_step>);
    CHECK(herring::sync_policy<plain>);
    CHECK(herring::sync_policy<votes>);
    CHECK(herring::sync_policy<observes>);
    CHECK_FALSE(herring::sync_policy<votes_for_nobody>);
    CHECK_FALSE(herring::sync_policy<does_not_observe>);
    CHECK_FALSE(herring::sync_policy<far_ahead>);
    CHECK_FALSE(herring::sync_policy<owns>);
}

TEST_CASE("sync: what a reducer asks") {
    CHECK_FALSE(herring::detail::skips_steps<herring::sync::every_step>);
    CHECK(herring::detail::skips_steps<plain>);
    CHECK_FALSE(herring::detail::ranks_vote<herring::sync::every_step>());
    CHECK_FALSE(herring::detail::ranks_vote<plain>());
    CHECK(herring::detail::ranks_vote<observes>());
}

TEST_CASE("ballot: a bit a bucket, shared beyond 512") {
    herring::sync::ballot one;
    CHECK_FALSE(one.any());
    one.set(65);
    one.set(511);
    for (std::size_t b = 0; b < 1200; ++b) CHECK(one.has(b) == (b % 512 == 65 || b % 512 == 511));
    CHECK(one.any());
    one.set(1024 + 3);
    CHECK(one.has(3));
    CHECK(herring::sync::ballot::all().has(300));
    CHECK(one != herring::sync::ballot::all());
}

TEST_CASE("every_step: empty") {
    CHECK(std::is_empty_v<herring::sync::every_step>);
    CHECK(herring::policy_name<herring::sync::every_step>() == "every_step");
}

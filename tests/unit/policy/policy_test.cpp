// herring: tests of policy.hpp: order-free packs, defaults, names. What must not compile is in
// tests/must_fail.
// SPDX-License-Identifier: Apache-2.0
// Own object: it includes few headers, for policies that are declared and no more.
#include "herring/policy.hpp"

#include "herring/session/defaults.hpp"
#include "herring/update/rules.hpp"
#include "herring/waiting/waiting.hpp"

#include "doctest/doctest.h"

#include <string>
#include <type_traits>
#include <vector>

namespace {

struct line_facts {
    bool keeps_order = true;
};
struct line {
    using axis = herring::axes::transport;
    static constexpr char const* name = "line";
    static constexpr line_facts facts{};
};

// A need of one's own, and a policy that has it next to a built-in one.
struct lines_only {
    template <class Pack> struct check {
        static constexpr bool value = std::is_same_v<typename Pack::transport, line>;
    };
};
struct demanding : herring::update::sum {
    using needs = herring::needs<lines_only, herring::need::ordered>;
};

} // namespace

using herring::resolve_t;

TEST_CASE("policy: a pack is one type, whatever the order") {
    using a = resolve_t<float, line, herring::update::sum, herring::waiting::spin>;
    CHECK(std::is_same_v<a, resolve_t<float, herring::waiting::spin, line, herring::update::sum>>);
    CHECK(std::is_same_v<a, resolve_t<float, herring::update::sum, herring::waiting::spin, line>>);
    CHECK(std::is_same_v<a::transport, line>);
    CHECK(std::is_same_v<a::update, herring::update::sum>);
    CHECK(std::is_same_v<a::waiting, herring::waiting::spin>);
    CHECK(std::is_same_v<a::element, float>);
}

TEST_CASE("policy: a default may be named, and the type stays the same") {
    CHECK(std::is_same_v<resolve_t<float, line>, resolve_t<float, herring::sharding::balanced, line>>);
    CHECK(std::is_same_v<
          resolve_t<float, line>,
          resolve_t<float, line, herring::waiting::adaptive_with<herring::waiting::adaptive_tuning{}>>>);
    CHECK_FALSE(std::is_same_v<resolve_t<float, line>, resolve_t<double, line>>);
}

TEST_CASE("policy: what is left out takes its default") {
    using pack = resolve_t<double, line>;
    CHECK(
        std::is_same_v<pack,
                       herring::policies<double, line, herring::intra_node::none, herring::sharding::balanced,
                                         herring::placement::colocated, herring::fusion::balanced_buffer<>,
                                         herring::update::unnamed_average, herring::optimizer::none,
                                         herring::sync::every_step, herring::progress::caller,
                                         herring::waiting::adaptive, herring::trace::off>>);
}

TEST_CASE("policy: a derived policy is for the axis of its base") {
    CHECK(std::is_same_v<resolve_t<float, demanding, line>::update, demanding>);
}

TEST_CASE("policy: a policy that is sound is checked without a word") {
    static_assert(herring::checked_policy<herring::update::sum>);
    static_assert(herring::checked_policy<demanding>);
    static_assert(herring::checked_policy<herring::intra_node::none>);
    static_assert(herring::checked_policy<herring::fusion::balanced_buffer<>>);
}

TEST_CASE("policy: every element type has a pack") {
    CHECK(std::is_same_v<resolve_t<float, line>::element, float>);
    CHECK(std::is_same_v<resolve_t<double, line>::element, double>);
    CHECK(std::is_same_v<resolve_t<herring::bfloat16, line>::element, herring::bfloat16>);
    CHECK(std::is_same_v<resolve_t<herring::float16, line>::element, herring::float16>);
    CHECK(std::is_same_v<resolve_t<std::int32_t, line, herring::update::sum>::element, std::int32_t>);
    CHECK(std::is_same_v<resolve_t<std::int64_t, line, herring::update::sum>::element, std::int64_t>);
}

TEST_CASE("policy: facts of a pack, axis by axis, in one order") {
    std::vector<std::string> seen;
    int agree = 0;
    for (auto const& fact : herring::policy_facts<resolve_t<float, herring::update::sum, line>>::all) {
        seen.push_back(std::string(fact.axis) + "=" + std::string(fact.name));
        agree += fact.must_agree ? 1 : 0;
    }
    REQUIRE(seen.size() == 11);
    CHECK(seen[0] == "transport=line");
    CHECK(seen[1] == "intra_node=none");
    CHECK(seen[5] == "update=sum");
    CHECK(seen[7] == "sync=every_step");
    CHECK(seen[10] == "trace=off");
    CHECK(agree == 8);
}

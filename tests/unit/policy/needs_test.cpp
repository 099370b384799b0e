// herring: tests of policy/needs.hpp: which packs meet the needs that every pack has, and those of a policy.
// SPDX-License-Identifier: Apache-2.0
#include "herring/policy/needs.hpp"

#include "doctest/doctest.h"

#include <type_traits>

namespace {
struct update_facts {
    bool associative = true, lifts = false;
};
struct node_facts {
    bool joins_ranks = true, device_memory = false, host_staging = false, sums_on_device = false;
};
struct transport_facts {
    bool keeps_order = false, device_memory = false;
};
template <update_facts Facts = update_facts{}> struct rule {
    static constexpr update_facts facts = Facts;
    template <class Element> static constexpr bool supports = std::is_floating_point_v<Element>;
};
template <node_facts Facts = node_facts{}> struct node { static constexpr node_facts facts = Facts; };
template <transport_facts Facts = transport_facts{}> struct line {
    static constexpr transport_facts facts = Facts;
};

template <class Element, class Transport, class IntraNode, class Update> struct pack {
    using element = Element;
    using transport = Transport;
    using intra_node = IntraNode;
    using update = Update;
};

// Whether a need says that it is met. Asked of its value, so that no sentence is printed; tests/must_fail has the sentences.
template <class Need, class Pack>
concept met = Need::template check<Pack>::value;

struct never {
    template <class Pack> struct check { static constexpr bool value = false; };
};
struct always {
    template <class Pack> struct check { static constexpr bool value = true; };
};
struct demanding {
    using needs = herring::needs<always, never>;
};
struct content {
    using needs = herring::needs<always>;
};
using usual = pack<float, line<>, node<>, rule<>>;
} // namespace

TEST_CASE("needs: a usual pack has all that every pack needs") {
    CHECK(herring::detail::needs_met<usual>(herring::detail::needs_of_every_pack()));
    CHECK(met<herring::need::update_for_element, usual>);
}

TEST_CASE("needs: a policy's own are met by all policies or not") {
    using herring::detail::needs_of_policies_met;
    CHECK(needs_of_policies_met<usual>());
    CHECK(needs_of_policies_met<usual, line<>, content>());
    CHECK_FALSE(needs_of_policies_met<usual, content, demanding>());
    CHECK_FALSE(herring::detail::needs_met<usual>(herring::needs<never>()));
}

TEST_CASE("needs: what joins ranks and what is folded rank by rank") {
    using apart = node<node_facts{.joins_ranks = false}>;
    using minus = rule<update_facts{.associative = false}>;
    CHECK(met<herring::need::associative_where_ranks_join, pack<float, line<>, apart, minus>>);
    CHECK(met<herring::need::associative_where_ranks_join, usual>);
}

TEST_CASE("needs: memory that the transport reaches, or that is staged") {
    using far = node<node_facts{.device_memory = true, .host_staging = true}>;
    using near = node<node_facts{.device_memory = true}>;
    using direct = line<transport_facts{.device_memory = true}>;
    CHECK(met<herring::need::reachable_memory, pack<float, line<>, far, rule<>>>);
    CHECK(met<herring::need::reachable_memory, pack<float, direct, near, rule<>>>);
    CHECK(met<herring::need::reachable_memory, usual>);
}

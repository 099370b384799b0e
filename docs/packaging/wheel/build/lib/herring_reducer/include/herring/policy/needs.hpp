// herring: the needs of a policy: requirements on the rest of its pack.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_NEEDS_HPP
#define HERRING_POLICY_NEEDS_HPP

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/check.hpp"

namespace HERRING_NAMESPACE {

/// The requirements of a policy on the rest of its pack: `using needs = herring::needs<need::ordered>;`.
///
/// A need is any type with `template <class Pack> struct check`, which has `value` and asserts it with a
/// sentence; `Pack` is `policies<...>`. A need reads the facts of other policies. The built-in needs are in
/// `herring::need`.
template <class... Needs> struct needs {};

/// The built-in needs; user-defined policies may use them too.
namespace need {

/// The update rule takes the element type: its `supports<Element>` is true. Every pack has this need.
struct update_for_element {
    template <class Pack> struct check {
        static constexpr bool silent = !requires { Pack::update::template supports<typename Pack::element>; };
        static constexpr bool value = silent || requires {
            requires bool(Pack::update::template supports<typename Pack::element>);
        };
        static_assert(value,
                      "[HRG-M01] update: this rule does not take the element type; a common slip is a "
                      "reducer of integers with the default herring::update::average, which divides; "
                      "name herring::update::sum, min or max, or reduce a floating-point type; bool takes "
                      "logical_and, logical_or, min and max; a struct of your own needs the operator that "
                      "the rule is made of, + or <");
    };
};

/// A rule with `associative = false` is folded rank by rank, so no policy may combine the ranks of a node
/// first. Every pack has this need.
struct associative_where_ranks_join {
    template <class Pack> struct check {
        static constexpr bool joined = Pack::intra_node::facts.joins_ranks;
        static constexpr bool refuses = !Pack::update::facts.associative;
        static constexpr bool value = !joined || !refuses;
        static_assert(
            value, "[HRG-M06] update: this rule is not associative (its facts say so), and the "
                   "intra_node policy combines the ranks of a node before the nodes; a common slip is to add "
                   "shared_memory to a pack that did without; name herring::intra_node::none, which folds "
                   "rank by rank");
    };
};

/// Tensors on devices have an element type that kernels of devices take. Every pack has this need.
struct elements_of_devices {
    template <class Pack> struct check {
        static constexpr bool on_device = Pack::intra_node::facts.device_memory;
        static constexpr bool known = requires {
            requires bool(element<typename Pack::element>::on_devices);
        };
        static constexpr bool value = !on_device || known;
        static_assert(
            value,
            "[HRG-M08] intra_node: its tensors lie on devices, which take floats, and integers of 32 and 64 "
            "bits, and the element is another type; a common slip is to add pcie_staging to a pack that did "
            "without; name herring::intra_node::shared_memory, or reduce such numbers");
    };
};

/// The host sums with a rule that lifts contributions: device kernels do not lift. Every pack has this need.
struct lifted_by_the_host {
    template <class Pack> struct check {
        static constexpr bool on_device = Pack::intra_node::facts.sums_on_device;
        static constexpr bool lifts = Pack::update::facts.lifts;
        static constexpr bool value = !on_device || !lifts;
        static_assert(
            value, "[HRG-M07] update: this rule has a lift, and the intra_node policy sums on devices, whose "
                   "kernels do not lift; a common slip is a sum of squares with nvlink; name "
                   "herring::intra_node::pcie_staging, or lift the tensors before they are made ready");
    };
};

/// The transport can access the memory in which the intra_node policy keeps tensors, or that policy stages
/// tensors through the host (`host_staging`). Every pack has this need.
struct reachable_memory {
    template <class Pack> struct check {
        static constexpr bool on_device = Pack::intra_node::facts.device_memory;
        static constexpr bool staged = Pack::intra_node::facts.host_staging;
        static constexpr bool value = [] {
            if constexpr (on_device && !staged)
                return Pack::transport::facts.device_memory;
            else
                return true;
        }();
        static_assert(
            value, "[HRG-M02] intra_node: its tensors stay on a device, and this transport reaches host "
                   "memory only (its facts.device_memory is false); a common slip is nvlink over TCP; name "
                   "herring::intra_node::pcie_staging, or a transport that has device_memory");
    };
};

/// The transport delivers the messages of one peer in the order in which the peer sent them.
struct ordered {
    template <class Pack> struct check {
        static constexpr bool value = Pack::transport::facts.keeps_order;
        static_assert(
            value,
            "[HRG-M04] transport: a policy of this pack needs messages in order, and this transport "
            "does not keep it (its facts.keeps_order is false); a common slip is EFA, whose SRD reorders; "
            "name an ordered transport, or a policy that addresses by tag");
    };
};

} // namespace need

namespace detail {

using needs_of_every_pack =
    needs<need::update_for_element, need::reachable_memory, need::associative_where_ranks_join,
          need::lifted_by_the_host, need::elements_of_devices>;

// Both functions stop at the first need that is not met. Plain recursion: compilers print every enclosing
// template with a sentence, and a conjunction over a pack prints pages.
template <class Pack> constexpr bool needs_met(needs<>) noexcept { return true; }
template <class Pack, class Need, class... Rest> constexpr bool needs_met(needs<Need, Rest...>) noexcept {
    if constexpr (!holds<typename Need::template check<Pack>>)
        return false;
    else
        return detail::needs_met<Pack>(needs<Rest...>());
}
template <class Pack> constexpr bool needs_of_policies_met() noexcept { return true; }
template <class Pack, class Policy, class... Rest> constexpr bool needs_of_policies_met() noexcept {
    if constexpr (requires { typename Policy::needs; }) {
        if constexpr (!detail::needs_met<Pack>(typename Policy::needs()))
            return false;
        else
            return detail::needs_of_policies_met<Pack, Rest...>();
    } else {
        return detail::needs_of_policies_met<Pack, Rest...>();
    }
}

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_NEEDS_HPP

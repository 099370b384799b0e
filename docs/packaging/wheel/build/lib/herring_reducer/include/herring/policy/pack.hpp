// herring: a pack: one policy per axis, and the names by which ranks compare their packs.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_PACK_HPP
#define HERRING_POLICY_PACK_HPP

#include "herring/base/config.hpp"
#include "herring/base/type_name.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/axes.hpp"

#include <string_view>

namespace HERRING_NAMESPACE {

namespace detail {

// A set of policies. Overload resolution finds the policy of an axis, or its default.
template <class Axis, class Policy> struct slot { using type = Policy; };
template <class... Policy> struct policy_set : slot<typename Policy::axis, Policy>... {};
template <class Axis, class Policy> slot<Axis, Policy> find_policy(slot<Axis, Policy> const*);
template <class Axis> default_policy<Axis> find_policy(void const*);
template <class Axis, class Set>
using policy_for = typename decltype(detail::find_policy<Axis>(static_cast<Set const*>(nullptr)))::type;

} // namespace detail

/// The canonical pack: one policy per axis, in the order of `HERRING_AXES`, whatever the order that the user
/// wrote.
///
/// `of<axes::transport>` is the policy of an axis; each axis is a member type too: `transport`, `intra_node`,
/// ...
template <class Element, class... Policy> struct policies {
    using element = Element;
    template <class Axis> using of = detail::policy_for<Axis, detail::policy_set<Policy...>>;
// A declared name cannot have parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define HERRING_AXIS(axis, agree) using axis = of<axes::axis>;
    HERRING_AXES(HERRING_AXIS)
#undef HERRING_AXIS
};

namespace detail {
/// The pack with which sessions and engines are instantiated: elements as they are stored.
template <class Pack> struct stored { using type = Pack; };
template <class Element, class... Policy> struct stored<policies<Element, Policy...>> {
    using type = policies<stored_element<Element>, Policy...>;
};
template <class Pack> using stored_pack = typename stored<Pack>::type;
} // namespace detail

/// Replaces a refused pack, whose sentence has been printed and must be the only message.
template <class Element> struct rejected { using element = Element; };

template <class Pack> class basic_reducer;

/// A policy of a pack as other ranks see it.
struct policy_fact {
    std::string_view axis, name;
    bool must_agree = false;
};

/// The policies of a canonical pack, in its order: `all`. Ranks compare these lists at construction.
template <class Pack> struct policy_facts;
template <class Element, class... Policy> struct policy_facts<policies<Element, Policy...>> {
    static constexpr policy_fact all[sizeof...(Policy)] = {
        {Policy::axis::name, policy_name<Policy>(), Policy::axis::must_agree}...};
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_PACK_HPP

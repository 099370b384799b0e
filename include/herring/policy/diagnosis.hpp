// herring: the diagnosis of a pack: its first error, as a value.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_DIAGNOSIS_HPP
#define HERRING_POLICY_DIAGNOSIS_HPP

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/axes.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE {

/// The axis of a policy that `herring/policy/names.hpp` declares, and the sentence that names its header where it is not
/// defined. Empty for all other types.
template <class Policy> struct declared_policy {};

namespace detail {

enum class pack_error {
    none,
    missing_transport,
    not_a_policy,
    unknown_axis,
    cv_or_pointer,
    element,
    element_left_out,
    element_unfit,
    no_default,
    incomplete,
    header_left_out,
    polymorphic,
    nameless
};

template <class Policy>
concept complete = requires {
    sizeof(Policy);
};
template <class Policy>
concept with_axis = requires {
    typename Policy::axis;
};
// Of nullptr it is no constant. A name is not compared with nullptr: with g++'s sanitizers no address is constant then.
constexpr char first_letter(char const* name) noexcept { return *name; }
template <char Letter> inline constexpr bool is_letter = Letter != 0;
template <class Policy>
concept with_name = requires {
    detail::first_letter(Policy::name);
};
template <class Policy>
concept nameless = with_name<Policy> && !requires {
    requires is_letter<detail::first_letter(Policy::name)>;
};
template <class Axis>
concept with_default = requires {
    typename default_policy<Axis>::type;
};

// The error of a policy by itself.
template <class Policy> constexpr pack_error error_of_policy() noexcept {
    if constexpr (!std::is_same_v<Policy, std::remove_cvref_t<std::remove_pointer_t<Policy>>>)
        return pack_error::cv_or_pointer;
    else if constexpr (std::is_class_v<Policy> && !complete<Policy>)
        return with_axis<declared_policy<Policy>> ? pack_error::header_left_out : pack_error::incomplete;
    else if constexpr (!with_axis<Policy>)
        return pack_error::not_a_policy;
    else if constexpr (axis_index<typename Policy::axis> < 0)
        return pack_error::unknown_axis;
    else if constexpr (std::is_polymorphic_v<Policy>)
        return pack_error::polymorphic;
    else if constexpr (nameless<Policy>)
        return pack_error::nameless;
    else
        return pack_error::none;
}

// The error of a policy that is checked outside a pack: it may be for an ensemble.
template <class Policy> constexpr pack_error error_of_policy_alone() noexcept {
    constexpr pack_error found = error_of_policy<Policy>();
    if constexpr (found == pack_error::unknown_axis)
        return ensemble_axes::index_of<typename Policy::axis>() < 0 ? found : pack_error::none;
    else
        return found;
}

template <class Element> constexpr pack_error error_of_element() noexcept {
    if constexpr (is_element<Element>)
        return fit_element<Element> ? pack_error::none : pack_error::element_unfit;
    else if constexpr (with_axis<std::remove_cvref_t<Element>>)
        return pack_error::element_left_out;
    else
        return pack_error::element;
}

template <class... Policy> constexpr pack_error first_error_of_policies() noexcept {
    pack_error first = pack_error::none;
    (void)(((first = error_of_policy<Policy>()) != pack_error::none) || ...);
    return first;
}

// Index of the first axis that two policies name; -1 if none. Only for packs whose policies have no error.
template <class... Policy> constexpr int axis_named_twice() noexcept {
    bool seen[all_axes::size] = {};
    int doubled = -1;
    [[maybe_unused]] auto const visit = [&](int axis) { // not used for an empty pack
        if (seen[axis] && doubled < 0) doubled = axis;
        seen[axis] = true;
    };
    (visit(axis_index<typename Policy::axis>), ...);
    return doubled;
}

// Whether each axis of the list has a policy or a default. The transport has its own sentence.
template <class Axis, class... Policy> constexpr bool has_policy_or_default() noexcept {
    if constexpr ((std::is_same_v<Axis, typename Policy::axis> || ...))
        return true;
    else
        return with_default<Axis>;
}
template <class... Policy, class... Axes>
constexpr pack_error error_of_defaults(axis_list<Axes...>) noexcept {
    if (!(std::is_same_v<axes::transport, typename Policy::axis> || ...))
        return pack_error::missing_transport;
    return (detail::has_policy_or_default<Axes, Policy...>() && ...) ? pack_error::none
                                                                     : pack_error::no_default;
}

/// The first error of a pack. `doubled` is the index of an axis that is named twice, -1 if none is.
struct diagnosis {
    pack_error what = pack_error::none;
    int doubled = -1;
    constexpr bool sound() const noexcept { return what == pack_error::none && doubled < 0; }
};

// Replaces the element type where a policy is checked outside a pack.
struct no_pack {};

template <class Element, class... Policy> constexpr diagnosis diagnose() noexcept {
    if constexpr (!std::is_same_v<Element, no_pack> && error_of_element<Element>() != pack_error::none)
        return {error_of_element<Element>(), -1};
    else if constexpr (std::is_same_v<Element, no_pack>)
        return {error_of_policy_alone<Policy...>(), -1}; // one policy
    else if constexpr (first_error_of_policies<Policy...>() != pack_error::none)
        return {first_error_of_policies<Policy...>(), -1};
    else if constexpr (axis_named_twice<Policy...>() >= 0)
        return {pack_error::none, axis_named_twice<Policy...>()};
    else
        return {detail::error_of_defaults<Policy...>(all_axes()), -1};
}

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_DIAGNOSIS_HPP

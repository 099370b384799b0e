// herring: the pack of an ensemble: its axes, their defaults, and one sentence for each error in naming them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_PACK_HPP
#define HERRING_ENSEMBLE_PACK_HPP

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/names.hpp"
#include "herring/policy/policy.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE {

namespace detail::ensembles {

using axes_of_ensembles = axis_list<axes::combine, axes::wire, axes::outputs, axes::quorum, axes::waiting>;
template <class Axis> inline constexpr int axis_place = axes_of_ensembles::index_of<Axis>();

enum class pack_fault {
    none,
    element,
    element_left_out,
    policy, // `pack_sentences` has the sentence, for every kind of pack
    axis_of_reducers,
    transport_named,
    missing_combine,
    no_default
};

template <class Element> constexpr pack_fault fault_of_element() noexcept {
    if constexpr (is_element<Element>)
        return fit_element<Element> ? pack_fault::none : pack_fault::element;
    else if constexpr (with_axis<std::remove_cvref_t<Element>>)
        return pack_fault::element_left_out;
    else
        return pack_fault::element;
}

// Returns `Known` for an axis of ensembles, else the fault.
template <class Axis, pack_fault Known = pack_fault::none> constexpr pack_fault fault_of_axis() noexcept {
    if (std::is_same_v<Axis, axes::transport>) return pack_fault::transport_named;
    return axis_place<Axis> < 0 ? pack_fault::axis_of_reducers : Known;
}

template <class Policy> constexpr pack_fault fault_of_policy() noexcept {
    constexpr pack_error found = error_of_policy<Policy>();
    if constexpr (found == pack_error::none)
        return ensembles::fault_of_axis<typename Policy::axis>();
    else if constexpr (found == pack_error::header_left_out)
        return ensembles::fault_of_axis<typename declared_policy<Policy>::axis, pack_fault::policy>();
    else if constexpr (found == pack_error::unknown_axis)
        return axis_place<typename Policy::axis> < 0 ? pack_fault::policy : pack_fault::none;
    else
        return pack_fault::policy;
}

template <class... Policy> constexpr pack_fault first_fault_of_policies() noexcept {
    pack_fault first = pack_fault::none;
    (void)(((first = ensembles::fault_of_policy<Policy>()) != pack_fault::none) || ...);
    return first;
}

template <class... Policy> constexpr int place_named_twice() noexcept {
    bool seen[axes_of_ensembles::size] = {};
    int doubled = -1;
    [[maybe_unused]] auto const visit = [&](int place) { // not used for an empty pack
        if (seen[place] && doubled < 0) doubled = place;
        seen[place] = true;
    };
    (visit(axis_place<typename Policy::axis>), ...);
    return doubled;
}

template <class Axis, class... Policy>
inline constexpr bool is_named = (std::is_same_v<Axis, typename Policy::axis> || ...);

template <class... Policy, class... Axes> constexpr pack_fault fault_of_axes(axis_list<Axes...>) noexcept {
    if (!is_named<axes::combine, Policy...>) return pack_fault::missing_combine;
    return (detail::has_policy_or_default<Axes, Policy...>() && ...) ? pack_fault::none
                                                                     : pack_fault::no_default;
}

/// The first error of a pack. `doubled`: place of an axis that is named twice, −1 if none is.
struct pack_diagnosis {
    pack_fault what = pack_fault::none;
    int doubled = -1;
    constexpr bool sound() const noexcept { return what == pack_fault::none && doubled < 0; }
};

template <class Element, class... Policy> constexpr pack_diagnosis diagnose() noexcept {
    if constexpr (ensembles::fault_of_element<Element>() != pack_fault::none)
        return {ensembles::fault_of_element<Element>(), -1};
    else if constexpr (ensembles::first_fault_of_policies<Policy...>() != pack_fault::none)
        return {ensembles::first_fault_of_policies<Policy...>(), -1};
    else if constexpr (ensembles::place_named_twice<Policy...>() >= 0)
        return {pack_fault::none, ensembles::place_named_twice<Policy...>()};
    else
        return {ensembles::fault_of_axes<Policy...>(axes_of_ensembles()), -1};
}

// The sentences about the pack itself.
template <class Element, class... Policy> struct sentences {
    static constexpr pack_diagnosis found = ensembles::diagnose<Element, Policy...>();
    static constexpr pack_fault what = found.what;
    static constexpr bool value = found.sound();

    static_assert(
        what != pack_fault::transport_named,
        "[HRG-E09] transport: an ensemble names none, for it reaches members of its machine through "
        "shared memory and others over TCP; a common slip is a transport from the pack of a "
        "reducer, as in herring::ensemble<float, herring::transport::tcp, ...>; leave it out");
    static_assert(what != pack_fault::missing_combine,
                  "[HRG-E03] combine: none is named, and it has no default; a common slip is to expect a "
                  "mean; say of what, as in herring::combine::mean<herring::space::probability>");
#define HERRING_AXIS(axis, agree)                                                                            \
    static_assert(found.doubled != axis_place<axes::axis>,                                                   \
                  "[HRG-E04] " #axis ": named twice, and an axis takes one policy; a common slip is to add " \
                  "a policy beside the one that it replaces; keep one of the two");
    HERRING_ENSEMBLE_AXES(HERRING_AXIS)
    HERRING_AXIS(waiting, false)
#undef HERRING_AXIS
    static_assert(what != pack_fault::axis_of_reducers,
                  "[HRG-E05] policy: its axis is one of reducers, and an ensemble has combine, wire, "
                  "outputs, quorum and waiting; a common slip is an update rule where a combine rule "
                  "belongs, or intra_node::shared_memory, which needs no naming here; leave it out");
    static_assert(what != pack_fault::element,
                  "[HRG-E06] element: rows of this type cannot be combined; float, double, herring::float16 "
                  "and herring::bfloat16 can; a common slip is char or const; name one of these");
    static_assert(what != pack_fault::element_left_out,
                  "[HRG-E07] element: a policy stands where the element type belongs; a common slip is to "
                  "leave it out; write it first, as in herring::ensemble<float, ...>");
    static_assert(what != pack_fault::no_default,
                  "[HRG-E08] policy: an axis is left out whose default is not known here; a common slip is "
                  "to include herring/ensemble/pack.hpp alone; include <herring/ensemble.hpp>");
};

// Prints the sentence about the first type that is no policy.
template <class Policy, class... Rest> constexpr bool policies_are_sound() noexcept {
    if constexpr (ensembles::fault_of_policy<Policy>() == pack_fault::policy)
        return holds<pack_sentences<no_pack, Policy>>;
    else if constexpr (sizeof...(Rest) > 0)
        return ensembles::policies_are_sound<Rest...>();
    else
        return true;
}

/// The canonical pack: one policy per axis, whatever order the user wrote.
template <class Element, class... Policy> struct pack {
    using element = Element;
    template <class Axis> using of = policy_for<Axis, policy_set<Policy...>>;
    using combine = of<axes::combine>;
    using wire = of<axes::wire>;
    using outputs = of<axes::outputs>;
    using quorum = of<axes::quorum>;
    using waiting = of<axes::waiting>;
};

template <class Element, class Set, class List> struct filled;
template <class Element, class Set, class... Axes> struct filled<Element, Set, axis_list<Axes...>> {
    using type = pack<Element, policy_for<Axes, Set>...>;
};
template <bool Sound, class Element, class... Policy> struct resolved : detail::refuse<Element> {};
template <class Element, class... Policy> struct resolved<true, Element, Policy...> {
    using type = typename filled<Element, policy_set<Policy...>, axes_of_ensembles>::type;
};

/// Maps an element type and policies in any order to `pack<...>`.
///
/// Errors: one static_assert sentence: `[HRG-Enn]` for the pack, `[HRG-Pnn]` for a type that is no policy,
///         that of an axis for a policy that breaks one of its clauses; then the type is `rejected<Element>`.
template <class Element, class... Policy> struct resolve_pack {
    static constexpr bool sound = [] {
        if constexpr (ensembles::diagnose<Element, Policy...>().what == pack_fault::policy) {
            (void)ensembles::policies_are_sound<Policy...>();
            return false;
        } else if constexpr (!holds<sentences<Element, Policy...>>) {
            return false;
        } else {
            return detail::all_valid<Policy...>();
        }
    }();
    using type = typename resolved<sound, Element, Policy...>::type;
};
template <class Element, class... Policy> using resolve_t = typename resolve_pack<Element, Policy...>::type;

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_PACK_HPP

// herring: maps an element type and policies in any order to a pack.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_RESOLVE_HPP
#define HERRING_POLICY_RESOLVE_HPP

#include "herring/base/config.hpp"
#include "herring/policy/diagnosis.hpp"
#include "herring/policy/needs.hpp"
#include "herring/policy/pack.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE {

namespace detail {

// True if every policy models the concept of its axis. Stops at the first policy that does not.
template <class Policy, class... Rest> constexpr bool all_valid() noexcept {
    if constexpr (!holds<check<typename Policy::axis, Policy>>)
        return false;
    else if constexpr (sizeof...(Rest) > 0)
        return all_valid<Rest...>();
    else
        return true;
}

// Replaces a refused pack. The replacement has the user's element type, if spans of it can exist, so that the
// code around the pack compiles.
template <class Element>
concept lies_in_spans =
    std::is_object_v<Element> && complete<Element> && !std::is_abstract_v<Element> && !with_axis<Element>;
template <class Element> struct refuse {
    using plain = std::remove_cvref_t<Element>;
    using type = rejected<std::conditional_t<lies_in_spans<plain>, plain, float>>;
};

template <class Element, class Set, class List> struct fill;
template <class Element, class Set, class... Axes> struct fill<Element, Set, axis_list<Axes...>> {
    using type = policies<Element, policy_for<Axes, Set>...>;
};

template <bool Sound, class Element, class... Policy> struct build : refuse<Element> {};
template <class Element, class... Policy> struct build<true, Element, Policy...> {
    template <class Of> using filled = typename fill<Of, policy_set<Policy...>, all_axes>::type;
    using pack = filled<stored_element<Element>>;
    static constexpr bool fits = [] {
        if constexpr (!detail::needs_met<pack>(needs_of_every_pack()))
            return false;
        else
            return detail::needs_of_policies_met<pack, Policy...>();
    }();
    using type = std::conditional_t<fits, filled<Element>, typename refuse<Element>::type>;
};

template <class Policy> constexpr bool diagnose_alone() noexcept {
    if constexpr (holds<pack_sentences<no_pack, Policy>>)
        if constexpr (holds<with_axis_header<Policy>>) (void)holds<check<typename Policy::axis, Policy>>;
    return true; // the sentence has been printed
}

} // namespace detail

/// Checks a user-defined policy behind its definition: `static_assert(herring::checked_policy<mine>);`. The
/// compiler prints the sentence that a reducer would print for the first requirement that `mine` breaks,
/// `[HRG-Pnn]` or `[HRG-<axis>nn]`.
///
/// Result: true, also when a sentence was printed, so that the sentence is the only error. In a `requires`,
///         use the concept of the axis, `herring::<axis>_policy<mine>`, which prints no sentence.
/// Traps:  a policy's `needs`, its requirements on the rest of a pack, are checked at the reducer.
template <class Policy> inline constexpr bool checked_policy = detail::diagnose_alone<Policy>();

/// Maps an element type and policies in any order to `policies<...>`, with the defaults filled in.
///
/// Errors:  one static_assert sentence: `[HRG-Pnn]` for the pack itself, `[HRG-<axis>nn]` for a policy that
///          breaks a clause of its axis, `[HRG-Mnn]` for policies that do not fit together; then the type is
///          `rejected<Element>`. `docs/errors.md` has the cause and the fix of each sentence.
/// Traps:   not caught, because the compiler stops earlier: a value where a type belongs (`25_MiB`), a
///          template without its arguments (`balanced_buffer`), a bare brace list as a value
///          (clang refuses `adaptive_with<{...}>`; write `adaptive_with<adaptive_tuning{.spin_ns = 5000}>`).
template <class Element, class... Policy> struct resolve {
    static constexpr bool sound = [] {
        if constexpr (!holds<detail::pack_sentences<Element, Policy...>>)
            return false;
        else
            return detail::all_valid<Policy...>();
    }();
    using type = typename detail::build<sound, Element, Policy...>::type;
};

template <class Element, class... Policy> using resolve_t = typename resolve<Element, Policy...>::type;

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_RESOLVE_HPP

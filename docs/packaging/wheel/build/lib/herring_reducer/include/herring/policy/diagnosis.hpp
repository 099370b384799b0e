// herring: the diagnosis of a pack: its first error as a value, and the sentences that the compiler prints.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_DIAGNOSIS_HPP
#define HERRING_POLICY_DIAGNOSIS_HPP

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/axes.hpp"
#include "herring/policy/check.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE {

/// The axis of a policy that `herring/policy/names.hpp` declares, and the sentence that names its header
/// where the policy is not defined. Empty for all other types.
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
    element_other_bits,
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
// No constant expression for nullptr. Comparing the name with nullptr does not work: with g++'s sanitizers no
// address is a constant then.
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

// The error of a policy, without regard to the rest of its pack.
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

// The error of a policy that is checked outside a pack: the policy may be for an ensemble.
template <class Policy> constexpr pack_error error_of_policy_alone() noexcept {
    constexpr pack_error found = error_of_policy<Policy>();
    if constexpr (found == pack_error::unknown_axis)
        return ensemble_axes::index_of<typename Policy::axis>() < 0 ? found : pack_error::none;
    else
        return found;
}

template <class Element> constexpr pack_error error_of_element() noexcept {
    if constexpr (has_same_bits<Element>)
        return fits_as_stored<Element> ? pack_error::none : pack_error::element_other_bits;
    else if constexpr (is_element<Element>)
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
    [[maybe_unused]] auto const visit = [&](int axis) { // unused for an empty pack
        if (seen[axis] && doubled < 0) doubled = axis;
        seen[axis] = true;
    };
    (visit(axis_index<typename Policy::axis>), ...);
    return doubled;
}

// True if the axis has a policy or a default.
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

/// The first error of a pack. `doubled` is the index of an axis that is named twice; -1: none is.
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
        return {error_of_policy_alone<Policy...>(), -1}; // the pack is one policy
    else if constexpr (first_error_of_policies<Policy...>() != pack_error::none)
        return {first_error_of_policies<Policy...>(), -1};
    else if constexpr (axis_named_twice<Policy...>() >= 0)
        return {pack_error::none, axis_named_twice<Policy...>()};
    else
        return {detail::error_of_defaults<Policy...>(all_axes()), -1};
}

} // namespace detail

namespace detail {

// Prints the sentence about the first policy whose header is left out. Only for packs with such a policy.
template <class Policy, class... Rest> constexpr bool header_is_included() noexcept {
    if constexpr (error_of_policy<Policy>() == pack_error::header_left_out)
        return holds<typename declared_policy<Policy>::template header<false>>;
    else
        return header_is_included<Rest...>();
}

// The sentences about a pack. `value` is true if the pack has no error.
template <class Element, class... Policy> struct pack_sentences {
    static constexpr diagnosis found = diagnose<Element, Policy...>();
    static constexpr pack_error what = found.what;
    static constexpr bool value = [] {
        if constexpr (what == pack_error::header_left_out) // policy/names.hpp has the sentence
            return detail::header_is_included<Policy...>();
        else
            return found.sound();
    }();

    static_assert(
        what != pack_error::missing_transport,
        "[HRG-P01] transport: none is named, and it has no default; a common slip is to rely on one; add "
        "herring::transport::tcp, or herring::transport::inproc for threads of one process");
#define HERRING_AXIS(axis, agree)                                                                            \
    static_assert(found.doubled != axis_index<axes::axis>,                                                   \
                  "[HRG-P02] " #axis ": named twice, and an axis takes one policy; a "                       \
                  "common slip is to add a policy beside the one that it replaces; "                         \
                  "keep one of the two");
    HERRING_AXES(HERRING_AXIS)
#undef HERRING_AXIS
    static_assert(what != pack_error::not_a_policy,
                  "[HRG-P03] policy: this type is none, for it names no axis; a common slip is to leave out "
                  "'using axis = herring::axes::<axis>;' or 'public:'; add it to your type");
    static_assert(what != pack_error::unknown_axis,
                  "[HRG-P04] policy: the axis that this type names does not exist; a common slip is a tag of "
                  "one's own; 'axis' must be one of the types in namespace herring::axes");
    static_assert(
        what != pack_error::cv_or_pointer,
        "[HRG-P05] policy: this type is a pointer, a reference, or const; a common slip is "
        "'decltype((x))' or 'decltype(x)' of a const; give the plain type, as in 'std::remove_cvref_t<...>'");
    static_assert(
        what != pack_error::element,
        "[HRG-P06] element: tensors of this type cannot be reduced; float, double, herring::float16, "
        "herring::bfloat16, bool and integers of 8 to 64 bits can; a common slip is char or const; "
        "reduce one of these, or say is_element of a struct of your own");
    static_assert(what != pack_error::element_unfit,
                  "[HRG-P14] element: a type of your own has to be trivially copyable and default "
                  "constructible, of at most 256 "
                  "bytes (above 64 a multiple of 4) and an alignment of at most 64, and neither array "
                  "nor pointer; a common "
                  "slip is a std::string or std::vector in it; keep plain numbers");
    static_assert(what != pack_error::element_other_bits,
                  "[HRG-P15] element: same_bits_as names a type of another size or alignment, or that is no "
                  "element, or your type is not trivially copyable; a common slip is float16 for a class "
                  "that wraps a float; name the type of Herring's with these bits, or say is_element");
    static_assert(
        what != pack_error::element_left_out,
        "[HRG-P07] element: a policy stands where the element type belongs; a common slip is to leave it "
        "out; write it first, as in herring::reducer<float, ...>");
    static_assert(
        what != pack_error::no_default,
        "[HRG-P08] policy: an axis is left out whose default is not known here; a common slip is to include "
        "herring/policy.hpp alone; include <herring/reducer.hpp>");
    static_assert(what != pack_error::incomplete,
                  "[HRG-P09] policy: this type is declared, but not defined here; a common slip is to forget "
                  "its header; include herring/<axis>/<model>.hpp, or define your type above the reducer");
    static_assert(
        what != pack_error::polymorphic,
        "[HRG-P10] policy: this type has virtual functions, and nothing that moves bytes is "
        "virtual; a common slip is a common base with a virtual destructor; make it a template or remove "
        "'virtual'");
    static_assert(
        what != pack_error::nameless,
        "[HRG-P13] policy: its name is empty, or nullptr; a common slip is to fill it in later; ranks "
        "compare names and errors print them: give it the name of your type");
};

// The sentence about a policy that is checked outside a pack where the header of its axis is not included.
template <class Policy> struct with_axis_header {
    static constexpr bool value = !requires {
        typename check<typename Policy::axis, Policy>::axis_header_left_out;
    };
    static_assert(value,
                  "[HRG-P12] policy: what its axis asks for is not known here; a common slip is to include "
                  "herring/policy.hpp alone; include herring/<axis>/<axis>.hpp, or <herring/herring.hpp>");
};

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_DIAGNOSIS_HPP

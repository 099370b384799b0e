// herring: what an update policy is: how contributions become one result.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_UPDATE_HPP
#define HERRING_UPDATE_UPDATE_HPP

#include <concepts>
#include <type_traits>
#include <utility>

#include "herring/base/config.hpp"
#include "herring/element.hpp"
#include "herring/policy.hpp"

namespace HERRING_NAMESPACE {

namespace update {

/// The type of one lane: of `float` and of a vector of floats it is `float`.
template <class Acc> struct lane_of { using type = std::remove_cvref_t<decltype(std::declval<Acc&>()[0])>; };
template <class Acc>
requires(std::is_arithmetic_v<Acc> || std::is_class_v<Acc> || std::is_enum_v<Acc> || std::is_union_v<Acc>) //
    struct lane_of<Acc> {
    using type = Acc;
};
template <class Acc> using lane = typename lane_of<Acc>::type;

/// What built-in rules ask of a type of the user's: the operator that they are made of.
template <class Element>
concept added = element_type<Element> && requires(accumulator<Element> a) {
    { a + a } -> std::convertible_to<accumulator<Element>>;
};
template <class Element>
concept multiplied = element_type<Element> && requires(accumulator<Element> a) {
    { a* a } -> std::convertible_to<accumulator<Element>>;
};
template <class Element>
concept compared = element_type<Element> &&(
    requires(accumulator<Element> a) {
        { a < a } -> std::convertible_to<bool>;
        { a > a } -> std::convertible_to<bool>;
    } ||
    requires(accumulator<Element> a) {
        { least(a, a) } -> std::same_as<accumulator<Element>>;
        { greatest(a, a) } -> std::same_as<accumulator<Element>>;
    });

/// The finisher of policies whose total is the result.
struct as_is {
    template <class Acc> HERRING_HOST_DEVICE constexpr Acc operator()(Acc total) const noexcept {
        return total;
    }
};

} // namespace update

/// Clause: it says `using axis = herring::axes::update`.
template <class Policy>
concept update_names_its_axis = std::same_as<typename Policy::axis, axes::update>;

/// Clause: it has a name, for plans, digests and errors.
template <class Policy>
concept update_has_a_name = requires {
    { Policy::name } -> std::convertible_to<char const*>;
};

/// Clause: `supports<Element>` says at compile time which element types it makes sense for.
template <class Policy>
concept update_says_what_it_supports = requires {
    { Policy::template supports<float> } -> std::convertible_to<bool>;
};

/// Clause: `combine(Acc, Acc) noexcept → Acc`, called with scalars and with GNU vectors of them.
template <class Policy, class Acc = float>
concept update_combines = requires(Acc a, Acc b) {
    // clang-format off
    { Policy::combine(a, b) } noexcept -> std::same_as<Acc>;
    // clang-format on
};

/// Clause: `finish(Acc total, int ranks) noexcept → Acc`, once an element, when every rank's share is in.
template <class Policy, class Acc = float>
concept update_finishes = requires(Acc total, int ranks) {
    // clang-format off
    { Policy::finish(total, ranks) } noexcept -> std::same_as<Acc>;
    // clang-format on
};

/// Clause: `lift(Acc) noexcept → Acc`, if the rule has one: what is done to each contribution before they are combined.
template <class Policy, class Acc = float>
concept update_lifts = requires(Acc contribution) {
    // clang-format off
    { Policy::lift(contribution) } noexcept -> std::same_as<Acc>;
    // clang-format on
};

namespace clauses::update {
template <class Policy>
concept names_lift = requires {
    &Policy::template lift<float>;
}
|| requires { &Policy::lift; }
|| requires(float contribution) { Policy::lift(contribution); };
using floats [[gnu::vector_size(16)]] = float;
template <class Policy> constexpr bool called_with_vectors() noexcept {
    if constexpr (bool(Policy::takes_vectors))
        return update_combines<Policy, floats> && update_finishes<Policy, floats>;
    else
        return true;
}
} // namespace clauses::update

/// Clause: it says whether `combine` and `finish` may be called with vectors, and if so, they can be.
template <class Policy>
concept update_says_if_it_takes_vectors = requires {
    requires std::same_as<decltype(Policy::takes_vectors), bool const>;
    requires clauses::update::called_with_vectors<Policy>();
};

/// Clause: what it calls `lift` can be called, with vectors too if the rule takes them.
template <class Policy>
concept update_lift_can_be_called =
    !clauses::update::names_lift<Policy> ||
    (update_lifts<Policy> && (!bool(Policy::takes_vectors) || update_lifts<Policy, clauses::update::floats>));

/// How contributions are combined, and what is done with the total.
///
/// `takes_vectors` is true where `combine` and `finish` are made of operators and `?:` alone, so that one template
/// serves numbers and GNU vectors of them: a register at a time. No compiler can tell this before it has failed, so the
/// policy says it. With false they are called element by element, and may be any code.
///
/// Order: contributions are folded from the left, those of a node in the order of its ranks, then the sums of the nodes in
/// the order of the nodes. So `combine` need not be commutative, and has to be associative wherever ranks share a node:
/// with nodes {0, 1} and {2, 3} it is (x0 ∘ x1) ∘ (x2 ∘ x3). A rule that is not says so, `static constexpr bool associative
/// = false;`, and is refused where the intra_node policy joins ranks ([HRG-M06]). With intra_node::none each rank is a
/// node, and the fold is ((x0 ∘ x1) ∘ x2) ∘ x3. Rounding does not make a rule one that is not associative: `sum` says
/// nothing, its bits depend on which ranks share a node.
///
/// A rule may have a `lift`: it is applied once to every rank's contribution, in the accumulator's type, before they are
/// combined: squares of which the sum is taken, exponentials, weights by sign. Sums of a node's ranks, which travel to
/// other nodes, are lifted already. So the mean of the squares is `sum` with a lift that squares, and a finish that divides.
///
/// A policy may also have `with_finish<Acc>(int ranks, kernel)`, which decides once a call how to finish (ranks = 0: not at
/// all) and calls `kernel(finisher)`, where `finisher(total)` is inlined in the loop.
template <class Policy>
concept update_policy = update_names_its_axis<Policy> && update_has_a_name<Policy> &&
    update_says_what_it_supports<Policy> && update_combines<Policy> && update_finishes<Policy> &&
    update_says_if_it_takes_vectors<Policy> && update_lift_can_be_called<Policy>;

template <class Policy> struct check<axes::update, Policy> {
    static constexpr int broken =
        first_broken({update_has_a_name<Policy>, update_says_what_it_supports<Policy>,
                      update_combines<Policy>, update_finishes<Policy>,
                      update_says_if_it_takes_vectors<Policy>, update_lift_can_be_called<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-U01] update: needs 'static constexpr char const* name'; a common slip is to "
                  "leave it out; give it the name of your type");
    static_assert(broken != 1,
                  "[HRG-U02] update: needs 'template <class T> static constexpr bool supports'; a "
                  "common slip is to leave it out; say true for the types that it makes sense for");
    static_assert(
        broken != 2,
        "[HRG-U03] update: needs 'template <class Acc> static Acc combine(Acc, Acc) "
        "noexcept'; a common slip is to forget static or noexcept, or to keep a number in the rule, which "
        "has no state; take two Acc, and make the number a template value");
    static_assert(broken != 3,
                  "[HRG-U04] update: needs 'template <class Acc> static Acc finish(Acc total, int ranks) "
                  "noexcept'; a common slip is to leave it out; return total if nothing is to be done");
    static_assert(broken != 4,
                  "[HRG-U05] update: needs 'static constexpr bool takes_vectors', true where combine and "
                  "finish are operators alone, which vectors have; a common slip is an 'if' in combine; say "
                  "false, and they are called element by element");
    static_assert(broken != 5,
                  "[HRG-U06] update: lift, where a rule has one, has to be 'template <class Acc> static Acc "
                  "lift(Acc) noexcept'; a common slip is to forget static or noexcept, or to write it for "
                  "float alone; take any Acc, which is a vector of numbers too where takes_vectors is true");
};

/// Whether the policy makes sense for an element type (an average of integers does not).
template <class Policy, class Element>
concept update_supports = update_policy<Policy> && element_type<Element> &&
    bool(Policy::template supports<Element>);

} // namespace HERRING_NAMESPACE

#endif // HERRING_UPDATE_UPDATE_HPP

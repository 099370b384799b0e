// herring: what an update policy is: how contributions become one result.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_UPDATE_HPP
#define HERRING_UPDATE_UPDATE_HPP

#include <concepts>
#include <type_traits>
#include <utility>

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/policy.hpp"

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

/// What built-in rules ask of a user-defined element type: the operator that the rule applies.
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

/// What a rule promises, as `static constexpr update_facts facts{...};`.
struct update_facts {
    /// `combine`, `finish` and `lift` are made of operators and `?:` alone, so that one template serves numbers and GNU vectors
    /// of them: a register at a time. False: they are called element by element, and may be any code.
    bool takes_vectors = false;
    bool associative =
        true;           ///< but for rounding; false: refused where the ranks of a node are combined first
    bool lifts = false; ///< it has `lift`
    bool with_finish = false; ///< it has `with_finish`
};

namespace clauses::update {
using floats [[gnu::vector_size(16)]] = float;

// A lift by its name, whatever it takes.
template <class Policy>
concept names_lift = requires {
    &Policy::template lift<float>;
}
|| requires { &Policy::lift; }
|| requires(float contribution) { Policy::lift(contribution); };

// A fact beside `facts`, where nothing reads it.
template <class Policy>
concept states_facts_elsewhere = requires {
    Policy::takes_vectors;
}
|| requires { Policy::associative; }
|| requires { Policy::lifts; };

struct kernel {
    template <class Finish> void operator()(Finish const&) const noexcept {}
};
} // namespace clauses::update

/// Clause: it has `facts`, and states none of them elsewhere.
template <class Policy>
concept update_states_facts =
    states_facts<Policy, update_facts> && !clauses::update::states_facts_elsewhere<Policy>;

/// Clause: with the fact `takes_vectors`, `combine` and `finish` can be called with vectors.
template <class Policy>
concept update_takes_vectors =
    !Policy::facts.takes_vectors ||
    (update_combines<Policy, clauses::update::floats> && update_finishes<Policy, clauses::update::floats>);

/// Clause: it has a lift if and only if the fact `lifts` is true, which can be called, with vectors too if the rule takes them.
template <class Policy>
concept update_lift_can_be_called = (!Policy::facts.lifts && !clauses::update::names_lift<Policy>) ||
                                    (Policy::facts.lifts && update_lifts<Policy> &&
                                     (!Policy::facts.takes_vectors ||
                                      update_lifts<Policy, clauses::update::floats>));

/// Clause: with the fact `with_finish`, that can be called.
template <class Policy>
concept update_with_finish_can_be_called =
    !Policy::facts.with_finish || requires(int ranks, clauses::update::kernel const& kernel) {
    // clang-format off
    { Policy::template with_finish<float>(ranks, kernel) } noexcept;
    // clang-format on
};

/// How contributions are combined, and what is done with the total.
///
/// No compiler can tell whether a rule takes vectors before it has failed, so the rule's facts say it.
///
/// Order: contributions are folded from the left, those of a node in the order of its ranks, then the sums of the nodes in
/// the order of the nodes. So `combine` need not be commutative, and has to be associative wherever ranks share a node:
/// with nodes {0, 1} and {2, 3} it is (x0 ∘ x1) ∘ (x2 ∘ x3). A rule that is not has `associative = false` in its facts, and is
/// refused where the intra_node policy joins ranks ([HRG-M06]). With intra_node::none each rank is a node, and the fold is
/// ((x0 ∘ x1) ∘ x2) ∘ x3. Rounding does not count: `sum` is associative here, and its bits depend on which ranks share a
/// node.
///
/// With the fact `lifts`, `lift` is applied once to every rank's contribution, in the accumulator's type, before they are
/// combined: squares of which the sum is taken, exponentials, weights by sign. Sums of a node's ranks, which travel to
/// other nodes, are lifted already. So the mean of the squares is `sum` with a lift that squares, and a finish that divides.
///
/// With the fact `with_finish`, `with_finish<Acc>(int ranks, kernel)` decides once a call how to finish (ranks = 0: not at
/// all) and calls `kernel(finisher)`, where `finisher(total)` is inlined in the loop.
///
/// A rule that derives from another one inherits its facts. Where it states its own, it states all that hold.
template <class Policy>
concept update_policy = update_names_its_axis<Policy> && update_has_a_name<Policy> &&
    update_says_what_it_supports<Policy> && update_combines<Policy> && update_finishes<Policy> &&
    update_states_facts<Policy> && update_takes_vectors<Policy> && update_lift_can_be_called<Policy> &&
    update_with_finish_can_be_called<Policy>;

template <class Policy> struct check<axes::update, Policy> {
    static constexpr int broken = [] {
        if constexpr (!update_states_facts<Policy>)
            return first_broken({update_has_a_name<Policy>, update_says_what_it_supports<Policy>,
                                 update_combines<Policy>, update_finishes<Policy>, false});
        else
            return first_broken({update_has_a_name<Policy>, update_says_what_it_supports<Policy>,
                                 update_combines<Policy>, update_finishes<Policy>, true,
                                 update_takes_vectors<Policy>, update_lift_can_be_called<Policy>,
                                 update_with_finish_can_be_called<Policy>});
    }();
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
    static_assert(
        broken != 4,
        "[HRG-U07] update: needs 'static constexpr herring::update_facts facts{...}'; a common slip "
        "is a fact of its own, such as 'static constexpr bool associative', which nothing reads; "
        "write it into facts, as in '{.takes_vectors = true, .associative = false}'");
    static_assert(
        broken != 5,
        "[HRG-U05] update: its facts say takes_vectors, and combine and finish cannot be called with "
        "vectors; a common slip is to write them for float; take any Acc, or leave takes_vectors "
        "out: they are then called element by element");
    static_assert(
        broken != 6,
        "[HRG-U06] update: a rule that lifts has 'template <class Acc> static Acc lift(Acc) noexcept', "
        "and its facts say lifts; a common slip is one without the other, to forget static or "
        "noexcept, or to write lift for float alone; take any Acc, which is a vector of numbers too "
        "where the facts say takes_vectors");
    static_assert(broken != 7,
                  "[HRG-U08] update: its facts say with_finish, and it has no 'template <class Acc, class "
                  "Kernel> static void with_finish(int ranks, Kernel&&) noexcept'; a common slip is to copy "
                  "the facts of another rule; leave with_finish out, and finish is called");
};

namespace detail {
/// Whether a rule is of means, and says what their deviations are made of: `moments` and `sample_moments`.
template <class Policy>
concept gives_deviations = update_policy<Policy> && requires(int ranks) {
    // clang-format off
    { Policy::divisor_of_squares(ranks) } noexcept -> std::same_as<int>;
    // clang-format on
};
} // namespace detail

/// Whether the policy makes sense for an element type (an average of integers does not).
template <class Policy, class Element>
concept update_supports = update_policy<Policy> && element_type<Element> &&
    bool(Policy::template supports<Element>);

} // namespace HERRING_NAMESPACE

#endif // HERRING_UPDATE_UPDATE_HPP

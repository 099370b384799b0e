// herring: the concept of update rules: how the contributions of all ranks become one result.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_UPDATE_HPP
#define HERRING_UPDATE_UPDATE_HPP

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/policy.hpp"

namespace HERRING_NAMESPACE {

namespace update {

/// The type of one lane: `float` for `float` and for a vector of floats.
template <class Acc> struct lane_of { using type = std::remove_cvref_t<decltype(std::declval<Acc&>()[0])>; };
template <class Acc>
requires(std::is_arithmetic_v<Acc> || std::is_class_v<Acc> || std::is_enum_v<Acc> || std::is_union_v<Acc>) //
    struct lane_of<Acc> {
    using type = Acc;
};
template <class Acc> using lane = typename lane_of<Acc>::type;

/// Requirements of the built-in rules on a user-defined element type: the operator that the rule applies. A
/// bool is not a number: it is compared, and neither added nor multiplied.
template <class Element>
concept added = element_type<Element> && !std::same_as<Element, bool> && requires(accumulator<Element> a) {
    { a + a } -> std::convertible_to<accumulator<Element>>;
};
template <class Element>
concept multiplied =
    element_type<Element> && !std::same_as<Element, bool> && requires(accumulator<Element> a) {
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

/// The finisher of rules whose total is the result.
struct as_is {
    template <class Acc> HERRING_HOST_DEVICE constexpr Acc operator()(Acc total) const noexcept {
        return total;
    }
};

} // namespace update

/// Clause: `using axis = herring::axes::update`.
template <class Policy>
concept update_names_its_axis = std::same_as<typename Policy::axis, axes::update>;

/// Clause: `name`, for plans, digests and errors.
template <class Policy>
concept update_has_a_name = requires {
    { Policy::name } -> std::convertible_to<char const*>;
};

/// Clause: `supports<Element>`, a constant: true for the element types that the rule makes sense for.
template <class Policy>
concept update_says_what_it_supports = requires {
    { Policy::template supports<float> } -> std::convertible_to<bool>;
};

/// Clause: `combine(Acc, Acc) noexcept → Acc`, called with scalars; with `facts.takes_vectors` also
/// with GNU vectors of them.
template <class Policy, class Acc = float>
concept update_combines = requires(Acc a, Acc b) {
    // clang-format off
    { Policy::combine(a, b) } noexcept -> std::same_as<Acc>;
    // clang-format on
};

/// Clause: `finish(Acc total, int ranks) noexcept → Acc`, called once an element, with the contributions of
/// all ranks in `total`.
template <class Policy, class Acc = float>
concept update_finishes = requires(Acc total, int ranks) {
    // clang-format off
    { Policy::finish(total, ranks) } noexcept -> std::same_as<Acc>;
    // clang-format on
};

/// Clause: `lift(Acc) noexcept → Acc`, optional: applied to each contribution before contributions are
/// combined.
template <class Policy, class Acc = float>
concept update_lifts = requires(Acc contribution) {
    // clang-format off
    { Policy::lift(contribution) } noexcept -> std::same_as<Acc>;
    // clang-format on
};

/// The facts of a rule: `static constexpr update_facts facts{...};`.
struct update_facts {
    /// True: `combine`, `finish` and `lift` consist of operators and `?:` alone, so that one template serves
    /// numbers and GNU vectors of them, a register at a time. False: they are called element by element, and
    /// may be any code.
    bool takes_vectors = false;
    /// Associative but for rounding. False: refused where the ranks of a node are combined first.
    bool associative = true;
    bool lifts = false;       ///< the rule has `lift`
    bool with_finish = false; ///< the rule has `with_finish`
};

namespace clauses::update {
using floats [[gnu::vector_size(16)]] = float;

// A member named lift, whatever its parameters.
template <class Policy>
concept names_lift = requires {
    &Policy::template lift<float>;
}
|| requires { &Policy::lift; }
|| requires(float contribution) { Policy::lift(contribution); };

// A fact stated outside `facts`, where nothing reads it.
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

/// Clause: `facts`, and no fact stated outside.
template <class Policy>
concept update_states_facts =
    states_facts<Policy, update_facts> && !clauses::update::states_facts_elsewhere<Policy>;

/// Clause: with `facts.takes_vectors`, `combine` and `finish` can be called with vectors.
template <class Policy>
concept update_takes_vectors =
    !Policy::facts.takes_vectors ||
    (update_combines<Policy, clauses::update::floats> && update_finishes<Policy, clauses::update::floats>);

/// Clause: the rule has a callable lift if and only if `facts.lifts`; callable with vectors too, if the rule
/// takes them.
template <class Policy>
concept update_lift_can_be_called = (!Policy::facts.lifts && !clauses::update::names_lift<Policy>) ||
                                    (Policy::facts.lifts && update_lifts<Policy> &&
                                     (!Policy::facts.takes_vectors ||
                                      update_lifts<Policy, clauses::update::floats>));

/// Clause: with `facts.with_finish`, `with_finish` can be called.
template <class Policy>
concept update_with_finish_can_be_called =
    !Policy::facts.with_finish || requires(int ranks, clauses::update::kernel const& kernel) {
    // clang-format off
    { Policy::template with_finish<float>(ranks, kernel) } noexcept;
    // clang-format on
};

/// An update rule combines contributions (`combine`) and turns the total into the result (`finish`).
///
/// A compiler cannot detect that a rule takes vectors without an error, so the rule's facts state it.
///
/// Order: contributions are folded from the left: those of a node in the order of its ranks, then the sums of
///        the nodes in the order of the nodes. So `combine` need not be commutative, but must be associative
///        wherever ranks share a node: with nodes {0, 1} and {2, 3} the fold is (x0 ∘ x1) ∘ (x2 ∘ x3). A rule
///        that is not associative has `associative = false` in its facts, and is refused where the intra_node
///        policy joins ranks ([HRG-M06]). With intra_node::none each rank is a node, and the fold is ((x0 ∘
///        x1) ∘ x2) ∘ x3. Rounding does not count: `sum` is associative, although its bits depend on which
///        ranks share a node.
///
/// With `facts.lifts`, `lift` is applied once to every rank's contribution, in the accumulator's type, before
/// contributions are combined: squares to be summed, exponentials, weights by sign. Sums of a node's ranks,
/// which travel to other nodes, are lifted already. So the mean of the squares is `average` with a lift
/// that squares.
///
/// With `facts.with_finish`, `with_finish<Acc>(int ranks, kernel)` chooses a finisher once a call (ranks = 0:
/// leave the total as it is) and calls `kernel(finisher)`; `finisher(total)` is inlined in the loop.
///
/// A rule that derives from another rule inherits its facts. A rule that states facts states all that hold.
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
/// True for `update::any`, whose calls name a rule of its list.
template <class Policy>
concept lists_rules = requires {
    typename Policy::rule;
    Policy::names();
};
template <class Policy>
concept one_rule = !lists_rules<Policy>;
/// The number of rules of `update::any`; 0 for any other policy, whose calls choose from none.
template <class Policy> constexpr std::uint8_t rule_count() noexcept {
    if constexpr (lists_rules<Policy>) return static_cast<std::uint8_t>(Policy::names().size());
    return 0;
}
/// Calls f(std::type_identity<Rule>()) for the rule of that number in the list of `update::any`, from 1; 0 is
/// the first. Any other policy is itself the rule.
template <class Policy, class Function>
constexpr void with_rule([[maybe_unused]] std::uint8_t number, Function const& f) noexcept {
    if constexpr (lists_rules<Policy>)
        Policy::choose(number, f);
    else
        f(std::type_identity<Policy>());
}

/// True for rules of means that have a divisor for deviations: `moments` and `sample_moments`.
template <class Policy>
concept gives_deviations = update_policy<Policy> && requires(int ranks) {
    // clang-format off
    { Policy::divisor_of_squares(ranks) } noexcept -> std::same_as<int>;
    // clang-format on
};
} // namespace detail

/// True if the rule takes the element type; an average does not take integers.
template <class Policy, class Element>
concept update_supports = update_policy<Policy> && element_type<Element> &&
    bool(Policy::template supports<Element>);

} // namespace HERRING_NAMESPACE

#endif // HERRING_UPDATE_UPDATE_HPP

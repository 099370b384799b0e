// herring: what an optimizer is: what is done with a weight, its gradient and its state, where the gradient has been summed.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_OPTIMIZER_HPP
#define HERRING_OPTIMIZER_OPTIMIZER_HPP

#include "herring/base/config.hpp"
#include "herring/policy.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE {

/// What an optimizer promises, as `static constexpr optimizer_facts facts{...};`.
struct optimizer_facts {
    int states = 0; ///< numbers that are kept of each weight, at most 8; they are 0 at the start
    /// `step` is made of operators, `?:` and `herring::lanes` alone, so that one template serves numbers and GNU vectors of them.
    /// False: it is called weight by weight, and may be any code.
    bool takes_vectors = false;
};

namespace optimizer {
struct none;
} // namespace optimizer

namespace clauses::optimizer {
using floats [[gnu::vector_size(16)]] = float;

struct any_double {
    operator double() const noexcept;
};
template <class Hyper, std::size_t... Place>
constexpr bool takes_doubles(std::index_sequence<Place...>) noexcept {
    return requires { Hyper{(static_cast<void>(Place), any_double{})...}; };
}
/// An aggregate of doubles and nothing else: its bytes have no padding, so that ranks can compare them.
template <class Hyper>
concept doubles = std::is_aggregate_v<Hyper> && std::is_trivially_copyable_v<Hyper> &&
                          std::is_default_constructible_v<Hyper> && sizeof(Hyper) %
                          sizeof(double) ==
                      0 &&
                  takes_doubles<Hyper>(std::make_index_sequence<sizeof(Hyper) / sizeof(double)>());

template <class Policy, class Number>
concept prepares = requires(typename Policy::hyper const& values, std::uint64_t step) {
    { Policy::template prepare<Number>(values, step) }
    noexcept;
    requires std::is_trivially_copyable_v<decltype(Policy::template prepare<Number>(values,
                                                                                    std::uint64_t{}))>;
};
template <class Policy, class Number>
using prepared = decltype(Policy::template prepare<Number>(typename Policy::hyper{}, std::uint64_t{}));
template <class Policy, class Number, class Lanes>
concept steps = requires(Lanes& weight, Lanes gradient, Lanes* state, prepared<Policy, Number> const& with) {
    { Policy::step(weight, gradient, state, with) }
    noexcept;
};
} // namespace clauses::optimizer

template <class Policy>
concept optimizer_has_a_name = requires {
    { Policy::name } -> std::convertible_to<char const*>;
};
template <class Policy>
concept optimizer_states_facts = states_facts<Policy, optimizer_facts> && Policy::facts.states >= 0 &&
                                 Policy::facts.states <= 8 && !requires {
    Policy::states;
}
&&!requires { Policy::takes_vectors; };
template <class Policy>
concept optimizer_has_hyper_values = requires {
    typename Policy::hyper;
    requires clauses::optimizer::doubles<typename Policy::hyper>;
};
template <class Policy>
concept optimizer_prepares = clauses::optimizer::prepares<Policy, float>;
template <class Policy>
concept optimizer_steps = clauses::optimizer::steps<Policy, float, float>;
template <class Policy>
concept optimizer_takes_vectors =
    !Policy::facts.takes_vectors || clauses::optimizer::steps<Policy, float, clauses::optimizer::floats>;

/// What is done with each weight, by the rank that has summed its gradient.
///
/// - `hyper`: an aggregate of doubles, with defaults. The program may set others between steps, alike on all ranks.
/// - `prepare<Number>(hyper, n)`: the numbers of step n, which counts from 1; once a step, so in double, bias correction too.
/// - `step(weight, gradient, state, prepared)`: the update of one weight, or of a vector of them; `state` is an array of
///   `facts.states`. All noexcept and static.
///
/// Bits: `step` runs over blocks and over single weights, in loops that the compiler may contract; made of
///       `herring::lanes::product`, `sqrt`, `+`, `-` and `/` it has the same bits everywhere.
///
/// `optimizer::none`, the default, is the model without any of these: gradients are reduced, and nothing else.
template <class Policy>
concept optimizer_policy = std::same_as<typename Policy::axis, axes::optimizer> &&
    (std::same_as<Policy, optimizer::none> ||
     (optimizer_has_a_name<Policy> && optimizer_states_facts<Policy> && optimizer_has_hyper_values<Policy> &&
      optimizer_prepares<Policy> && optimizer_steps<Policy> && optimizer_takes_vectors<Policy>));

template <class Policy> struct check<axes::optimizer, Policy> {
    static constexpr int broken = [] {
        if constexpr (std::is_same_v<Policy, optimizer::none>)
            return -1;
        else if constexpr (!optimizer_states_facts<Policy> || !optimizer_has_hyper_values<Policy> ||
                           !optimizer_prepares<Policy>)
            return first_broken({optimizer_has_a_name<Policy>, optimizer_states_facts<Policy>,
                                 optimizer_has_hyper_values<Policy>, false});
        else
            return first_broken({optimizer_has_a_name<Policy>, true, true, true, optimizer_steps<Policy>,
                                 optimizer_takes_vectors<Policy>});
    }();
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-Z01] optimizer: needs 'static constexpr char const* name'; a common slip is to "
                  "leave it out; give it the name of your type");
    static_assert(broken != 1,
                  "[HRG-Z02] optimizer: needs 'static constexpr herring::optimizer_facts facts{...}', with "
                  "at most 8 states; a common slip is a constant 'states' of its own, which nothing reads; "
                  "write it into facts, as in '{.states = 2, .takes_vectors = true}'");
    static_assert(broken != 2,
                  "[HRG-Z03] optimizer: needs 'struct hyper' with doubles alone and their defaults, as "
                  "ranks compare its bytes; a common slip is a float, a bool or a constructor in it; write "
                  "'struct hyper { double rate = 0.1; };'");
    static_assert(broken != 3,
                  "[HRG-Z04] optimizer: needs 'template <class Number> static prepared prepare(hyper const&, "
                  "std::uint64_t step) noexcept', which returns plain numbers; a common slip is to forget "
                  "static or noexcept, or that it is a template; return a struct of Number");
    static_assert(broken != 4,
                  "[HRG-Z05] optimizer: needs 'template <class Lanes> static void step(Lanes& weight, Lanes "
                  "gradient, Lanes* state, prepared const&) noexcept'; a common slip is to forget static or "
                  "noexcept, or to take the weight by value; take the four");
    static_assert(
        broken != 5,
        "[HRG-Z06] optimizer: its facts say takes_vectors, and step cannot be called with vectors; a common "
        "slip is to write it for float; take any Lanes, or leave takes_vectors out: it is then called "
        "weight by weight");
};

namespace detail {
/// Whether weights are updated where gradients are summed.
template <class Policy> inline constexpr bool optimizes = !std::is_same_v<Policy, optimizer::none>;
} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_OPTIMIZER_OPTIMIZER_HPP

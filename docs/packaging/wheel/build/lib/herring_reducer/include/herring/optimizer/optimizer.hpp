// herring: the concept of optimizers, which update weights where gradients are summed; and the default, none.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_OPTIMIZER_HPP
#define HERRING_OPTIMIZER_OPTIMIZER_HPP

#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE {

/// The treatment of a step with a gradient that is not finite.
enum class nonfinite : std::uint8_t {
    fail,     ///< the world ends, and the error names the tensor
    pass,     ///< the gradient goes into the weights
    skip_step ///< no rank updates a weight, the step is not counted, `wait()` reports it; in two phases
};

/// The facts of an optimizer: `static constexpr optimizer_facts facts{...};`.
struct optimizer_facts {
    int states = 0; ///< numbers of state for each weight, at most 8; 0 at the start
    /// True: `step` consists of operators, `?:` and `herring::lanes` alone, so that one template serves
    /// numbers and GNU vectors of them. False: `step` is called weight by weight, and may be any code.
    bool takes_vectors = false;
    /// `hyper` has `double clip`: gradients whose common norm is greater are scaled down to it. In two
    /// phases.
    bool clips = false;
    /// The optimizer has `direction` and `adapt`: the update of a weight depends on norms of its tensor. In
    /// two phases.
    bool tensor_norms = false;
    nonfinite on_nonfinite = nonfinite::fail;

    /// True if no weight can be updated before all gradients are summed.
    constexpr bool two_phases() const noexcept {
        return clips || tensor_norms || on_nonfinite == nonfinite::skip_step;
    }
};

/// Norms of one tensor, over all its elements: the argument of `adapt`.
struct tensor_norms {
    double weights = 0;
    double directions = 0; ///< of the results of `direction`
};

/// A hyper value that is refused: the result of `fault(hyper)` of an optimizer.
struct hyper_fault {
    char const* member = nullptr; ///< nullptr: nothing is wrong
    double value = 0;
    char const* must = nullptr; ///< "be 0 or more"

    explicit constexpr operator bool() const noexcept { return member != nullptr; }
    /// This fault if there is one, else the other.
    constexpr hyper_fault or_else(hyper_fault other) const noexcept {
        return member != nullptr ? *this : other;
    }
    static constexpr hyper_fault not_finite(char const* member, double value) noexcept {
        return value >= -largest && value <= largest ? hyper_fault{}
                                                     : hyper_fault{member, value, "be a finite float"};
    }
    static constexpr hyper_fault negative(char const* member, double value) noexcept { // also: not finite
        return value >= 0 && value <= largest
                   ? hyper_fault{}
                   : hyper_fault{member, value, "be 0 or more, and a finite float"};
    }
    static constexpr hyper_fault not_positive(char const* member, double value) noexcept {
        return value >= least && value <= largest
                   ? hyper_fault{}
                   : hyper_fault{member, value, "be more than 0, and a normal float"};
    }
    static constexpr hyper_fault no_share(char const* member, double value) noexcept {
        return value >= 0 && value < 1 ? hyper_fault{}
                                       : hyper_fault{member, value, "be 0 or more, and less than 1"};
    }

  private:
    // Limits of float, in which most weights are computed.
    static constexpr double largest = std::numeric_limits<float>::max(),
                            least = std::numeric_limits<float>::min();
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
}
&&!requires(Lanes gradient, Lanes* state, prepared<Policy, Number> const& with) { // it would update a copy
    Policy::step(std::declval<Lanes>(), gradient, state, with);
};
template <class Policy, class Number, class Lanes>
concept directs = requires(Lanes weight, Lanes gradient, Lanes* state, prepared<Policy, Number> const& with,
                           tensor_norms const& of) {
    { Policy::direction(weight, gradient, state, with) }
    noexcept->std::same_as<Lanes>;
    { Policy::adapt(with, of) }
    noexcept->std::same_as<prepared<Policy, Number>>;
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
&&!requires { Policy::takes_vectors; }
&&!requires { Policy::clips; }
&&!requires { Policy::tensor_norms; }
&&!requires { Policy::on_nonfinite; };
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
template <class Policy>
concept optimizer_has_a_clip = !Policy::facts.clips || requires(typename Policy::hyper const& values) {
    { values.clip } -> std::same_as<double const&>;
};
template <class Policy>
concept optimizer_directs =
    !Policy::facts.tensor_norms || (clauses::optimizer::directs<Policy, float, float> &&
                                    (!Policy::facts.takes_vectors ||
                                     clauses::optimizer::directs<Policy, float, clauses::optimizer::floats>));

/// An optimizer updates each weight, on the rank that has summed its gradient. All functions are static and
/// noexcept.
///
/// - `hyper`: an aggregate of doubles, with defaults. The program may set other values between steps, equal
///   on all ranks.
/// - `prepare<Number>(hyper, n)`: the numbers of step n, which counts from 1. Called once a step, so in
///   double; includes bias correction.
/// - `step(weight, gradient, state, prepared)`: updates one weight, or a vector of them; `state` is an array
///   of `facts.states` numbers, or vectors.
/// - `direction(weight, gradient, state, prepared)`, with `facts.tensor_norms`: returns the value that
///   replaces the gradient in `step`; only `direction` may change the state. `adapt(prepared, tensor_norms)`:
///   returns the numbers for the `step` of a tensor with these norms.
/// - `hyper::clip`, with `facts.clips`.
/// - `hyper_fault fault(hyper const&)`, optional: `set` refuses values with a fault.
///
/// Bits: `step` runs over blocks and over single weights, in loops that the compiler may contract. A `step`
///       of `herring::lanes::product`, `sqrt`, `+`, `-` and `/` has the same bits everywhere.
///
/// `optimizer::none`, the default, has none of these members: gradients are reduced, and nothing else.
template <class Policy>
concept optimizer_policy = std::same_as<typename Policy::axis, axes::optimizer> &&
    (std::same_as<Policy, optimizer::none> ||
     (optimizer_has_a_name<Policy> && optimizer_states_facts<Policy> && optimizer_has_hyper_values<Policy> &&
      optimizer_prepares<Policy> && optimizer_steps<Policy> && optimizer_takes_vectors<Policy> &&
      optimizer_has_a_clip<Policy> && optimizer_directs<Policy>));

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
                                 optimizer_takes_vectors<Policy>, optimizer_has_a_clip<Policy>,
                                 optimizer_directs<Policy>});
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
                  "noexcept, or to take the weight by value, which updates a copy; take the four, the weight "
                  "as Lanes&");
    static_assert(
        broken != 5,
        "[HRG-Z06] optimizer: its facts say takes_vectors, and step cannot be called with vectors; a common "
        "slip is to write it for float; take any Lanes, or leave takes_vectors out: it is then called "
        "weight by weight");
    static_assert(
        broken != 6,
        "[HRG-Z07] optimizer: its facts say clips, and hyper has no 'double clip'; a common slip is "
        "to give the norm another name; write 'double clip = 1;' into hyper, or name "
        "herring::optimizer::clipped<...> of an optimizer without the fact");
    static_assert(
        broken != 7,
        "[HRG-Z08] optimizer: its facts say tensor_norms, which needs 'static Lanes direction(Lanes weight, "
        "Lanes gradient, Lanes* state, prepared const&) noexcept' and 'static prepared adapt(prepared "
        "const&, "
        "herring::tensor_norms const&) noexcept'; a common slip is a direction that returns nothing; return "
        "what takes the gradient's place in step");
};

namespace detail {
/// Returns the fault that an optimizer finds in these values, if it checks values.
template <class Policy> constexpr hyper_fault fault_of(typename Policy::hyper const& values) noexcept {
    if constexpr (requires { Policy::fault(values); })
        return Policy::fault(values);
    else
        return {};
}
/// True if weights are updated where gradients are summed.
template <class Policy> inline constexpr bool optimizes = !std::is_same_v<Policy, optimizer::none>;
/// True if all gradients have to be summed before the first weight is updated.
template <class Policy>
inline constexpr bool in_two_phases = [] {
    if constexpr (optimizes<Policy>) return Policy::facts.two_phases();
    return false;
}();
} // namespace detail

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::optimizer {

/// No optimizer: tensors made ready hold the reduced values after `wait()`, and the program updates its
/// weights. The default.
struct none {
    using axis = axes::optimizer;
    static constexpr char const* name = "none";
};
static_assert(optimizer_policy<none>);

/// The step of `Outer` with the gradient anchor − mean. The weight is the anchor; the mean of the ranks'
/// weights takes the gradient's place.
///
/// Source: Douillard et al., "DiLoCo", 2023; Reddi et al., ICLR 2021 (adaptive federated optimization).
template <class Outer> struct anchored {
    using axis = axes::optimizer;
    static constexpr char const* name = Outer::name;
    static constexpr optimizer_facts facts = Outer::facts;
    using hyper = typename Outer::hyper;

    template <class Number> static auto prepare(hyper const& values, std::uint64_t step) noexcept {
        return Outer::template prepare<Number>(values, step);
    }
    template <class Lanes, class Prepared>
    static void step(Lanes& anchor, Lanes mean, Lanes* state, Prepared const& with) noexcept {
        Outer::step(anchor, anchor - mean, state, with);
    }
};

} // namespace HERRING_NAMESPACE::optimizer

namespace HERRING_NAMESPACE::detail {

/// The optimizer that runs where contributions are summed: that of the pack, or the outer optimizer of its
/// sync policy.
template <class Pack, class Sync> struct optimizer_of { using type = typename Pack::optimizer; };
template <class Pack, class Sync>
requires(Sync::facts.outer) //
    struct optimizer_of<Pack, Sync> {
    using type = optimizer::anchored<typename Sync::outer>;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_OPTIMIZER_OPTIMIZER_HPP

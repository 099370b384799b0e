// herring: the fold with an optimizer, in one pass over memory or in two; and the sum of squares.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_OPTIMISE_HPP
#define HERRING_KERNEL_OPTIMISE_HPP

#include "herring/base/config.hpp"
#include "herring/base/lane_math.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/model/element.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/update/rules.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::kernel {

/// Weights, and the optimizer's state of them in the type in which elements are summed: array s of the state
/// begins at `state + s · stride`.
template <class Element> struct optimised {
    Element* weights;
    accumulator<Element>* state;
    std::size_t stride;
    /// Weights before they are rounded, where Element has fewer bits than its accumulator.
    accumulator<Element>* masters = nullptr;

    /// Returns the weights that are read, and written before they are rounded.
    accumulator<Element>* exact() const noexcept {
        if constexpr (std::is_same_v<Element, accumulator<Element>>)
            return weights;
        else
            return masters;
    }
};

namespace detail {

// Finishes a total and divides it by the scale of the loss.
template <class Finish, class Number> struct unscaled_by {
    Finish finish;
    Number inverse;
    template <class Lanes> HERRING_ALWAYS_INLINE Lanes operator()(Lanes total) const noexcept {
        return lanes::product(finish(total), inverse);
    }
};
template <class Number> struct scaled_by {
    Number factor;
    template <class Lanes> HERRING_ALWAYS_INLINE Lanes operator()(Lanes value) const noexcept {
        return lanes::product(value, factor);
    }
};

// Calls `kernel` with the function total → gradient: only gradients of 16 bits have a scale.
template <class Update, class Element, class Kernel>
HERRING_ALWAYS_INLINE void choose_gradient(int ranks, accumulator<Element> unscale,
                                           Kernel const& kernel) noexcept {
    choose_finish<Update, Element>(ranks, [&](auto finish) {
        if constexpr (std::is_same_v<Element, accumulator<Element>>)
            kernel(finish);
        else
            kernel(unscaled_by<decltype(finish), accumulator<Element>>{finish, unscale});
    });
}

// Weights and states of a block or of one weight, given to an optimizer a register at a time.
template <class Optimizer, class Element, class Prepared> struct optimizer_lanes {
    using number = accumulator<Element>;
    using registers = block<Element>;
    static constexpr bool rounds = !std::is_same_v<Element, number>;
    static constexpr std::size_t states = static_cast<std::size_t>(Optimizer::facts.states);
    static constexpr std::size_t room = states == 0 ? 1 : states;

    optimised<Element> of;
    Prepared with;

    template <class Do> HERRING_ALWAYS_INLINE void block_at(std::size_t i, Do const& apply) const noexcept {
        registers kept[room];
        for (std::size_t s = 0; s < states; ++s) kept[s] = registers::load_wide(of.state + s * of.stride + i);
        one<&registers::a>(kept, apply);
        one<&registers::b>(kept, apply);
        one<&registers::c>(kept, apply);
        one<&registers::d>(kept, apply);
        for (std::size_t s = 0; s < states; ++s) kept[s].store_wide(of.state + s * of.stride + i);
    }
    template <class Do> HERRING_ALWAYS_INLINE void number_at(std::size_t i, Do const& apply) const noexcept {
        number kept[room];
        for (std::size_t s = 0; s < states; ++s) kept[s] = of.state[s * of.stride + i];
        apply(kept);
        for (std::size_t s = 0; s < states; ++s) of.state[s * of.stride + i] = kept[s];
    }
    HERRING_ALWAYS_INLINE registers weights_at(std::size_t i) const noexcept {
        return registers::load_wide(of.exact() + i);
    }
    // Writes weights; every NaN becomes the canonical one.
    HERRING_ALWAYS_INLINE void put_weights(std::size_t i, registers weight) const noexcept {
        if (weight.any_nan()) [[unlikely]]
            weight = weight.canonical();
        weight.store_wide(of.exact() + i);
        if constexpr (rounds) weight.round().store(of.weights + i);
    }
    HERRING_ALWAYS_INLINE void put_weight(std::size_t i, number weight) const noexcept {
        of.exact()[i] = round_one<number>(weight);
        if constexpr (rounds) of.weights[i] = round_one<Element>(weight);
    }
    optimizer_lanes from(std::size_t more) const noexcept {
        return {{of.weights + more, states == 0 ? of.state : of.state + more, of.stride,
                 of.masters == nullptr ? nullptr : of.masters + more},
                with};
    }

  private:
    template <auto Register, class Do>
    HERRING_ALWAYS_INLINE static void one(registers (&kept)[room], Do const& apply) noexcept {
        typename registers::lanes state[room];
        for (std::size_t s = 0; s < states; ++s) state[s] = kept[s].*Register;
        apply(Register, state);
        for (std::size_t s = 0; s < states; ++s) kept[s].*Register = state[s];
    }
};

// Puts a block into a sink, by registers or, if the optimizer takes no vectors, number by number.
template <class Sink, class Optimizer, class Element>
HERRING_ALWAYS_INLINE void put_block(Sink const& sink, std::size_t i, block<Element> const& total) noexcept {
    if constexpr (Optimizer::facts.takes_vectors) {
        sink.put_registers(i, total);
    } else {
        accumulator<Element> each[block<Element>::size];
        total.store_wide(each);
        for (std::size_t n = 0; n < block<Element>::size; ++n) sink.put(i + n, each[n]);
    }
}

// Finishes totals to gradients, and updates weights and state with them.
template <class Optimizer, class Element, class Finish, class Prepared, bool Looks> struct optimising_sink {
    using number = accumulator<Element>;

    optimizer_lanes<Optimizer, Element, Prepared> kept;
    Finish finish;
    std::size_t base;        // index of the first total that is put
    std::size_t* not_finite; // least index of a gradient that is not finite

    HERRING_ALWAYS_INLINE void put(std::size_t i, block<Element> const& total) const noexcept {
        put_block<optimising_sink, Optimizer, Element>(*this, i, total);
    }
    HERRING_ALWAYS_INLINE void put_registers(std::size_t i, block<Element> const& total) const noexcept {
        block<Element> const gradient = total.finished(finish);
        if constexpr (Looks) {
            block<Element> const zero{gradient.a - gradient.a, gradient.b - gradient.b,
                                      gradient.c - gradient.c, gradient.d - gradient.d};
            if (zero.any_nan()) [[unlikely]]
                look_closer(i, gradient);
        }
        block<Element> weight = kept.weights_at(i);
        kept.block_at(
            i, [&](auto at, auto* state) __attribute__((always_inline)) {
                auto updated = weight.*at;
                Optimizer::step(updated, gradient.*at, state, kept.with);
                weight.*at = updated;
            });
        kept.put_weights(i, weight);
    }
    HERRING_ALWAYS_INLINE void put(std::size_t i, number total) const noexcept {
        number const gradient = finish(total);
        if constexpr (Looks) look(i, gradient);
        number weight = kept.of.exact()[i];
        kept.number_at(i, [&](number* state) { Optimizer::step(weight, gradient, state, kept.with); });
        kept.put_weight(i, weight);
    }
    optimising_sink from(std::size_t more) const noexcept {
        return {kept.from(more), finish, base + more, not_finite};
    }

  private:
    HERRING_ALWAYS_INLINE void look(std::size_t i, number gradient) const noexcept {
        if (!(gradient - gradient == 0) && base + i < *not_finite) [[unlikely]]
            *not_finite = base + i;
    }
    [[gnu::noinline]] void look_closer(std::size_t i, block<Element> const& gradient) const noexcept {
        number each[block<Element>::size];
        gradient.store_wide(each);
        for (std::size_t n = 0; n < block<Element>::size; ++n) look(i + n, each[n]);
    }
};

// Replaces gradients by directions.
template <class Optimizer, class Element, class Prepared> struct direction_sink {
    using number = accumulator<Element>;

    optimizer_lanes<Optimizer, Element, Prepared> kept;
    scaled_by<number> factor;
    number* to;

    HERRING_ALWAYS_INLINE void put(std::size_t i, block<Element> const& total) const noexcept {
        put_block<direction_sink, Optimizer, Element>(*this, i, total);
    }
    HERRING_ALWAYS_INLINE void put_registers(std::size_t i, block<Element> const& total) const noexcept {
        block<Element> const gradient = total.finished(factor), weight = kept.weights_at(i);
        block<Element> directions;
        kept.block_at(
            i, [&](auto at, auto* state) __attribute__((always_inline)) {
                directions.*at = Optimizer::direction(weight.*at, gradient.*at, state, kept.with);
            });
        directions.store_wide(to + i);
    }
    HERRING_ALWAYS_INLINE void put(std::size_t i, number total) const noexcept {
        number const gradient = factor(total), weight = kept.of.exact()[i];
        kept.number_at(
            i, [&](number* state) { to[i] = Optimizer::direction(weight, gradient, state, kept.with); });
    }
};

// Writes gradients, not rounded.
template <class Element, class Finish> struct gradient_sink {
    accumulator<Element>* to;
    Finish finish;
    HERRING_ALWAYS_INLINE void put(std::size_t i, block<Element> const& total) const noexcept {
        total.finished(finish).store_wide(to + i);
    }
    HERRING_ALWAYS_INLINE void put(std::size_t i, accumulator<Element> total) const noexcept {
        to[i] = finish(total);
    }
    gradient_sink from(std::size_t more) const noexcept { return {to + more, finish}; }
};

} // namespace detail

/// Folds contributions as `fold` does, and updates weights and state with the result, which is not stored.
///
/// Shape:    gradient[i] = finish(before... ∘ (group...) ∘ after...)[i] · unscale, i < count; then
///           Optimizer::step with weight i and its state. Elements that are their own accumulators have no
///           scale.
/// Returns:  the index of the first gradient that is not finite, else count; always count if the optimizer
///           lets such gradients pass. Weights are updated in either case.
/// Cost:     reads each source once; reads and writes weights and state once.
/// Lifetime: neither weights nor state may be a source.
template <class Update, class Optimizer, class Element, class Prepared>
std::size_t fold_optimising(std::span<source const> before, std::span<source const> group,
                            std::span<source const> after, optimised<Element> const& of, std::size_t count,
                            int ranks, Prepared const& with, accumulator<Element> unscale = 1) noexcept {
    constexpr bool looks = Optimizer::facts.on_nonfinite != nonfinite::pass;
    std::size_t not_finite = count;
    detail::choose_gradient<Update, Element>(ranks, unscale, [&](auto finish) {
        using sink = detail::optimising_sink<Optimizer, Element, decltype(finish), Prepared, looks>;
        detail::fold_tiles<Update, Element>(before, group, after, count,
                                            sink{{of, with}, finish, 0, &not_finite});
    });
    return not_finite;
}

/// Folds contributions to gradients that are not rounded: the first half of `fold_optimising`.
template <class Update, class Element>
void fold_gradients(std::span<source const> before, std::span<source const> group,
                    std::span<source const> after, accumulator<Element>* gradients, std::size_t count,
                    int ranks, accumulator<Element> unscale) noexcept {
    detail::choose_gradient<Update, Element>(ranks, unscale, [&](auto finish) {
        detail::fold_tiles<Update, Element>(
            before, group, after, count, detail::gradient_sink<Element, decltype(finish)>{gradients, finish});
    });
}

/// Replaces each gradient by Optimizer::direction of gradient · factor.
template <class Optimizer, class Element, class Prepared>
void direct(accumulator<Element>* gradients, optimised<Element> const& of, std::size_t count,
            accumulator<Element> factor, Prepared const& with) noexcept {
    source const from{gradients, part_kind::accumulator};
    detail::pass<update::sum, Element, 1>(
        &from, 1, count,
        detail::direction_sink<Optimizer, Element, Prepared>{{of, with}, {factor}, gradients});
}

/// Updates weights and state with gradients · factor, or with directions: the second half of
/// `fold_optimising`.
template <class Optimizer, class Element, class Prepared>
void optimise(accumulator<Element> const* gradients, optimised<Element> const& of, std::size_t count,
              accumulator<Element> factor, Prepared const& with) noexcept {
    using number = accumulator<Element>;
    using sink =
        detail::optimising_sink<Optimizer, Element, detail::scaled_by<number>, Prepared, /*Looks=*/false>;
    source const from{gradients, part_kind::accumulator};
    detail::pass<update::sum, Element, 1>(&from, 1, count, sink{{of, with}, {factor}, 0, nullptr});
}

/// An element type whose squares can be summed.
template <class Element>
concept has_squares = element_in_vectors<Element> && std::is_floating_point_v<accumulator<Element>>;

/// Returns Σ values[i]². Element i is added to sum i mod 8; then the eight sums are added in order.
///
/// Cost:   reads the values once.
/// Errors: not finite if one of the values is not, or if the square of a double overflows.
template <has_squares Element> double sum_of_squares(Element const* values, std::size_t count) noexcept {
    auto const wide = [](Element value) {
        return static_cast<double>(static_cast<accumulator<Element>>(value));
    };
    using pair [[gnu::vector_size(16)]] = double;
    pair sums[4] = {};
    std::size_t i = 0;
    for (; count - i >= 8; i += 8)
        for (std::size_t p = 0; p < 4; ++p) {
            pair const two{wide(values[i + 2 * p]), wide(values[i + 2 * p + 1])};
            sums[p] += lanes::product(two, two);
        }
    double each[8];
    for (std::size_t n = 0; n < 8; ++n) each[n] = sums[n / 2][n % 2];
    for (; i < count; ++i) {
        double const value = wide(values[i]);
        each[i % 8] += lanes::product(value, value);
    }
    double total = 0;
    for (double const one : each) total += one;
    return total;
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_OPTIMISE_HPP

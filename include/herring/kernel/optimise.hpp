// herring: the fold with an optimizer behind it: contributions, weights and state in one pass over memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_OPTIMISE_HPP
#define HERRING_KERNEL_OPTIMISE_HPP

#include "herring/base/config.hpp"
#include "herring/element.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/kernel/lanes.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::kernel {

/// Weights and what an optimizer keeps of them: array s of the state begins at `state + s · stride`.
template <class Number> struct optimised {
    Number* weights;
    Number* state;
    std::size_t stride;
};

namespace detail {

// Finishes totals, which are gradients, and updates weights and state with them. Every NaN in a weight is the canonical one.
template <class Optimizer, class Number, class Finish, class Prepared> struct optimising_sink {
    static constexpr std::size_t states = static_cast<std::size_t>(Optimizer::facts.states);
    static constexpr std::size_t room = states == 0 ? 1 : states;
    using lanes = vector<Number>;

    optimised<Number> of;
    Finish finish;
    Prepared with;
    std::size_t base;        // index of the first total that is put
    std::size_t* not_finite; // least index of a gradient that is not finite

    HERRING_ALWAYS_INLINE void put(std::size_t i, block<Number> const& total) const noexcept {
        if constexpr (Optimizer::facts.takes_vectors) {
            block<Number> const gradient = total.finished(finish);
            block<Number> const zero{gradient.a - gradient.a, gradient.b - gradient.b,
                                     gradient.c - gradient.c, gradient.d - gradient.d};
            if (zero.any_nan()) [[unlikely]]
                look_closer(i, gradient);
            block<Number> weight = block<Number>::load(of.weights + i);
            block<Number> kept[room];
            for (std::size_t s = 0; s < states; ++s)
                kept[s] = block<Number>::load(of.state + s * of.stride + i);
            step<&block<Number>::a>(weight, gradient, kept);
            step<&block<Number>::b>(weight, gradient, kept);
            step<&block<Number>::c>(weight, gradient, kept);
            step<&block<Number>::d>(weight, gradient, kept);
            if (weight.any_nan()) [[unlikely]]
                weight = weight.canonical();
            weight.store_wide(of.weights + i);
            for (std::size_t s = 0; s < states; ++s) kept[s].store_wide(of.state + s * of.stride + i);
        } else {
            Number each[block<Number>::size];
            total.store_wide(each);
            for (std::size_t n = 0; n < block<Number>::size; ++n) put(i + n, each[n]);
        }
    }
    HERRING_ALWAYS_INLINE void put(std::size_t i, Number total) const noexcept {
        Number const gradient = finish(total);
        look(i, gradient);
        Number kept[room];
        for (std::size_t s = 0; s < states; ++s) kept[s] = of.state[s * of.stride + i];
        Number weight = of.weights[i];
        Optimizer::step(weight, gradient, kept, with);
        of.weights[i] = round_one<Number>(weight);
        for (std::size_t s = 0; s < states; ++s) of.state[s * of.stride + i] = kept[s];
    }
    optimising_sink from(std::size_t more) const noexcept {
        Number* const state = states == 0 ? of.state : of.state + more; // which is null where there is none
        return {{of.weights + more, state, of.stride}, finish, with, base + more, not_finite};
    }

  private:
    template <auto Register>
    HERRING_ALWAYS_INLINE void step(block<Number>& weight, block<Number> const& gradient,
                                    block<Number> (&kept)[room]) const noexcept {
        lanes state[room];
        for (std::size_t s = 0; s < states; ++s) state[s] = kept[s].*Register;
        lanes updated = weight.*Register;
        Optimizer::step(updated, gradient.*Register, state, with);
        weight.*Register = updated;
        for (std::size_t s = 0; s < states; ++s) kept[s].*Register = state[s];
    }
    HERRING_ALWAYS_INLINE void look(std::size_t i, Number gradient) const noexcept {
        if (!(gradient - gradient == 0) && base + i < *not_finite) [[unlikely]]
            *not_finite = base + i;
    }
    [[gnu::noinline]] void look_closer(std::size_t i, block<Number> const& gradient) const noexcept {
        Number each[block<Number>::size];
        gradient.store_wide(each);
        for (std::size_t n = 0; n < block<Number>::size; ++n) look(i + n, each[n]);
    }
};

} // namespace detail

/// Folds contributions as `fold` does, and updates weights and state with the result, which is written nowhere.
///
/// Shape:    gradient[i] = finish(before... ∘ (group...) ∘ after...)[i], i < count; then Optimizer::step with weight i and
///           its state. float or double.
/// Returns:  the index of the first gradient that is not finite, or count. Weights are updated all the same.
/// Cost:     reads each source once; reads and writes weights and state once.
/// Lifetime: neither weights nor state may be a source.
template <class Update, class Optimizer, class Number, class Prepared>
std::size_t fold_optimising(std::span<source const> before, std::span<source const> group,
                            std::span<source const> after, optimised<Number> const& of, std::size_t count,
                            int ranks, Prepared const& with) noexcept {
    static_assert(std::is_same_v<accumulator<Number>, Number> && std::is_floating_point_v<Number>);
    std::size_t not_finite = count;
    detail::choose_finish<Update, Number>(ranks, [&](auto finish) {
        using sink = detail::optimising_sink<Optimizer, Number, decltype(finish), Prepared>;
        detail::fold_tiles<Update, Number>(before, group, after, count,
                                           sink{of, finish, with, 0, &not_finite});
    });
    return not_finite;
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_OPTIMISE_HPP

// herring: what a model of an optimizer must do: update weights, where gradients are summed, to the bits of every rank's own update.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_OPTIMIZER_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_OPTIMIZER_SUITE_HPP

#include "conformance/suite.hpp"

#include "same_bytes.hpp"
#include "sanitizers.hpp"

#include "herring/base/lane_math.hpp"
#include "herring/herring.hpp"
#include "herring/training.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace herring::conformance {

/// Ranks by their nodes: every route is taken by one of them.
inline std::vector<std::vector<std::string>> const shapes_of_optimizers{{"a", "a", "a"},
                                                                        {"a", "b", "a", "b"},
                                                                        {"a", "b", "b", "c"},
                                                                        {"a", "b", "c", "d"},
                                                                        {"a", "a"},
                                                                        {"a", "b"},
                                                                        {"a", "b", "c"},
                                                                        {"a"},
                                                                        {"x/a", "y/b", "y/b", "x/c", "y/d"},
                                                                        {"x/a", "x/b", "y/c", "y/d"}};
/// Sizes that share buckets and lines, take a bucket each, are split, and are empty. Smaller under a sanitizer: the largest is
/// more chunks than a window has on each of four nodes.
inline constexpr bool sanitized = HERRING_TEST_ASAN || HERRING_TEST_TSAN;
inline std::vector<std::size_t> const sizes_of_optimizers{
    3, sanitized ? 8'225u : 65'569u, 0, 17, 1, 900, 5121, sanitized ? 20'507u : 131'101u, 512, 40};

/// One of the user's: it branches, so it takes no vectors, and what it keeps is no mean.
struct bounded_signs {
    using axis = herring::axes::optimizer;
    static constexpr char const* name = "bounded_signs";
    static constexpr herring::optimizer_facts facts{.states = 3};
    struct hyper {
        double rate = 0.25, most = 1.5;
    };
    template <class Number> struct numbers { Number rate, most, turn; };
    template <class Number> static numbers<Number> prepare(hyper const& values, std::uint64_t step) noexcept {
        return {static_cast<Number>(values.rate), static_cast<Number>(values.most),
                static_cast<Number>(step % 3)};
    }
    template <class Number>
    static void step(Number& weight, Number gradient, Number* state, numbers<Number> const& with) noexcept {
        if (gradient > 0) state[0] = state[0] + 1;
        if (gradient < state[1]) state[1] = gradient;
        state[2] = with.turn - state[2];
        weight = weight - herring::lanes::product(with.rate, state[0] + state[1] + state[2]);
        if (weight > with.most) weight = with.most;
    }
};

/// The same on every rank: the update of all weights of a tensor by plain loops over single weights, from reduced gradients.
template <class Optimizer, class Element> class own_update {
    using number = accumulator<Element>;

  public:
    own_update() = default;
    explicit own_update(std::vector<Element> const& weights)
        : exact_(weights.begin(), weights.end()),
          state_(weights.size() * static_cast<std::size_t>(Optimizer::facts.states)) {}

    /// `factor`: of the gradients, where they are clipped; `told`: norms, for optimizers that ask for them.
    void step(std::span<number const> gradients, typename Optimizer::hyper const& values, std::uint64_t n,
              number unscale, number factor, tensor_norms const& told) {
        auto prepared = Optimizer::template prepare<number>(values, n);
        constexpr auto states = static_cast<std::size_t>(Optimizer::facts.states);
        std::vector<number> copied(gradients.begin(), gradients.end());
        std::size_t const n_of = exact_.size();
        number *const given = copied.data(), *const exact = exact_.data(), *state = state_.data();
        if (!std::is_same_v<Element, number>)
            for (std::size_t i = 0; i < n_of; ++i) given[i] = given[i] * unscale;
        if (Optimizer::facts.two_phases())
            for (std::size_t i = 0; i < n_of; ++i) given[i] = given[i] * factor;
        if constexpr (Optimizer::facts.tensor_norms) {
            long double weights = 0, directions = 0;
            for (std::size_t i = 0; i < n_of; ++i) {
                number const one = exact[i],
                             direction = Optimizer::direction(one, given[i], state + i * states, prepared);
                given[i] = direction;
                weights += static_cast<long double>(one) * one;
                directions += static_cast<long double>(direction) * direction;
            }
            norms = {static_cast<double>(__builtin_sqrtl(weights)),
                     static_cast<double>(__builtin_sqrtl(directions))};
            prepared = Optimizer::adapt(prepared, told);
        }
        for (std::size_t i = 0; i < n_of; ++i, state += states)
            Optimizer::step(exact[i], given[i], state, prepared);
        rounded_.clear();
    }
    std::vector<Element> const& weights() {
        if constexpr (std::is_same_v<Element, number>) {
            return exact_;
        } else {
            if (rounded_.empty()) {
                rounded_.resize(exact_.size());
                Element* to = rounded_.data();
                number const* const from = exact_.data();
                for (std::size_t i = 0, n = exact_.size(); i < n; ++i) to[i] = static_cast<Element>(from[i]);
            }
            return rounded_;
        }
    }
    tensor_norms norms; ///< of the last step, where the optimizer asks for them

  private:
    std::vector<number> exact_;
    std::vector<Element> rounded_; // what it has been rounded to; empty: not yet
    std::vector<number> state_;    // of one weight side by side: other memory than the reducer's
};

/// Within the rounding of sums in double, in whatever order.
inline bool are_near(double a, double b) {
    return a == b || (a > b ? a - b : b - a) <= 1e-12 * (a > b ? a : b);
}

/// A model that `Trainer` trains on each rank, and that each rank trains by itself from what `Reducer` has reduced.
template <class Trainer, class Reducer, class On> class two_models {
    using element = typename Trainer::element_type;
    using number = accumulator<element>;
    using optimizer = typename Trainer::pack::optimizer;

  public:
    two_models(On& on, std::size_t groups)
        : on_(on), tensors_(grouped(groups)), train_(on.ranks, tensors_), reduce_(on.ranks, tensors_) {}

    void begin(int again) {
        int const root = on_.ranks.size() - 1;
        train_.start(root, [&](std::size_t i, std::span<element> into) {
            if (on_.ranks.rank() != root) on_.find("fill was called on another rank than root");
            for (std::size_t at = 0; at < into.size(); ++at) into[at] = value(99, i, at, again);
        });
        own_.clear();
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            std::vector<element> weights(tensors_[i].elements);
            for (std::size_t at = 0; at < weights.size(); ++at) weights[at] = value(99, i, at, again);
            own_.emplace_back(weights);
        }
        steps_ = 0;
    }
    /// `bad`: one gradient, of the last rank, is infinite.
    void step(int number_of, bool bad = false) {
        std::vector<std::vector<element>> lent(own_.size());
        for (std::size_t back = own_.size(); back-- > 0;) {
            std::span<element> const gradient = train_.tensor(back);
            std::span<number> const reduced = reduce_.tensor(back);
            element* const to = gradient.data();
            number* const sums = reduced.data();
            auto const rank = static_cast<std::uint64_t>(on_.ranks.rank());
            for (std::size_t at = 0, n = gradient.size(); at < n; ++at) {
                to[at] = value(rank, back, at, number_of);
                sums[at] = static_cast<number>(to[at]);
            }
            if (bad && back == 1 && on_.ranks.rank() == on_.ranks.size() - 1)
                gradient[8'000] = static_cast<element>(std::numeric_limits<float>::infinity());
            lent[back].assign(gradient.size() + 1, element{}); // the gradient at an odd address
            std::copy(gradient.begin(), gradient.end(), lent[back].begin() + 1);
            reduce_.ready(back);
            if (number_of % 2 == 1) // from memory of the program's
                train_.ready(back, std::span<element>(lent[back]).subspan(1));
            else
                train_.ready(back);
        }
        reduce_.wait();
        herring::step const ended = train_.wait();
        on_.expect(ended == train_.outcome() &&
                       ended == (bad ? herring::step::skipped : herring::step::exchanged),
                   "what became of step " + std::to_string(number_of));
        if (!bad) {
            ++steps_;
            update();
        }
        for (std::size_t i = 0; i < own_.size(); ++i)
            if (!same_bytes(train_.weights(i), own_[i].weights()))
                on_.find("step " + std::to_string(number_of) + ": tensor " + std::to_string(i) +
                         " has other weights than after an own update");
    }

    Trainer& train() noexcept { return train_; }

  private:
    static layout grouped(std::size_t groups) {
        std::vector<tensor_spec> tensors;
        for (std::size_t const n : sizes_of_optimizers)
            tensors.push_back({std::to_string(tensors.size()), n, tensors.size() % groups});
        return layout(std::move(tensors));
    }
    static element value(std::uint64_t rank, std::size_t i, std::size_t at, int step) {
        std::uint64_t mixed = (rank * 977 + i * 131 + at) * 0x9e3779b97f4a7c15u +
                              static_cast<std::uint64_t>(step) * 0xc2b2ae3d27d4eb4fu;
        mixed ^= mixed >> 29;
        return static_cast<element>(
            static_cast<number>(static_cast<double>(mixed * 0xbf58476d1ce4e5b9u >> 40) / (1 << 23) - 1));
    }
    number unscale() const {
        if constexpr (std::is_same_v<element, number>)
            return 1;
        else
            return static_cast<number>(1 / train_.loss_scale());
    }
    static long double squares_of(std::span<number const> values, number by) {
        long double squares = 0;
        number const* const from = values.data();
        for (std::size_t i = 0, n = values.size(); i < n; ++i) {
            auto const scaled = static_cast<long double>(from[i] * by);
            squares += scaled * scaled;
        }
        return squares;
    }
    void update() {
        double norm = 0;
        if constexpr (optimizer::facts.two_phases()) {
            long double squares = 0;
            for (std::size_t i = 0; i < own_.size(); ++i)
                if (!train_.frozen(tensors_[i].group)) squares += squares_of(reduce_.tensor(i), unscale());
            norm = train_.gradient_norm();
            on_.expect(are_near(norm, static_cast<double>(__builtin_sqrtl(squares))),
                       "the norm of all gradients");
            for (std::span<std::byte const> const other :
                 on_.ranks.all_gather(std::as_bytes(std::span(&norm, 1))))
                on_.expect(same_bytes(other, std::span(&norm, 1)), "a norm of other bits");
        }
        for (std::size_t i = 0; i < own_.size(); ++i) {
            if (train_.frozen(tensors_[i].group)) continue;
            auto const& values = train_.hyper(tensors_[i].group);
            number factor = 1;
            if constexpr (optimizer::facts.clips)
                if (norm > values.clip) factor = static_cast<number>(values.clip / norm);
            tensor_norms told;
            if constexpr (optimizer::facts.tensor_norms) told = train_.norms(i);
            own_[i].step(reduce_.tensor(i), values, steps_, unscale(), factor, told);
            on_.expect(are_near(told.weights, own_[i].norms.weights) &&
                           are_near(told.directions, own_[i].norms.directions),
                       "the norms of tensor " + std::to_string(i));
        }
    }

    On& on_;
    layout tensors_;
    Trainer train_;
    Reducer reduce_;
    std::vector<own_update<optimizer, element>> own_;
    std::uint64_t steps_ = 0;
};

/// Shape: `Trainer` has an optimizer; `Reducer` is the same without it, of the type that `Trainer`'s elements are summed in, and
///        names the rule.
template <class Trainer, class Reducer>
findings optimizer_suite(settings const& how = {}, std::size_t shapes = shapes_of_optimizers.size()) {
    using optimizer = typename Trainer::pack::optimizer;
    findings all;
    for (std::size_t shape = 0; shape < shapes; ++shape) {
        auto const& nodes = shapes_of_optimizers[shape];
        std::string name = "the bits of one's own update, on";
        for (auto const& node : nodes) name += " " + node;
        append(all, run_case(name, static_cast<int>(nodes.size()), nodes, how, [shape](auto& on) {
                   std::size_t const groups = shape % 2 == 0 ? 3 : 1;
                   two_models<Trainer, Reducer, std::remove_cvref_t<decltype(on)>> both(on, groups);
                   for (int again = 0; again < (sanitized ? 1 : 2); ++again) {
                       both.begin(again);
                       for (int step = 0; step < 4; ++step) {
                           auto& train = both.train();
                           if (step == 2) {
                               auto values = train.hyper();
                               values.rate = values.rate / 2;
                               train.set(values);
                               if constexpr (requires { train.loss_scale(); }) train.set_loss_scale(1024);
                           }
                           if (groups > 1) {
                               auto values = train.hyper(1);
                               values.rate = values.rate * 3;
                               train.set(1, values);
                               train.freeze(2, step % 2 == 1);
                           }
                           if constexpr (optimizer::facts.on_nonfinite == nonfinite::skip_step)
                               both.step(step, true);
                           both.step(step);
                       }
                   }
                   on.ranks.barrier();
               }));
    }
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_OPTIMIZER_SUITE_HPP

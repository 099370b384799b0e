// herring: what an optimizer in two phases must do with servers of their own: every worker is told, and has, what it is and has without.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_DEDICATED_TWO_PHASES_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_DEDICATED_TWO_PHASES_SUITE_HPP

#include "conformance/dedicated_suite.hpp"
#include "conformance/optimizer_suite.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace herring::conformance {

/// Asks for norms, and keeps all numbers multiples of 1/64: so sums of squares are exact, and norms have the same bits however
/// many ranks combine. What it does depends on the last digits of the norms.
struct exact_by_norms {
    using axis = axes::optimizer;
    static constexpr char const* name = "exact_by_norms";
    static constexpr optimizer_facts facts{.states = 1, .tensor_norms = true};
    struct hyper {
        double rate = 2;
    };
    template <class Number> static Number prepare(hyper const& values, std::uint64_t) noexcept {
        return static_cast<Number>(values.rate);
    }
    template <class Number>
    static Number direction(Number, Number gradient, Number* state, Number const&) noexcept {
        Number const made = gradient - state[0];
        state[0] = gradient;
        return made;
    }
    template <class Number> static Number adapt(Number rate, tensor_norms const& of) noexcept {
        return rate + static_cast<Number>((__builtin_bit_cast(std::uint64_t, of.weights) >> 8 ^
                                           __builtin_bit_cast(std::uint64_t, of.directions) >> 8) %
                                          3);
    }
    template <class Number>
    static void step(Number& weight, Number direction, Number*, Number const& rate) noexcept {
        weight = weight - lanes::product(rate, direction);
    }
};

/// Six steps, with groups, one of which is frozen for a while, other hyper values on the way, and two that are skipped where the
/// optimizer skips. Each worker compares weights with those of an update of its own, and the norm with that of all gradients,
/// whose sum it knows. `Exact`: norms of tensors have the same bits on any ranks, so all is compared with colocated ranks too.
template <bool Exact> struct steps_of_two_phases {
    static layout tensors() {
        std::vector<tensor_spec> all;
        for (std::size_t const n : std::vector<std::size_t>{3, sanitized ? 5'001u : 20'569u, 0, 17, 1, 900,
                                                            5121, sanitized ? 9'101u : 41'101u, 512, 40})
            all.push_back({std::to_string(all.size()), n, all.size() % 3});
        return layout(std::move(all));
    }
    template <class Trainer> static void work(world& ranks, results& into) {
        using T = typename Trainer::element_type;
        using number = accumulator<T>;
        using of = typename Trainer::pack::optimizer;
        constexpr bool skips = of::facts.on_nonfinite == nonfinite::skip_step;
        layout const all = tensors();
        Trainer train(ranks, all);
        int const me = ranks.worker();
        int root = 0;
        while (ranks.topology().worker(root) != ranks.workers() - 1) ++root;
        train.start(root, [](std::size_t i, std::span<T> weights) {
            for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = value<T>(50, i, k, 0);
        });
        std::vector<own_update<of, T>> own;
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::vector<T> weights(all[i].elements);
            for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = value<T>(50, i, k, 0);
            own.emplace_back(weights);
        }
        std::uint64_t steps = 0;
        for (int turn = 0; turn < 6; ++turn) {
            bool const bad = skips && turn % 3 == 1;
            number unscale = 1;
            if (turn >= 2) {
                auto values = train.hyper(1);
                values.rate = values.rate / 2;
                if (turn == 2) train.set(1, values);
                if constexpr (requires { train.loss_scale(); }) {
                    train.set_loss_scale(2);
                    unscale = 0.5f;
                }
            }
            train.freeze(2, turn == 2 || turn == 3);
            for (std::size_t i = train.size(); i-- > 0;) {
                std::span<T> const gradient = train.tensor(i);
                T* const to = gradient.data();
                for (std::size_t k = 0, n = gradient.size(); k < n; ++k) to[k] = value<T>(me, i, k, turn + 1);
                if (bad && i == 1 && me == ranks.workers() - 1)
                    gradient.back() = static_cast<T>(std::numeric_limits<float>::infinity());
                train.ready(i);
            }
            herring::step const ended = train.wait();
            require(ended == (bad ? herring::step::skipped : herring::step::exchanged) &&
                        train.outcome() == ended,
                    turn, "what became of it");
            double const norm = train.gradient_norm();
            if (bad) {
                require(std::isinf(norm), turn, "the norm of a step that was skipped");
            } else {
                ++steps;
                std::vector<std::vector<number>> sums;
                double squares = 0; // exact
                for (std::size_t i = 0; i < all.size(); ++i) {
                    std::size_t const n = all[i].elements;
                    sums.emplace_back(n);
                    number* const to = sums.back().data();
                    bool const counts = !train.frozen(all[i].group);
                    int const workers = ranks.workers();
                    for (std::size_t k = 0; k < n; ++k) {
                        number sum = 0;
                        for (int w = 0; w < workers; ++w)
                            sum += static_cast<number>(value<T>(w, i, k, turn + 1));
                        to[k] = sum;
                        double const scaled = static_cast<double>(sum * unscale);
                        if (counts) squares += scaled * scaled;
                    }
                }
                require(norm == std::sqrt(squares), turn, "the norm of all gradients");
                for (std::size_t i = 0; i < all.size(); ++i) {
                    if (train.frozen(all[i].group)) continue;
                    auto const& values = train.hyper(all[i].group);
                    number factor = 1;
                    if constexpr (of::facts.clips)
                        if (norm > values.clip) factor = static_cast<number>(values.clip / norm);
                    tensor_norms told;
                    if constexpr (of::facts.tensor_norms) told = train.norms(i);
                    own[i].step(sums[i], values, steps, unscale, factor, told);
                    require(are_near(told.weights, own[i].norms.weights) &&
                                are_near(told.directions, own[i].norms.directions),
                            turn, "the norms of tensor " + std::to_string(i));
                    if constexpr (Exact && of::facts.tensor_norms)
                        into.add<double>(me, "norms of a tensor", std::array{told.weights, told.directions});
                }
            }
            into.add<double>(me, "the norm", std::span(&norm, 1));
            for (std::size_t i = 0; i < train.size(); ++i) {
                require(same_bytes(train.weights(i), own[i].weights()), turn,
                        "the weights of tensor " + std::to_string(i));
                if (Exact) into.add<T>(me, "weights", train.weights(i));
            }
            if constexpr (std::is_same_v<T, number>)
                if (turn == 3 || bad) // a call behind a step, and behind one that was skipped
                    require(train.all_reduce(T(1)) == static_cast<T>(ranks.workers()), turn,
                            "a call behind it");
        }
    }

  private:
    static void require(bool holds, int turn, std::string const& what) {
        if (!holds) throw std::runtime_error("step " + std::to_string(turn) + ": not so: " + what);
    }
    /// A multiple of 1/64, at most 1/2: sums over the workers, and of their squares, are exact.
    template <class T> static T value(int worker, std::size_t i, std::size_t k, int turn) {
        std::uint64_t mixed =
            (static_cast<std::uint64_t>(worker) * 977 + i * 131 + k) * 0x9e37'79b9'7f4a'7c15u +
            static_cast<std::uint64_t>(turn) * 0xc2b2'ae3d'27d4'eb4fu;
        mixed ^= mixed >> 29;
        auto const small = static_cast<int>(mixed * 0xbf58'476d'1ce4'e5b9u >> 58) - 32;
        return static_cast<T>(static_cast<accumulator<T>>(small) / 64);
    }
};

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_DEDICATED_TWO_PHASES_SUITE_HPP

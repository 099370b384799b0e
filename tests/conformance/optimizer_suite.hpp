// herring: what a model of an optimizer must do: update weights, where gradients are summed, to the bits of every rank's own update.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_OPTIMIZER_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_OPTIMIZER_SUITE_HPP

#include "conformance/suite.hpp"

#include "herring/herring.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace herring::conformance {

/// Ranks by their nodes: every route is taken by one of them.
inline std::vector<std::vector<std::string>> const shapes_of_optimizers{
    {"a", "a", "a"}, {"a", "b", "a", "b"}, {"a", "b", "b", "c"}, {"a", "b", "c", "d"},
    {"a", "a"},      {"a", "b"},           {"a", "b", "c"},      {"a"}};
/// Sizes that share buckets and lines, take a bucket each, are split, and are empty.
inline std::vector<std::size_t> const sizes_of_optimizers{3, 65'569, 0, 17, 1, 900, 5121, 131'101, 512, 40};

/// The same on every rank: the update of all weights by plain loops over single weights, from reduced gradients.
template <class Optimizer, class Number> class own_update {
  public:
    explicit own_update(std::size_t elements)
        : weights(elements), state_(elements * static_cast<std::size_t>(Optimizer::facts.states)) {}
    void step(std::span<Number const> gradients, typename Optimizer::hyper const& values) {
        auto const prepared = Optimizer::template prepare<Number>(values, ++steps_);
        constexpr auto states = static_cast<std::size_t>(Optimizer::facts.states);
        for (std::size_t i = 0; i < weights.size(); ++i)
            Optimizer::step(weights[i], gradients[i], state_.data() + i * states, prepared);
    }
    std::vector<Number> weights;

  private:
    std::vector<Number> state_; // of one weight side by side: other memory than the reducer's
    std::uint64_t steps_ = 0;
};

/// Shape:   `Trainer` has an optimizer; `Reducer` is the same without it, and names the rule.
template <class Trainer, class Reducer>
findings optimizer_suite(settings const& how = {}, std::size_t shapes = shapes_of_optimizers.size()) {
    using number = typename Trainer::element_type;
    using optimizer = typename Trainer::pack::optimizer;
    findings all;
    for (std::size_t shape = 0; shape < shapes; ++shape) {
        auto const& nodes = shapes_of_optimizers[shape];
        std::string name = "the bits of one's own update, on";
        for (auto const& node : nodes) name += " " + node;
        append(all, run_case(name, static_cast<int>(nodes.size()), nodes, how, [&](auto& on) {
                   layout const tensors = layout::of(sizes_of_optimizers);
                   Trainer train(on.ranks, tensors);
                   Reducer reduce(on.ranks, tensors);
                   int const root = on.ranks.size() - 1;
                   std::vector<own_update<optimizer, number>> own;
                   for (std::size_t const n : sizes_of_optimizers) own.emplace_back(n);
                   auto const value = [](std::uint64_t rank, std::size_t i, std::size_t at, int step) {
                       std::uint64_t mixed = (rank * 977 + i * 131 + at) * 0x9e3779b97f4a7c15u +
                                             static_cast<std::uint64_t>(step) * 0xc2b2ae3d27d4eb4fu;
                       mixed ^= mixed >> 29;
                       return static_cast<number>(
                           static_cast<double>(mixed * 0xbf58476d1ce4e5b9u >> 40) / (1 << 23) - 1);
                   };
                   for (int again = 0; again < 2; ++again) {
                       train.start(root, [&](std::size_t i, std::span<number> into) {
                           if (on.ranks.rank() != root) on.find("fill was called on another rank than root");
                           for (std::size_t at = 0; at < into.size(); ++at)
                               into[at] = value(99, i, at, again);
                       });
                       for (std::size_t i = 0; i < own.size(); ++i) {
                           own[i] = own_update<optimizer, number>(sizes_of_optimizers[i]);
                           for (std::size_t at = 0; at < own[i].weights.size(); ++at)
                               own[i].weights[at] = value(99, i, at, again);
                       }
                       std::vector<std::vector<number>> lent(own.size());
                       for (int step = 0; step < 4; ++step) {
                           if (step == 2) {
                               auto values = train.hyper();
                               values.rate = values.rate / 2;
                               train.set(values);
                           }
                           for (std::size_t back = own.size(); back-- > 0;) {
                               std::span<number> const gradient = train.tensor(back);
                               std::span<number> const theirs = reduce.tensor(back);
                               lent[back].resize(gradient.size());
                               for (std::size_t at = 0; at < gradient.size(); ++at) {
                                   auto const rank = static_cast<std::uint64_t>(on.ranks.rank());
                                   gradient[at] = theirs[at] = lent[back][at] = value(rank, back, at, step);
                               }
                               reduce.ready(back);
                               if (step % 2 == 1) // from memory of the program's
                                   train.ready(back, std::span<number>(lent[back]));
                               else
                                   train.ready(back);
                           }
                           reduce.wait();
                           train.wait();
                           for (std::size_t i = 0; i < own.size(); ++i) {
                               own[i].step(reduce.tensor(i), train.hyper());
                               std::span<number const> const got = train.weights(i);
                               if (!std::ranges::equal(std::as_bytes(got),
                                                       std::as_bytes(std::span(own[i].weights))))
                                   on.find("step " + std::to_string(step) + ": tensor " + std::to_string(i) +
                                           " has other weights than after an own update");
                           }
                       }
                   }
                   on.ranks.barrier();
               }));
    }
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_OPTIMIZER_SUITE_HPP

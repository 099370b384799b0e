// herring: the fold with an optimizer behind it against plain loops, bit for bit, and what it says of gradients that are not finite.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/optimise.hpp"

#include "doctest/doctest.h"

#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/optimizer/nesterov.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/update/rules.hpp"
#include "sanitizers.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace optimise_test {

using herring::kernel::fold_optimising;
using herring::kernel::source;

template <class Number> using bits = std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>;

template <class Number> std::vector<bits<Number>> bits_of(std::vector<Number> const& values) {
    std::vector<bits<Number>> made;
    for (Number const value : values) made.push_back(std::bit_cast<bits<Number>>(value));
    return made;
}

template <class Number> std::vector<Number> drawn(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Number> made(count);
    for (Number& value : made)
        value = static_cast<Number>(static_cast<int>(random() % 20'001) - 10'000) / Number(4096);
    return made;
}

/// Contributions of `ranks`, folded by the kernel, and by plain loops that take one number at a time.
template <class Optimizer, class Update, class Number>
void agrees(std::size_t count, int ranks, int steps, std::size_t split) {
    constexpr std::size_t states = static_cast<std::size_t>(Optimizer::facts.states);
    std::size_t const stride = count + 3; // arrays of the state do not follow each other at once
    std::vector<Number> weights = drawn<Number>(count, 1), state(states * stride, Number(0));
    std::vector<Number> due = weights, due_state = state;
    for (int step = 1; step <= steps; ++step) {
        auto const with = Optimizer::template prepare<Number>(typename Optimizer::hyper{},
                                                              static_cast<std::uint64_t>(step));
        std::vector<std::vector<Number>> given;
        for (int r = 0; r < ranks; ++r)
            given.push_back(drawn<Number>(count, static_cast<unsigned>(100 * step + r)));
        // In two calls, as two chunks are.
        for (std::size_t begin = 0; begin < count; begin += split) {
            std::size_t const here = std::min(split, count - begin);
            std::vector<source> group;
            for (auto const& of_rank : given)
                group.push_back({reinterpret_cast<std::byte const*>(of_rank.data() + begin)});
            CHECK(fold_optimising<Update, Optimizer, Number>(
                      {}, group, {},
                      {weights.data() + begin, states == 0 ? nullptr : state.data() + begin, stride}, here,
                      ranks, with) == here);
        }
        for (std::size_t i = 0; i < count; ++i) {
            Number gradient = given[0][i];
            for (int r = 1; r < ranks; ++r) gradient = gradient + given[static_cast<std::size_t>(r)][i];
            if (std::is_same_v<Update, herring::update::average>)
                gradient = gradient / static_cast<Number>(ranks);
            Number kept[states + 1];
            for (std::size_t s = 0; s < states; ++s) kept[s] = due_state[s * stride + i];
            Optimizer::step(due[i], gradient, kept, with);
            for (std::size_t s = 0; s < states; ++s) due_state[s * stride + i] = kept[s];
        }
        REQUIRE(bits_of(weights) == bits_of(due));
        REQUIRE(bits_of(state) == bits_of(due_state));
    }
}

template <class Optimizer> void agrees_in_all_sizes() {
    using herring::update::average;
    using herring::update::sum;
    agrees<Optimizer, sum, float>(1, 1, 3, 1);
    agrees<Optimizer, sum, float>(17, 2, 3, 8);
    agrees<Optimizer, average, float>(1000, 4, 5, 1000);
    agrees<Optimizer, average, float>(1000, 4, 2, 96);
    agrees<Optimizer, average, double>(333, 2, 3, 64);
}

} // namespace optimise_test

using namespace optimise_test;

TEST_CASE("optimise: weights and state have the bits of plain loops, for every size and cut") {
    agrees_in_all_sizes<herring::optimizer::sgd>();
    agrees_in_all_sizes<herring::optimizer::momentum>();
    agrees_in_all_sizes<herring::optimizer::nesterov>();
    agrees_in_all_sizes<herring::optimizer::adamw>();
}

TEST_CASE("optimise: the first step of AdamW, by hand") {
    using herring::optimizer::adamw;
    // m = 0.1 g, v = 0.001 g²; both corrected they are g and g², so the weight moves by the rate, after its decay.
    float weight = 2, state[2] = {0, 0}, gradient = 0.5f;
    auto const with = adamw::prepare<float>({.rate = 0.1, .epsilon = 0, .decay = 0.5}, 1);
    source const one{reinterpret_cast<std::byte const*>(&gradient)};
    CHECK(fold_optimising<herring::update::sum, adamw, float>({}, {&one, 1}, {}, {&weight, state, 1}, 1, 1,
                                                              with) == 1);
    CHECK(weight == doctest::Approx(2 * (1 - 0.1 * 0.5) - 0.1));
    CHECK(state[0] == doctest::Approx(0.05));
    CHECK(state[1] == doctest::Approx(0.00025));
}

TEST_CASE("optimise: the first gradient that is not finite is named, wherever it lies") {
    using herring::optimizer::sgd;
    constexpr std::size_t count = 300;
    for (float const bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()})
        for (std::size_t const at : {0u, 1u, 63u, 64u, 200u, 299u}) {
            std::vector<float> gradients(count, 1.0f), weights(count, 1.0f);
            gradients[at] = bad;
            gradients[count - 1] = bad;
            source const one{reinterpret_cast<std::byte const*>(gradients.data())};
            CHECK(fold_optimising<herring::update::sum, sgd, float>({}, {&one, 1}, {},
                                                                    {weights.data(), nullptr, 0}, count, 1,
                                                                    sgd::prepare<float>({}, 1)) == at);
        }
}

// herring: must not compile: an optimizer whose direction returns nothing.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <cstdint>

struct own {
    using axis = herring::axes::optimizer;
    static constexpr char const* name = "own";
    static constexpr herring::optimizer_facts facts{.states = 1, .takes_vectors = true, .tensor_norms = true};
    struct hyper {
        double rate = 0.1;
    };
    template <class Number> static Number prepare(hyper const& h, std::uint64_t) noexcept {
        return static_cast<Number>(h.rate);
    }
#ifndef HERRING_TWIN
    template <class Lanes, class Number>
    static void direction(Lanes, Lanes gradient, Lanes* state, Number const&) noexcept {
        state[0] = gradient;
    }
#else
    template <class Lanes, class Number>
    static Lanes direction(Lanes, Lanes gradient, Lanes* state, Number const&) noexcept {
        state[0] = gradient;
        return gradient;
    }
#endif
    template <class Number> static Number adapt(Number const& rate, herring::tensor_norms const&) noexcept {
        return rate;
    }
    template <class Lanes, class Number>
    static void step(Lanes& weight, Lanes gradient, Lanes*, Number const& rate) noexcept {
        weight = weight - rate * gradient;
    }
};

using mine = pack<float, line, own>;

#include "use.hpp"

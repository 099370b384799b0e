// herring: must not compile: an optimizer that takes the weight by value, and so updates a copy of it.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <cstdint>

#ifndef HERRING_TWIN
template <class Lanes> using weight_of = Lanes;
#else
template <class Lanes> using weight_of = Lanes&;
#endif

struct own {
    using axis = herring::axes::optimizer;
    static constexpr char const* name = "own";
    static constexpr herring::optimizer_facts facts{.takes_vectors = true};
    struct hyper {
        double rate = 0.1;
    };
    template <class Number> static Number prepare(hyper const& h, std::uint64_t) noexcept {
        return static_cast<Number>(h.rate);
    }
    template <class Lanes, class Number>
    static void step(weight_of<Lanes> weight, Lanes gradient, Lanes*, Number const& rate) noexcept {
        weight = weight - rate * gradient;
    }
};

using mine = pack<float, line, own>;

#include "use.hpp"

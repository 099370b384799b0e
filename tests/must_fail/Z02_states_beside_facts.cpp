// herring: must not compile: an optimizer whose number of states stands beside its facts.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <cstdint>

struct own {
    using axis = herring::axes::optimizer;
    static constexpr char const* name = "own";
#ifndef HERRING_TWIN
    static constexpr int states = 1;
    static constexpr herring::optimizer_facts facts{.takes_vectors = true};
#else
    static constexpr herring::optimizer_facts facts{.states = 1, .takes_vectors = true};
#endif
    struct hyper {
        double rate = 0.1;
    };
    template <class Number> static Number prepare(hyper const& h, std::uint64_t) noexcept {
        return static_cast<Number>(h.rate);
    }
    template <class Lanes, class Number>
    static void step(Lanes& weight, Lanes gradient, Lanes*, Number const& rate) noexcept {
        weight = weight - rate * gradient;
    }
};

using mine = pack<float, line, own>;

#include "use.hpp"

// herring: must not compile: an optimizer whose greatest norm has another name.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <cstdint>

struct own {
    using axis = herring::axes::optimizer;
    static constexpr char const* name = "own";
    static constexpr herring::optimizer_facts facts{.clips = true};
    struct hyper {
        double rate = 0.1;
#ifndef HERRING_TWIN
        double most = 1;
#else
        double clip = 1;
#endif
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

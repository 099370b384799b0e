// herring: must not compile: an optimizer of one's own without the header of what updates weights.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
#include "herring/training.hpp"
#endif

#include <cstdint>

struct own {
    using axis = herring::axes::optimizer;
    static constexpr char const* name = "own";
    static constexpr herring::optimizer_facts facts{};
    struct hyper {
        double rate = 0.1;
    };
    template <class Number> static Number prepare(hyper const& h, std::uint64_t) noexcept {
        return static_cast<Number>(h.rate);
    }
    template <class Number>
    static void step(Number& weight, Number gradient, Number*, Number const& rate) noexcept {
        weight = weight - rate * gradient;
    }
};

void train(herring::world& world) {
    herring::reducer<float, herring::transport::inproc, own> reduce(world, herring::layout{{"a", 100}});
    reduce.start(0, [](std::size_t, auto weights) {
        for (auto& weight : weights) weight = 0;
    });
    reduce.ready(0);
    reduce.wait();
}

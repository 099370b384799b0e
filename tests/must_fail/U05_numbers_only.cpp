// herring: must not compile: a rule that says it takes vectors, and takes numbers.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::update;
    static constexpr char const* name = "own";
    template <class T> static constexpr bool supports = std::is_same_v<T, float>;
#ifndef HERRING_TWIN
    static constexpr herring::update_facts facts{.takes_vectors = true};
#else
    static constexpr herring::update_facts facts{};
#endif
    static float combine(float a, float b) noexcept { return a + b; }
    static float finish(float total, int) noexcept { return total; }
};

using mine = pack<float, line, own>;

#include "use.hpp"

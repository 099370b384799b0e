// herring: must not compile: a codec of entries without a function that counts.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/wire.hpp"

struct own {
    using axis = herring::axes::wire;
    static constexpr char const* name = "own";
    static constexpr herring::wire_facts facts{.entries = true};
    template <class T> static constexpr bool supports = std::is_same_v<T, float>;
#ifndef HERRING_TWIN
    static constexpr std::size_t count = 64;
#else
    static constexpr std::size_t count(std::size_t elements) noexcept {
        return elements < 64 ? elements : 64;
    }
#endif
};

inline constexpr bool mine = herring::check<herring::axes::wire, own>::value;

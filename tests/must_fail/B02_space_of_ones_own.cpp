// herring: must not compile: a combine rule over a space of its own.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

struct own {
    using axis = herring::axes::combine;
    static constexpr char const* name = "own";
#ifndef HERRING_TWIN
    struct space {};
#else
    using space = herring::space::value;
#endif
    using weighting = herring::weighting::none;
    static constexpr herring::combine_facts facts{};
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        return rows[0];
    }
};

inline constexpr bool mine = herring::check<herring::axes::combine, own>::value;

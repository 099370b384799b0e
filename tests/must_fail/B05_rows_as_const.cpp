// herring: must not compile: a combine rule that takes rows as const.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

struct own {
    using axis = herring::axes::combine;
    static constexpr char const* name = "own";
    using space = herring::space::value;
    using weighting = herring::weighting::none;
    static constexpr herring::combine_facts facts{};
#ifndef HERRING_TWIN
    template <class Lane> static auto combine(std::span<Lane const> rows, std::span<float const>) noexcept {
        return rows[0];
    }
#else
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        return rows[0];
    }
#endif
};

inline constexpr bool mine = herring::check<herring::axes::combine, own>::value;

// herring: must not compile: a combine rule with a fact that nothing reads.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

struct own {
    using axis = herring::axes::combine;
    static constexpr char const* name = "own";
    using space = herring::space::value;
    using weighting = herring::weighting::none;
#ifndef HERRING_TWIN
    static constexpr bool takes_vectors = true;
#else
    static constexpr herring::combine_facts facts{};
#endif
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        return rows[0];
    }
};

inline constexpr bool mine = herring::check<herring::axes::combine, own>::value;

// herring: must not compile: a combine rule that does not say how it weights.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

struct own {
    using axis = herring::axes::combine;
    static constexpr char const* name = "own";
    using space = herring::space::value;
#ifdef HERRING_TWIN
    using weighting = herring::weighting::none;
#endif
    static constexpr herring::combine_facts facts{};
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        return rows[0];
    }
};

inline constexpr bool mine = herring::check<herring::axes::combine, own>::value;

// herring: must not compile: a combine rule without a name.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"

struct own {
    using axis = herring::axes::combine;
#ifdef HERRING_TWIN
    static constexpr char const* name = "own";
#endif
    using space = herring::space::value;
    using weighting = herring::weighting::none;
    static constexpr herring::combine_facts facts{};
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        return rows[0];
    }
};

inline constexpr bool mine = herring::check<herring::axes::combine, own>::value;

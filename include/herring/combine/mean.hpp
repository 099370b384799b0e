// herring: the combine policy `mean`: the weighted mean of the rows.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COMBINE_MEAN_HPP
#define HERRING_COMBINE_MEAN_HPP

#include <cstddef>
#include <span>

#include "herring/base/config.hpp"
#include "herring/combine/combine.hpp"
#include "herring/policy/composed_name.hpp"

namespace HERRING_NAMESPACE::combine {

namespace detail {
struct mean_word {
    static constexpr char const* word = "mean";
};
} // namespace detail

/// The mean of the rows, element by element: Σ w·x / Σ w over those who answered, or Σ w·x with `weighting::as_given`.
///
/// Shape:   summed in the order of the roster, in fp32 (fp64 for double).
/// Cost:    reads each row once and writes the result once.
template <row_space Space, row_weighting Weighting = herring::weighting::none> struct mean {
    using axis = axes::combine;
    using space = Space;
    using weighting = Weighting;
    static constexpr char const* name =
        herring::detail::composed_name<detail::mean_word, Space, Weighting>.data();
    static constexpr combine_facts facts{.takes_vectors = true, .linear = true};

    template <class Lane>
    static constexpr Lane combine(std::span<Lane> rows, std::span<float const> weights) noexcept {
        Lane total = rows[0] * weights[0];
        for (std::size_t row = 1; row < rows.size(); ++row) total += rows[row] * weights[row];
        return total;
    }
};
static_assert(combine_policy<mean<herring::space::probability>>);

} // namespace HERRING_NAMESPACE::combine

#endif // HERRING_COMBINE_MEAN_HPP

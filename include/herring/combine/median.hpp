// herring: the combine policy `median`: the middle one of the rows, element by element.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COMBINE_MEDIAN_HPP
#define HERRING_COMBINE_MEDIAN_HPP

#include <cstddef>
#include <span>

#include "herring/base/config.hpp"
#include "herring/combine/combine.hpp"
#include "herring/kernel/sorted_rows.hpp"
#include "herring/policy/composed_name.hpp"

namespace HERRING_NAMESPACE::combine {

namespace detail {
struct median_word {
    static constexpr char const* word = "median";
};
} // namespace detail

/// The median of the rows, element by element; of an even number of rows the mean of the middle two.
///
/// Shape:   medians of probabilities do not sum to 1, and are not made to.
/// Cost:    up to 8 rows are sorted by networks in registers; beyond, the square of the rows.
template <row_space Space> struct median {
    using axis = axes::combine;
    using space = Space;
    using weighting = herring::weighting::none;
    static constexpr char const* name = herring::detail::composed_name<detail::median_word, Space>.data();
    static constexpr combine_facts facts{.takes_vectors = true};

    template <class Lane>
    static constexpr Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        kernel::sort_rows(rows);
        Lane const upper = rows[rows.size() / 2];
        if (rows.size() % 2 == 1) return upper;
        Lane const lower = rows[rows.size() / 2 - 1];
        return lower * 0.5f + upper * 0.5f; // the sum could overflow
    }
};
static_assert(combine_policy<median<herring::space::value>>);

} // namespace HERRING_NAMESPACE::combine

#endif // HERRING_COMBINE_MEDIAN_HPP

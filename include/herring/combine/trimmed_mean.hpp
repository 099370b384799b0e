// herring: the combine policy `trimmed_mean`: the mean of the rows without the least and the greatest, element by element.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COMBINE_TRIMMED_MEAN_HPP
#define HERRING_COMBINE_TRIMMED_MEAN_HPP

#include <array>
#include <cstddef>
#include <span>

#include "herring/base/config.hpp"
#include "herring/combine/combine.hpp"
#include "herring/kernel/sorted_rows.hpp"
#include "herring/policy/composed_name.hpp"

namespace HERRING_NAMESPACE::combine {

namespace detail {
struct trimmed_mean_word {
    static constexpr char const* word = "trimmed_mean";
};
// A number below 1,000 with a name.
template <unsigned Number> struct permille {
    static constexpr std::array<char, 4> digits = {
        Number >= 100 ? static_cast<char>('0' + Number / 100) : ' ',
        Number >= 10 ? static_cast<char>('0' + Number / 10 % 10) : ' ', static_cast<char>('0' + Number % 10),
        0};
    static constexpr char const* name = digits.data() + (Number >= 100 ? 0 : Number >= 10 ? 1 : 2);
};
} // namespace detail

/// The mean of the rows that are left, element by element, when of those that came ⌊n · share⌋ of the least and as many of the
/// greatest are left out.
///
/// Shape:   share in thousandths, below 500. With 200, the default: of 3 or 4 rows none is left out, of 5 to 9 one at each end.
///          Such means of probabilities do not sum to 1, and are not made to.
/// Cost:    up to 8 rows are sorted by networks in registers; beyond, the square of the rows.
template <row_space Space, unsigned PermilleAtEachEnd = 200>
requires(PermilleAtEachEnd < 500) //
    struct trimmed_mean {
    using axis = axes::combine;
    using space = Space;
    using weighting = herring::weighting::none;
    static constexpr char const* name =
        herring::detail::composed_name<detail::trimmed_mean_word, Space, detail::permille<PermilleAtEachEnd>>.data();
    static constexpr combine_facts facts{.takes_vectors = true};

    template <class Lane>
    static constexpr Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        std::size_t const out = rows.size() * PermilleAtEachEnd / 1000;
        kernel::sort_rows(rows);
        Lane total = rows[out];
        for (std::size_t row = out + 1; row < rows.size() - out; ++row) total += rows[row];
        return total / static_cast<float>(rows.size() - 2 * out);
    }
};
static_assert(combine_policy<trimmed_mean<herring::space::value>>);

} // namespace HERRING_NAMESPACE::combine

#endif // HERRING_COMBINE_TRIMMED_MEAN_HPP

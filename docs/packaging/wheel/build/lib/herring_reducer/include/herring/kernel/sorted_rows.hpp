// herring: sorts several rows lane by lane; few rows by networks of minimum and maximum.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_SORTED_ROWS_HPP
#define HERRING_KERNEL_SORTED_ROWS_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "herring/base/config.hpp"

namespace HERRING_NAMESPACE::kernel {

namespace detail {

template <class Lane> HERRING_ALWAYS_INLINE constexpr void exchange(Lane& low, Lane& high) noexcept {
    Lane const less = low < high ? low : high;
    high = low < high ? high : low;
    low = less;
}

struct exchanged {
    std::uint8_t low, high;
};

/// The networks of fewest comparisons for `Count` numbers.
///
/// Source: Knuth, volume 3, 5.3.4.
template <std::size_t Count> inline constexpr exchanged network[1] = {};
template <> inline constexpr exchanged network<2>[] = {{0, 1}};
template <> inline constexpr exchanged network<3>[] = {{0, 2}, {0, 1}, {1, 2}};
template <> inline constexpr exchanged network<4>[] = {{0, 2}, {1, 3}, {0, 1}, {2, 3}, {1, 2}};
template <>
inline constexpr exchanged network<5>[] = {{0, 3}, {1, 4}, {0, 2}, {1, 3}, {0, 1},
                                           {2, 4}, {1, 2}, {3, 4}, {2, 3}};
template <>
inline constexpr exchanged network<6>[] = {{0, 5}, {1, 3}, {2, 4}, {1, 2}, {3, 4}, {0, 3},
                                           {2, 5}, {0, 1}, {2, 3}, {4, 5}, {1, 2}, {3, 4}};
template <>
inline constexpr exchanged network<7>[] = {{0, 6}, {2, 3}, {4, 5}, {0, 2}, {1, 4}, {3, 6}, {0, 1}, {2, 5},
                                           {3, 4}, {1, 2}, {4, 6}, {2, 3}, {4, 5}, {1, 2}, {3, 4}, {5, 6}};
template <>
inline constexpr exchanged network<8>[] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6},
                                           {3, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {2, 4}, {3, 5},
                                           {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};

template <std::size_t Count, class Lane, std::size_t... Step>
HERRING_ALWAYS_INLINE constexpr void sort_by_network(Lane* rows, std::index_sequence<Step...>) noexcept {
    Lane at[Count]; // registers
    for (std::size_t i = 0; i < Count; ++i) at[i] = rows[i];
    (detail::exchange(at[network<Count>[Step].low], at[network<Count>[Step].high]), ...);
    for (std::size_t i = 0; i < Count; ++i) rows[i] = at[i];
}
template <std::size_t Count, class Lane>
HERRING_ALWAYS_INLINE constexpr void sort_by_network(Lane* rows) noexcept {
    constexpr std::size_t steps = sizeof(network<Count>) / sizeof(exchanged);
    detail::sort_by_network<Count>(rows, std::make_index_sequence<steps>());
}

} // namespace detail

/// Sorts rows (of numbers, or of GNU vectors) in ascending order, each lane by itself. Not for NaN.
///
/// Cost: 2 to 8 rows: 1, 3, 5, 9, 12, 16, 19 pairs of a minimum and a maximum, in registers; beyond, the
///       square of the rows.
template <class Lane> HERRING_ALWAYS_INLINE constexpr void sort_rows(std::span<Lane> rows) noexcept {
    switch (rows.size()) {
    case 0:
    case 1:
        return;
    case 2:
        return detail::sort_by_network<2>(rows.data());
    case 3:
        return detail::sort_by_network<3>(rows.data());
    case 4:
        return detail::sort_by_network<4>(rows.data());
    case 5:
        return detail::sort_by_network<5>(rows.data());
    case 6:
        return detail::sort_by_network<6>(rows.data());
    case 7:
        return detail::sort_by_network<7>(rows.data());
    case 8:
        return detail::sort_by_network<8>(rows.data());
    default:
        // Insertion by exchanges without branches: lanes need different ones.
        for (std::size_t end = 1; end < rows.size(); ++end)
            for (std::size_t i = end; i > 0; --i) detail::exchange(rows[i - 1], rows[i]);
    }
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_SORTED_ROWS_HPP

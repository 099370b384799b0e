// herring: a value and where it is from, for the smallest or largest: MPI_MINLOC and MPI_MAXLOC.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_INDEXED_HPP
#define HERRING_INDEXED_HPP

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE {

/// A value with an index: which rank, cell or sample it is from.
///
/// Shape:   with update::min and update::max: the smallest or largest value, and of equal values the one of
///          the lowest index, as MPI_MINLOC and MPI_MAXLOC have it. A NaN wins over every number.
/// Example: `auto const worst = largest.all_reduce(herring::indexed<double>{residual, rank});`
template <class Value, class Index = std::int64_t> struct indexed {
    Value value;
    Index index;

    friend constexpr bool operator==(indexed const&, indexed const&) = default;
    friend constexpr indexed least(indexed a, indexed b) noexcept {
        return wins(b, a, b.value < a.value) ? b : a;
    }
    friend constexpr indexed greatest(indexed a, indexed b) noexcept {
        return wins(b, a, b.value > a.value) ? b : a;
    }

  private:
    static constexpr bool wins(indexed const& b, indexed const& a, bool beyond) noexcept {
        bool const nan_a = detail::is_nan(a.value), nan_b = detail::is_nan(b.value);
        if (nan_a || nan_b) return nan_a == nan_b ? b.index < a.index : nan_b;
        return beyond || (b.value == a.value && b.index < a.index);
    }
};

template <class Value, class Index> inline constexpr bool is_element<indexed<Value, Index>> = true;
template <class Value, class Index>
struct element<indexed<Value, Index>> : own_element<indexed<Value, Index>> {
    static constexpr indexed<Value, Index> canonical(indexed<Value, Index> x) noexcept {
        return {detail::with_one_nan(x.value), x.index};
    }
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_INDEXED_HPP

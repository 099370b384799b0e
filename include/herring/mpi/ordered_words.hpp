// herring: numbers of all types as 64-bit integers in the same order, so that one reducer finds their least and greatest.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MPI_ORDERED_WORDS_HPP
#define HERRING_MPI_ORDERED_WORDS_HPP

#include "herring/base/config.hpp"
#include "herring/indexed.hpp"

#include <cstdint>
#include <limits>
#include <type_traits>

namespace HERRING_NAMESPACE::detail {

/// Maps min and max of every type to max over one type, so that one reducer serves all of them.
///
/// An order-preserving map from Element to 64-bit integers, complemented for min. A float is exact as a double. The
/// bits of a double that is not negative are ordered as integers; of a negative one the 63 lower bits are
/// complemented. A NaN maps to the largest integer, for min too; no number maps to it.
template <class Element> struct mpi_ordered {
    static constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

    static std::int64_t word(Element x, bool complemented) noexcept {
        std::int64_t key;
        if constexpr (std::is_floating_point_v<Element>) {
            if (x != x) return largest;
            key = folded(__builtin_bit_cast(std::int64_t, static_cast<double>(x)));
        } else {
            key = x;
        }
        return complemented ? ~key : key;
    }
    static Element value(std::int64_t word, bool complemented) noexcept {
        if constexpr (std::is_floating_point_v<Element>)
            if (word == largest) return std::numeric_limits<Element>::quiet_NaN();
        std::int64_t const key = complemented ? ~word : word;
        if constexpr (std::is_floating_point_v<Element>)
            return static_cast<Element>(__builtin_bit_cast(double, folded(key)));
        else
            return static_cast<Element>(key);
    }

  private:
    static constexpr std::int64_t folded(std::int64_t bits) noexcept {
        return bits < 0 ? bits ^ largest : bits;
    }
};

/// Maps minloc and maxloc of every type to max over one type of pairs, in which the lower index wins a tie.
///
/// −0 and +0 are a tie, as for MPI. So the word is that of +0, and the lowest bit of the index word is −0's sign.
template <class Value> struct mpi_ordered_pair {
    using order = mpi_ordered<Value>;

    static indexed<std::int64_t> word(Value x, int index, bool complemented) noexcept {
        bool const zero = x == Value(0);
        return {order::word(zero ? Value(0) : x, complemented),
                2 * std::int64_t{index} + (zero && negative(x))};
    }
    static Value value(indexed<std::int64_t> word, bool complemented) noexcept {
        Value const x = order::value(word.value, complemented);
        return (word.index & 1) != 0 ? static_cast<Value>(-x) : x;
    }
    static int index(indexed<std::int64_t> word) noexcept { return static_cast<int>(word.index >> 1); }

  private:
    static constexpr bool negative(Value x) noexcept {
        if constexpr (std::is_floating_point_v<Value>) return __builtin_signbit(x) != 0;
        return false;
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MPI_ORDERED_WORDS_HPP

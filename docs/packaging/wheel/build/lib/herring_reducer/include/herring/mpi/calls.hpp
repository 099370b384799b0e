// herring: the calls of herring::mpi: their names, and their values as words of one type.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MPI_CALLS_HPP
#define HERRING_MPI_CALLS_HPP

#include "herring/base/config.hpp"
#include "herring/indexed.hpp"

#include <cstdint>
#include <limits>
#include <type_traits>

namespace HERRING_NAMESPACE::detail {

enum class mpi_rule { sum, min, max, minloc, maxloc };

template <class Element> constexpr int mpi_number_of() noexcept {
    if constexpr (std::is_same_v<Element, int>) return 0;
    if constexpr (std::is_same_v<Element, long>) return 1;
    if constexpr (std::is_same_v<Element, long long>) return 2;
    if constexpr (std::is_same_v<Element, float>) return 3;
    return 4;
}

/// Placeholder for the operation in a failure, which `mpi_misuse` replaces by the call.
inline constexpr char const* mpi_operation = "mpi";

/// Returns the number of a rule and a type; `mpi_call_name` names it.
template <class Element> constexpr int mpi_call_number(mpi_rule rule) noexcept {
    return 5 * static_cast<int>(rule) + mpi_number_of<Element>();
}
constexpr mpi_rule mpi_rule_of(int number) noexcept { return static_cast<mpi_rule>(number / 5); }

/// Returns the name of a call: "sum of double".
constexpr char const* mpi_call_name(int number) noexcept {
    constexpr char const* names[][5] = {
        {"sum of int", "sum of long", "sum of long long", "sum of float", "sum of double"},
        {"min of int", "min of long", "min of long long", "min of float", "min of double"},
        {"max of int", "max of long", "max of long long", "max of float", "max of double"},
        {"minloc of int", "minloc of long", "minloc of long long", "minloc of float", "minloc of double"},
        {"maxloc of int", "maxloc of long", "maxloc of long long", "maxloc of float", "maxloc of double"}};
    return names[number / 5][number % 5];
}

/// Maps min and max of every type to max over 64-bit integers, so that one reducer serves all types.
///
/// The map from Element to 64-bit integers preserves the order; for min the integer is complemented. A float
/// is exact as a double. The bits of a double ≥ 0 are ordered as integers; the 63 lower bits of a negative
/// double are complemented. A NaN maps to the largest integer, for min too; no number maps to it.
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

/// Maps minloc and maxloc of every type to max over pairs of 64-bit integers; the lower index wins a tie.
///
/// −0 and +0 are a tie, as for MPI: both have the word of +0, and the index word's lowest bit is the sign.
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

#endif // HERRING_MPI_CALLS_HPP

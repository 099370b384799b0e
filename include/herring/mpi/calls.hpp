// herring: the calls of herring::mpi by rule and type, and their names for errors.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MPI_CALLS_HPP
#define HERRING_MPI_CALLS_HPP

#include "herring/base/config.hpp"

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

/// The operation of a misuse, for which `mpi_misuse` names the call.
inline constexpr char const* mpi_operation = "mpi";

/// Identifies a rule and a type; `mpi_call_name` names it.
template <class Element> constexpr int mpi_call_number(mpi_rule rule) noexcept {
    return 5 * static_cast<int>(rule) + mpi_number_of<Element>();
}
constexpr mpi_rule mpi_rule_of(int number) noexcept { return static_cast<mpi_rule>(number / 5); }

/// "sum of double".
constexpr char const* mpi_call_name(int number) noexcept {
    constexpr char const* names[][5] = {
        {"sum of int", "sum of long", "sum of long long", "sum of float", "sum of double"},
        {"min of int", "min of long", "min of long long", "min of float", "min of double"},
        {"max of int", "max of long", "max of long long", "max of float", "max of double"},
        {"minloc of int", "minloc of long", "minloc of long long", "minloc of float", "minloc of double"},
        {"maxloc of int", "maxloc of long", "maxloc of long long", "maxloc of float", "maxloc of double"}};
    return names[number / 5][number % 5];
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MPI_CALLS_HPP

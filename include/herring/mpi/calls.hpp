// herring: the calls of herring::mpi by rule and type, and their names for errors.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MPI_CALLS_HPP
#define HERRING_MPI_CALLS_HPP

#include "herring/base/config.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE::detail {

enum class mpi_rule { sum, min, max };

template <class Element> constexpr int mpi_number_of() noexcept {
    if constexpr (std::is_same_v<Element, int>) return 0;
    if constexpr (std::is_same_v<Element, long>) return 1;
    if constexpr (std::is_same_v<Element, long long>) return 2;
    if constexpr (std::is_same_v<Element, float>) return 3;
    return 4;
}

/// The operation of a misuse, for which `mpi_misuse` names the call.
inline constexpr char const* mpi_operation = "mpi";

/// "sum of double", of the rule and the type's number.
constexpr char const* mpi_call_name(mpi_rule rule, int type) noexcept {
    constexpr char const* names[][5] = {
        {"sum of int", "sum of long", "sum of long long", "sum of float", "sum of double"},
        {"min of int", "min of long", "min of long long", "min of float", "min of double"},
        {"max of int", "max of long", "max of long long", "max of float", "max of double"}};
    return names[static_cast<int>(rule)][type];
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MPI_CALLS_HPP

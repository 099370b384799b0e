// herring: the check of a policy: clauses in order, one sentence for the first clause that does not hold.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_CHECK_HPP
#define HERRING_POLICY_CHECK_HPP

#include "herring/base/config.hpp"

#include <initializer_list>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// True if a policy models the concept of its axis. Prints one sentence for the first clause that the policy
/// breaks.
///
/// Specialised beside the concept of the axis, in `herring/<axis>/<axis>.hpp`:
/// ```cpp
/// template <class Policy> struct check<axes::trace, Policy> {
///     static constexpr int broken = first_broken({trace_callable<Policy>, trace_nothrow<Policy>});
///     static constexpr bool value = broken < 0;
///     static_assert(broken != 0, "[HRG-R01] trace: needs ...; a common slip is ...");
///     static_assert(broken != 1, "[HRG-R02] trace: needs ...; a common slip is ...");
/// };
/// ```
/// Clauses are evaluated in order. A later clause may assume the earlier ones; where an earlier clause does
/// not hold, it must be `false`, not ill-formed (write each clause as a concept).
template <class Axis, class Policy> struct check {
    static constexpr bool value = true;
    using axis_header_left_out = void;
};

/// Index of the first clause that does not hold; -1 if all hold.
constexpr int first_broken(std::initializer_list<bool> clauses) noexcept {
    int index = 0;
    for (bool const holds : clauses) {
        if (!holds) return index;
        ++index;
    }
    return -1;
}

/// `Check::value`, written so that a failed static_assert in `Check` is the compiler's only message: clang
/// then treats the class as invalid, and the requirement as not met.
template <class Check>
concept holds = requires {
    requires Check::value;
};

namespace detail {
// A call is a constant expression only if the facts are.
template <class Facts> constexpr bool readable(Facts) noexcept { return true; }
} // namespace detail

/// True if a policy has `static constexpr Facts facts{...};`. A misspelt fact does not compile; an omitted
/// fact has the default that `Facts` documents.
template <class Policy, class Facts>
concept states_facts = requires {
    requires std::is_same_v<decltype(Policy::facts), Facts const>;
    requires std::bool_constant < detail::readable<Facts>(Policy::facts)
    > ::value;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_CHECK_HPP

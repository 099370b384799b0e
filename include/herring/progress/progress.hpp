// herring: what a progress policy is: who moves the bytes between ready() and wait().
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PROGRESS_PROGRESS_HPP
#define HERRING_PROGRESS_PROGRESS_HPP

#include "herring/base/config.hpp"
#include "herring/policy.hpp"

#include <concepts>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// `background` is a compile-time bool: whether a thread of the reducer polls while the caller computes.
template <class Policy>
concept progress_says_background = requires {
    requires std::same_as < std::remove_cvref_t<decltype(Policy::background)>,
    bool > ;
    typename std::bool_constant<Policy::background>;
};

/// Who polls the engine.
template <class Policy>
concept progress_policy =
    std::same_as<typename Policy::axis, axes::progress> && progress_says_background<Policy>;

template <class Policy> struct check<axes::progress, Policy> {
    static constexpr bool value = progress_says_background<Policy>;
    static_assert(
        value, "[HRG-G01] progress: needs 'static constexpr bool background'; a common slip is to leave out "
               "constexpr; set it to true if a thread of the reducer shall poll");
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_PROGRESS_PROGRESS_HPP

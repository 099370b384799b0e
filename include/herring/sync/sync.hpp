// herring: what a sync policy is: which steps exchange gradients.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_SYNC_HPP
#define HERRING_SYNC_SYNC_HPP

#include "herring/base/config.hpp"
#include "herring/policy.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// Whether the ranks exchange their gradients in this step. Called once a step, before its first bucket
/// leaves. Every rank must give the same answer for the same step, or the ranks differ in their calls.
template <class Policy>
concept sync_decides = requires(Policy& policy, std::uint64_t step) {
    { policy.due(step) } -> std::same_as<bool>;
};

template <class Policy>
concept sync_nothrow = requires(Policy& policy, std::uint64_t step) {
    { policy.due(step) }
    noexcept;
};

template <class Policy>
concept sync_default_made = std::is_nothrow_default_constructible_v<Policy>;

/// When gradients are exchanged. A value held by the reducer, so it may have state.
template <class Policy>
concept sync_policy = std::same_as<typename Policy::axis, axes::sync> && sync_decides<Policy> &&
    sync_nothrow<Policy> && sync_default_made<Policy>;

template <class Policy> struct check<axes::sync, Policy> {
    static constexpr int broken =
        first_broken({sync_decides<Policy>, sync_nothrow<Policy>, sync_default_made<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-Y01] sync: needs 'bool due(std::uint64_t step) noexcept'; a common slip is to "
                  "return int; return bool, the same on every rank");
    static_assert(broken != 1,
                  "[HRG-Y02] sync: 'due(step)' must be noexcept; a common slip is to forget it; add "
                  "noexcept");
    static_assert(broken != 2,
                  "[HRG-Y03] sync: the reducer makes it, by a noexcept constructor without arguments; a "
                  "common slip is to take the period as an argument; make it a template value");
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_SYNC_SYNC_HPP

// herring: what a waiting policy is: what to do between two polls that found nothing.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WAITING_WAITING_HPP
#define HERRING_WAITING_WAITING_HPP

#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// What a waiting rank does before it polls again, from the quickest answer to the least use of a core.
enum class wait_action : std::uint8_t {
    poll,  ///< nothing: polls at once
    pause, ///< one pause instruction (10 to 50 ns): the sibling hyperthread runs better, the core is kept
    yield, ///< sched_yield: another thread that is ready may have the core
    sleep  ///< sleeps in the transport until it has something, or the deadline; costs a wake-up, 5 to 50 µs
};

/// "poll", "pause", "yield", "sleep".
constexpr char const* to_string(wait_action action) noexcept {
    switch (action) {
    case wait_action::poll:
        return "poll";
    case wait_action::pause:
        return "pause";
    case wait_action::yield:
        return "yield";
    case wait_action::sleep:
        return "sleep";
    }
    return "unknown";
}

/// Called after every poll that found nothing. `idle_rounds`: polls since the last one that found something, 0 at first;
/// `idle_nanoseconds`: what this core has spent on them, without sleep and without the threads that ran during a yield;
/// `oversubscribed`: this machine has more ranks than cores.
template <class Policy>
concept waiting_decides = requires(Policy const& policy, std::uint32_t idle_rounds,
                                   std::int64_t idle_nanoseconds, bool oversubscribed) {
    { policy.next(idle_rounds, idle_nanoseconds, oversubscribed) } -> std::same_as<wait_action>;
};

template <class Policy>
concept waiting_nothrow = requires(Policy const& policy, std::uint32_t idle_rounds,
                                   std::int64_t idle_nanoseconds, bool oversubscribed) {
    { policy.next(idle_rounds, idle_nanoseconds, oversubscribed) }
    noexcept;
};

template <class Policy>
concept waiting_value =
    std::is_nothrow_default_constructible_v<Policy> && std::is_trivially_copyable_v<Policy>;

/// How a rank waits. A value without clock or thread: it decides, and the driver acts.
template <class Policy>
concept waiting_policy = std::same_as<typename Policy::axis, axes::waiting> && waiting_decides<Policy> &&
    waiting_nothrow<Policy> && waiting_value<Policy>;

/// Whether the policy returns a `wait_action` in a sample of cases. A reducer asks at construction; later it takes any other
/// value for `poll`.
template <waiting_policy Policy> constexpr bool waits_soundly() noexcept {
    for (bool const oversubscribed : {false, true})
        for (std::int64_t nanoseconds = 1; nanoseconds < std::int64_t{1} << 40; nanoseconds *= 16)
            if (Policy{}.next(static_cast<std::uint32_t>(nanoseconds / 16), nanoseconds, oversubscribed) >
                wait_action::sleep)
                return false;
    return true;
}

template <class Policy> struct check<axes::waiting, Policy> {
    static constexpr int broken =
        first_broken({waiting_decides<Policy>, waiting_nothrow<Policy>, waiting_value<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(
        broken != 0,
        "[HRG-A01] waiting: needs 'wait_action next(std::uint32_t idle_rounds, std::int64_t "
        "idle_nanoseconds, bool oversubscribed) const noexcept'; a common slip is to forget const; add "
        "it, and take all three");
    static_assert(broken != 1,
                  "[HRG-A02] waiting: 'next(...)' must be noexcept; a common slip is to forget it; add "
                  "noexcept");
    static_assert(broken != 2,
                  "[HRG-A03] waiting: must be a trivially copyable value that is made without arguments; a "
                  "common slip is a member that owns something; keep its numbers in a template value");
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_WAITING_WAITING_HPP

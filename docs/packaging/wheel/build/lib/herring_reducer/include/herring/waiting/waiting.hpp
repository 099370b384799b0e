// herring: waiting policies, which decide between two idle polls: the concept, adaptive, block and spin.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WAITING_WAITING_HPP
#define HERRING_WAITING_WAITING_HPP

#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// The action of a waiting rank before it polls again, from the quickest answer to the least use of a core.
enum class wait_action : std::uint8_t {
    poll,  ///< nothing: polls at once
    pause, ///< one pause instruction (10 to 50 ns): the sibling hyperthread runs better, the core is kept
    yield, ///< sched_yield: another runnable thread may have the core
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

/// Clause: `next`, called after every poll that found nothing. `idle_rounds`: polls since the last poll that
/// found something, 0 at first; `idle_nanoseconds`: time that this core has spent on them, without sleep and
/// without the threads that ran during a yield; `oversubscribed`: this machine has more ranks than cores.
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

/// A waiting policy decides how a rank waits. A value without clock or thread: the driver acts on its
/// decisions.
template <class Policy>
concept waiting_policy = std::same_as<typename Policy::axis, axes::waiting> && waiting_decides<Policy> &&
    waiting_nothrow<Policy> && waiting_value<Policy>;

/// True if the policy returns a `wait_action` in a sample of cases. A reducer checks this at construction;
/// later it takes any other value for `poll`.
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

namespace HERRING_NAMESPACE::waiting {

/// Limits of the phases of `adaptive`, in nanoseconds of this core spent since the last poll that found
/// something.
struct adaptive_tuning {
    std::int64_t spin_ns = 20'000;   ///< pauses up to this limit: the cost of a few wake-ups
    std::int64_t yield_ns = 200'000; ///< yields up to this limit, then sleeps
    /// With more ranks than cores: yields up to this limit, never pauses.
    std::int64_t oversubscribed_yield_ns = 50'000;

    friend constexpr bool operator==(adaptive_tuning const&, adaptive_tuning const&) = default;
};

/// "spin_ns=20000 yield_ns=200000 oversubscribed_yield_ns=50000".
inline std::string to_string(adaptive_tuning const& tuning) {
    return "spin_ns=" + std::to_string(tuning.spin_ns) + " yield_ns=" + std::to_string(tuning.yield_ns) +
           " oversubscribed_yield_ns=" + std::to_string(tuning.oversubscribed_yield_ns);
}

/// Spins while an answer is likely to be near, yields for a while, then sleeps.
///
/// With more ranks than cores (`oversubscribed`) the awaited rank may need this very core: the policy yields
/// from the first round on, because a yield between ranks costs about a microsecond and a wake-up many.
///
/// Cost:    at most `yield_ns` (`oversubscribed_yield_ns`) of a core for each wait; then none.
/// Values:  `adaptive_with<adaptive_tuning{.spin_ns = 5'000}>` for other limits.
template <adaptive_tuning Tuning> struct adaptive_with {
    using axis = axes::waiting;
    static constexpr adaptive_tuning tuning = Tuning;

    constexpr wait_action next(std::uint32_t /*idle_rounds*/, std::int64_t idle_nanoseconds,
                               bool oversubscribed) const noexcept {
        if (oversubscribed)
            return idle_nanoseconds < tuning.oversubscribed_yield_ns ? wait_action::yield
                                                                     : wait_action::sleep;
        if (idle_nanoseconds < tuning.spin_ns) return wait_action::pause;
        return idle_nanoseconds < tuning.yield_ns ? wait_action::yield : wait_action::sleep;
    }
};

using adaptive = adaptive_with<adaptive_tuning{}>;
static_assert(waiting_policy<adaptive>);
static_assert(std::is_empty_v<adaptive>);

} // namespace HERRING_NAMESPACE::waiting

namespace HERRING_NAMESPACE {
template <> struct default_policy<axes::waiting> { using type = waiting::adaptive; };
} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::waiting {

/// Sleeps as soon as a poll finds nothing.
///
/// Cost:    no core while waiting; one wake-up (5 to 50 µs) for each arrival.
struct block {
    using axis = axes::waiting;
    static constexpr char const* name = "block";

    constexpr wait_action next(std::uint32_t /*idle_rounds*/, std::int64_t /*idle_nanoseconds*/,
                               bool /*oversubscribed*/) const noexcept {
        return wait_action::sleep;
    }
};
static_assert(waiting_policy<block>);
static_assert(std::is_empty_v<block>);

/// Polls without ever giving up the core.
///
/// Cost:    a whole core for each waiting rank; the quickest answer as long as every rank has its own core.
///          With more ranks than cores a rank waits for the time slice (milliseconds) of a rank that spins:
///          name adaptive there.
struct spin {
    using axis = axes::waiting;
    static constexpr char const* name = "spin";

    constexpr wait_action next(std::uint32_t /*idle_rounds*/, std::int64_t /*idle_nanoseconds*/,
                               bool /*oversubscribed*/) const noexcept {
        return wait_action::pause;
    }
};
static_assert(waiting_policy<spin>);
static_assert(std::is_empty_v<spin>);

} // namespace HERRING_NAMESPACE::waiting

#endif // HERRING_WAITING_WAITING_HPP

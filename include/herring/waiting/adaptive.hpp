// herring: waiting that spins, yields, then sleeps.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WAITING_ADAPTIVE_HPP
#define HERRING_WAITING_ADAPTIVE_HPP

#include "herring/base/config.hpp"
#include "herring/waiting/waiting.hpp"

#include <string>

namespace HERRING_NAMESPACE::waiting {

/// For how long `adaptive` does what, in nanoseconds of this core spent since the last poll that found something.
struct adaptive_tuning {
    std::int64_t spin_ns = 20'000;   ///< pauses until then: a few wake-ups' worth
    std::int64_t yield_ns = 200'000; ///< yields until then, sleeps afterwards
    /// With more ranks than cores: yields until then, never pauses.
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
/// With more ranks than cores (`oversubscribed`) the rank that is waited for may need this very core: it yields from
/// the first round on, for a yield between ranks costs about a microsecond and a wake-up many.
///
/// Cost:    at most `yield_ns` (`oversubscribed_yield_ns`) of a core for each time that it waits; then none.
/// Values:  `adaptive_with<adaptive_tuning{.spin_ns = 5'000}>` for numbers of one's own.
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

#endif // HERRING_WAITING_ADAPTIVE_HPP

// herring: what a world stands on: set-up collectives and the board of failures.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_CONTROL_HPP
#define HERRING_CONTROL_CONTROL_HPP

#include "herring/base/config.hpp"
#include "herring/base/time.hpp"
#include "herring/control/failure/standstill.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/error.hpp"
#include "herring/gather_result.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE {

namespace detail {

class world_state;

/// A table of plain functions over `self`: for set-up and for announcing failures, never on the path of
/// bytes.
///
/// `first_failure` and `failures` are read directly, so that asking «has any rank failed?» costs two loads
/// and no call: 0 means no; i means `failures[i - 1]`, which does not change any more.
struct control {
    void* self = nullptr;
    std::atomic<std::uint32_t> const* first_failure = nullptr;
    failure const* failures = nullptr;
    /// Collective; returns what every rank gave. Throws `error`.
    gather_result (*all_gather)(void* self, std::string_view operation, std::span<std::byte const> mine,
                                time_point deadline) = nullptr;
    /// Collective; returns once every rank has called. Throws `error`.
    void (*barrier)(void* self, std::string_view operation, time_point deadline) = nullptr;
    /// Announces a failure to every rank; the first one stays. Any thread, any time.
    void (*fail)(void* self, failure const& why) noexcept = nullptr;
    /// Asks the world who is to blame. Returns at once; called again and again until the world has failed, which it
    /// does within `liveness::verdict`. Any thread. Without it, the accusation is the failure.
    void (*accuse)(void* self, accusation& of) noexcept = nullptr;
    /// The world's own state is here; it stays until `destroy`. A control with a thread of its own looks at it.
    void (*attend)(void* self, world_state& state) noexcept = nullptr;
    /// Tells where this rank stands; without it the control looks itself. The world fails if that proves a standstill.
    void (*stands)(void* self, wait_report const& mine) noexcept = nullptr;
    /// The number of the last question «whom do you wait for?», and where this rank writes its `testimony`.
    std::atomic<std::uint32_t> const* question = nullptr;
    std::atomic<std::uint64_t>* testifies = nullptr;
    /// Leaves in order; what this table refers to stays valid until `destroy`. Bounded.
    void (*leave)(void* self) noexcept = nullptr;
    /// Leaves in order, if it has not, and frees; bounded, called once.
    void (*destroy)(void* self) noexcept = nullptr;
};

/// The same failure in the words of one rank: whose fault it is, seen from there. What nobody was doing (a
/// death that the parent or a socket told) is said to have ended `operation`, which this rank was doing, if
/// any.
HERRING_SEPARABLE failure as_seen_by(failure const& why, int rank, std::string_view operation = {}) noexcept;

/// "rank 2" or "ranks 1, 4, 5 and 9 more".
HERRING_SEPARABLE std::string rank_list(std::vector<int> const& ranks);

/// Now plus `timeout`; a timeout beyond a year is a year, so that nothing overflows.
inline time_point deadline_in(std::chrono::milliseconds timeout) noexcept {
    constexpr std::chrono::milliseconds year = std::chrono::hours(24 * 365);
    return clock::now() + (timeout < year ? timeout : year);
}

/// "30 s" or "250 ms".
HERRING_SEPARABLE std::string duration_text(clock::duration d);

/// What a rank says when a deadline passes in a collective.
HERRING_SEPARABLE std::string late_text(std::vector<int> const& missing, clock::duration waited);

} // namespace detail
} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/impl/control.hpp"
#endif

#endif // HERRING_CONTROL_CONTROL_HPP

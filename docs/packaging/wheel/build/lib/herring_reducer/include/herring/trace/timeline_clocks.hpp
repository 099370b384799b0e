// herring: offsets between the clocks of ranks, with a bound of the error, measured by collectives.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TIMELINE_CLOCKS_HPP
#define HERRING_TRACE_TIMELINE_CLOCKS_HPP

#include "herring/base/config.hpp"
#include "herring/base/digest.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/ticks.hpp"
#include "herring/trace/timeline_image.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Returns a number that is equal for processes with the same monotonic clock: of one boot, in one time
/// namespace.
HERRING_SETUP inline std::uint64_t clock_identity() {
    std::string identity = boot_id();
    char space[64];
    ssize_t const length = ::readlink("/proc/self/ns/time", space, sizeof space);
    if (length > 0) identity.append(space, static_cast<std::size_t>(length));
    return digest().add(std::string_view(identity)).value();
}

/// Returns the number of this process's PID namespace, in which a pid is unique; 0: not known.
HERRING_SETUP inline std::uint32_t process_space() noexcept {
    struct stat found {};
    return ::stat("/proc/self/ns/pid", &found) == 0 ? static_cast<std::uint32_t>(found.st_ino) : 0;
}

/// Bounds of the offset between the clocks of two ranks, by the times at which each called a collective and
/// returned from it. No rank returns before all ranks have called, so each pair of a call and a return of
/// different ranks bounds the offset from one side:
///
///     their_called ≤ returned + offset     and     called + offset ≤ their_returned
///
/// The bounds of several rounds are intersected. They are certain as long as no clock jumps, and as narrow as
/// the quickest collective is long; rounds without a pause between them make them narrow.
class clock_bounds {
  public:
    void add(std::int64_t called, std::int64_t returned, std::int64_t their_called,
             std::int64_t their_returned) noexcept {
        least_ = std::max(least_, their_called - returned);
        most_ = std::min(most_, their_returned - called);
    }
    /// Returns the offset at a time of this rank's clock. If the rounds contradict each other a clock has
    /// jumped, and the bound says by how much.
    clock_fix fix(std::int64_t at_ns) const noexcept {
        if (least_ == std::numeric_limits<std::int64_t>::min()) return {at_ns, 0, -1};
        std::int64_t const width = most_ - least_;
        return {at_ns, least_ + width / 2, (width < 0 ? -width : width) / 2 + 1};
    }

  private:
    std::int64_t least_ = std::numeric_limits<std::int64_t>::min();
    std::int64_t most_ = std::numeric_limits<std::int64_t>::max();
};

/// Measures this rank's clock against rank 0's. Collective.
///
/// Cost:    `rounds` + 1 all-gathers of 24 bytes.
/// Blocks:  as `world::all_gather`.
/// Errors:  as `world::all_gather`.
HERRING_SETUP inline clock_fix measure_clock(world& ranks, int rounds = 8) {
    struct seen {
        std::uint64_t clock;   // clock_identity() of the rank
        std::int64_t called;   // in this round
        std::int64_t returned; // in the round before
    };
    seen mine{clock_identity(), monotonic_ns(), 0};
    std::int64_t zero_called = 0, called = 0;
    clock_bounds bounds;
    bool one_clock = false;
    for (int round = 0; round <= rounds; ++round) {
        seen zero{};
        auto const all = ranks.all_gather(std::as_bytes(std::span(&mine, 1)));
        std::int64_t const returned = monotonic_ns();
        if (all[0].size() == sizeof zero) std::memcpy(&zero, all[0].data(), sizeof zero);
        one_clock = zero.clock == mine.clock;
        // The first round only brings the ranks together.
        if (round > 1) bounds.add(called, mine.returned, zero_called, zero.returned);
        called = mine.called;
        zero_called = zero.called;
        mine.returned = returned;
        mine.called = monotonic_ns();
    }
    // The same clock: the offset is 0; the bound is the error of converting ticks to nanoseconds.
    return one_clock ? clock_fix{mine.called, 0, 1} : bounds.fix(mine.called);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRACE_TIMELINE_CLOCKS_HPP

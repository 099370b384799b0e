// herring: what became of the gaps of a reducer's steps: the share that was used, and what steps lost.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GAPS_REPORT_HPP
#define HERRING_GAPS_REPORT_HPP

#include "herring/base/config.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace HERRING_NAMESPACE {

/// Of the waits of one `in_gaps`, since it was made. A gap is what of a wait passes before the results are here.
struct gap_report {
    std::uint64_t steps = 0;          ///< waits that ended well
    std::uint64_t quanta = 0;         ///< of the task
    std::uint64_t late = 0;           ///< quanta during which the results came: at most one a step
    std::chrono::nanoseconds gaps{0}; ///< all gaps; of one with a late quantum, until that began
    std::chrono::nanoseconds used{0}; ///< of them, by quanta that were not late
    std::chrono::nanoseconds lost{
        0}; ///< by all steps, at most: what late quanta took, as if the results had come at once
    std::chrono::nanoseconds most_lost{0}; ///< by one step, at most

    /// The share of the gaps that the task has used, 0 to 1.
    double share() const noexcept {
        return gaps.count() > 0 ? static_cast<double>(used.count()) / static_cast<double>(gaps.count()) : 0;
    }
    /// What a step lost on average, at most.
    std::chrono::nanoseconds lost_by_step() const noexcept {
        return std::chrono::nanoseconds(steps == 0 ? 0 : lost.count() / static_cast<std::int64_t>(steps));
    }

    friend bool operator==(gap_report const&, gap_report const&) = default;
};

/// "100 steps: 812.0 ms of gaps, 61.3 % used by 9210 quanta; 4 were late; a step lost at most 1.9 us, and none more than 88.0 us".
inline std::string to_string(gap_report const& of) {
    char text[240];
    std::snprintf(
        text, sizeof text,
        "%llu steps: %.1f ms of gaps, %.1f %% used by %llu quanta; %llu were late; a step lost at most "
        "%.1f us, and none more than %.1f us",
        static_cast<unsigned long long>(of.steps), static_cast<double>(of.gaps.count()) / 1e6,
        100 * of.share(), static_cast<unsigned long long>(of.quanta),
        static_cast<unsigned long long>(of.late), static_cast<double>(of.lost_by_step().count()) / 1e3,
        static_cast<double>(of.most_lost.count()) / 1e3);
    return text;
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_GAPS_REPORT_HPP

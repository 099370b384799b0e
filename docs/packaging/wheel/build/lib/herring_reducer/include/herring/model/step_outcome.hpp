// herring: the outcome of a step: the buckets that its ranks exchanged.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_STEP_OUTCOME_HPP
#define HERRING_MODEL_STEP_OUTCOME_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE {

/// The outcome of a step, returned by `wait()`; the same on every rank.
enum class step : std::uint8_t {
    exchanged, ///< all buckets are, or were, exchanged; with an optimizer, every weight is updated
    partial,   ///< some buckets are exchanged
    local,     ///< no bucket: each rank, or each node, continues with its own values
    /// A gradient was not finite (`nonfinite::skip_step`): weights, state and the number of steps stay.
    skipped
};

constexpr char const* to_string(step outcome) noexcept {
    switch (outcome) {
    case step::exchanged:
        return "exchanged";
    case step::partial:
        return "partial";
    case step::local:
        return "local";
    case step::skipped:
        return "skipped";
    }
    return "unknown";
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_STEP_OUTCOME_HPP

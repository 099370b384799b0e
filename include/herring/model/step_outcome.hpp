// herring: what a step did: whether its ranks exchanged.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_STEP_OUTCOME_HPP
#define HERRING_MODEL_STEP_OUTCOME_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE {

/// What `wait()` says of its step; the same on every rank.
enum class step : std::uint8_t {
    exchanged, ///< all of the model is, or was, exchanged; with an optimizer, every weight is updated
    partial,   ///< some buckets of it
    local,     ///< none of it: each rank goes on by itself, or each node
    skipped ///< a gradient was not finite (`nonfinite::skip_step`): weights, state and the number of the step are as before
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

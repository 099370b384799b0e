// herring: what became of a step: what `wait()` returns.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_OUTCOME_HPP
#define HERRING_STEP_OUTCOME_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE {

/// What became of a step, alike on all ranks. A step that ends in an error has none.
enum class step : std::uint8_t {
    exchanged, ///< every tensor was reduced; with an optimizer, every weight updated
    partial,   ///< some tensors were
    local,     ///< none was: each rank has its own
    skipped ///< a gradient was not finite (`nonfinite::skip_step`): weights, state and the number of the step are as before
};

constexpr char const* to_string(step what) noexcept {
    switch (what) {
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

#endif // HERRING_STEP_OUTCOME_HPP

// herring: what a progress policy is: who moves the bytes between ready() and wait().
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PROGRESS_PROGRESS_HPP
#define HERRING_PROGRESS_PROGRESS_HPP

#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>

namespace HERRING_NAMESPACE {

/// What a progress policy promises, as `static constexpr progress_facts facts{...};`.
struct progress_facts {
    bool background = false; ///< a thread of the reducer polls while the caller computes
};

// A fact beside `facts`, where nothing reads it.
template <class Policy>
concept progress_states_facts = states_facts<Policy, progress_facts> && !requires {
    Policy::background;
};

/// Who polls the engine.
template <class Policy>
concept progress_policy =
    std::same_as<typename Policy::axis, axes::progress> && progress_states_facts<Policy>;

template <class Policy> struct check<axes::progress, Policy> {
    static constexpr bool value = progress_states_facts<Policy>;
    static_assert(value,
                  "[HRG-G02] progress: needs 'static constexpr herring::progress_facts facts{...}'; a common "
                  "slip is 'static constexpr bool background', which nothing reads; write "
                  "'facts{.background = true}' if a thread of the reducer shall poll");
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_PROGRESS_PROGRESS_HPP

// herring: a sync policy as a user writes one, which votes: for tests of what ranks agree on, and of what a checkpoint has of it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_LOUDEST_HPP
#define HERRING_TESTS_CONFORMANCE_LOUDEST_HPP

#include "herring/policy/axes.hpp"
#include "herring/sync/sync.hpp"

#include <cstddef>

namespace herring::conformance {

/// One of the user's: ranks want other buckets, in turn; what all want is exchanged a step later. Its object has what all ranks know,
/// what this one has seen, and bytes that are neither.
struct loudest {
    using axis = herring::axes::sync;
    static constexpr herring::sync_facts facts{.observes = true, .votes = true};

    void observe(std::size_t bucket, double squares) noexcept {
        if (squares * (1 + static_cast<double>(steps % 3)) > most) {
            most = squares;
            largest = bucket;
        }
    }
    herring::sync::ballot vote() noexcept {
        herring::sync::ballot mine;
        if (steps % 4 != 3) mine.set(largest + steps % 2);
        most *= 0.5; // remembered, so that a state that was not loaded votes otherwise
        return mine;
    }
    void agreed(herring::sync::ballot const& all) noexcept {
        any = all;
        ++steps;
    }
    bool due(std::size_t bucket) const noexcept { return any.has(bucket); }

    herring::sync::ballot any;
    double most = 0;
    std::size_t largest = 0;
    unsigned steps = 0;
};
static_assert(herring::sync_policy<loudest>);

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_LOUDEST_HPP

// herring: what the table of a frontend's requests is made with.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_TABLE_OPTIONS_HPP
#define HERRING_ENSEMBLE_TABLE_OPTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/hedging.hpp"
#include "herring/quorum/quorum.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail::ensembles {

struct table_options {
    std::size_t members = 0;  ///< at most member_set::capacity
    std::size_t replicas = 1; ///< of each member
    std::size_t in_flight = 64;
    std::size_t credits = 0;   ///< requests that a peer may have unanswered; 0: in_flight
    std::size_t k = 1;         ///< of a request that gives none
    std::int64_t early_ns = 0; ///< rows that come before they are expected are kept for so long; 0: none is
    quorum_tuning quorum{};
    hedging_tuning hedging{};

    constexpr table_options with_credits() const noexcept {
        table_options made = *this;
        if (made.credits == 0) made.credits = in_flight;
        return made;
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_TABLE_OPTIONS_HPP

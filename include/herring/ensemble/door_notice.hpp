// herring: what a frontend's control connections tell the frontend, and what they count.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DOOR_NOTICE_HPP
#define HERRING_ENSEMBLE_DOOR_NOTICE_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/admission_refusal.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane_ends.hpp"

#include <cstdint>
#include <string>

namespace HERRING_NAMESPACE::detail::ensembles {

/// What a frontend's control has counted.
struct door_counters {
    std::uint64_t admitted = 0; ///< lanes that were proven
    std::uint64_t lost = 0;     ///< of these
    std::uint64_t replaced = 0; ///< processes that a newer one took the place of
    std::uint64_t unidentified =
        0; ///< connections that ended before they had proved anything: scanners, junk, time-outs
    std::uint64_t refused[admission_refusals]{}; ///< by reason
};

/// For the sink: what has happened.
struct door_notice {
    enum class what { admitted, draining, lost, refused } kind = what::lost;
    peer_index peer = 0;
    std::uint64_t incarnation = 0;
    std::uint32_t credits = 0;
    lane_ends ends{};
    admission_refusal reason = admission_refusal::none;
    std::string text{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DOOR_NOTICE_HPP

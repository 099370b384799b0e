// herring: a member's end of a lane, by tcp or by shared memory, and the memory of its rows.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_LANE_HPP
#define HERRING_ENSEMBLE_MEMBER_LANE_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/shared_lane.hpp"
#include "herring/ensemble/shared_regions.hpp"
#include "herring/ensemble/tcp_lane.hpp"
#include "herring/machine/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <fcntl.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A member's end of one admission: one of its two lanes.
///
/// Errors: the constructor throws `protocol` and `no_resources`.
class member_lane : public either_lane<tcp_lane_member, shared_lane_member> {
  public:
    /// The memory of one admission's rows, which a frontend of this machine reads.
    ///
    /// Errors: `no_resources`, `unsupported`; then the lane is tcp.
    class memory {
      public:
        memory() = default;
        HERRING_SETUP explicit memory(admission const& facts)
            : region_({facts.peer, facts.credits, facts.row_bytes}) {}
        /// Returns a new descriptor of the memory; −1: there is none.
        HERRING_SETUP detail::descriptor offer() const noexcept {
            return detail::descriptor(::fcntl(region_.descriptor(), F_DUPFD_CLOEXEC, 0));
        }

      private:
        friend member_lane;
        row_region region_{};
    };

    HERRING_SETUP member_lane(lane_ends ends, admission const& facts, memory mine) {
        if (ends.is_shared())
            open_shared(std::move(mine.region_), std::move(ends));
        else
            open_tcp(detail::descriptor(std::exchange(ends.socket, -1)),
                     lane_sizes{facts.credits, facts.request_bytes, facts.row_bytes});
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_MEMBER_LANE_HPP

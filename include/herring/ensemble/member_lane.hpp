// herring: a member's end of a lane, of the kind that the control connections have proven: tcp, or memory of one machine.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_LANE_HPP
#define HERRING_ENSEMBLE_MEMBER_LANE_HPP

#include "herring/base/config.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane_ends.hpp"
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

/// One of two lanes, by a branch; see `tcp_lane_member` and `shared_lane_member` for what its functions do.
///
/// Errors: the constructor throws `protocol` and `no_resources`.
class member_lane {
  public:
    /// The rows' memory of one admission, that a frontend of this machine reads.
    ///
    /// Errors: `no_resources`, `unsupported`; then the lane is tcp.
    class memory {
      public:
        memory() = default;
        HERRING_SETUP explicit memory(admission const& facts)
            : region_({facts.peer, facts.credits, facts.row_bytes}) {}
        /// A descriptor of its own; −1: there is none.
        HERRING_SETUP detail::descriptor offer() const noexcept {
            return detail::descriptor(::fcntl(region_.descriptor(), F_DUPFD_CLOEXEC, 0));
        }

      private:
        friend member_lane;
        row_region region_{};
    };

    HERRING_SETUP member_lane(lane_ends ends, admission const& facts, memory mine) {
        if (ends.is_shared())
            shared_.emplace(std::move(mine.region_), std::move(ends));
        else
            tcp_.emplace(detail::descriptor(std::exchange(ends.socket, -1)),
                         lane_sizes{facts.credits, facts.request_bytes, facts.row_bytes});
    }

    bool is_shared() const noexcept { return static_cast<bool>(shared_); }

    template <class Sink> bool poll(Sink& sink) noexcept {
        return is_shared() ? shared_->poll(sink) : tcp_->poll(sink);
    }
    bool take(place_index& place) noexcept { return is_shared() ? shared_->take(place) : tcp_->take(place); }
    bool holds(place_index place) const noexcept {
        return is_shared() ? shared_->holds(place) : tcp_->holds(place);
    }
    std::span<std::byte> row(place_index place) noexcept {
        return is_shared() ? shared_->row(place) : tcp_->row(place);
    }
    bool send(std::uint64_t id, place_index place, std::size_t bytes) noexcept {
        return is_shared() ? shared_->send(id, place, bytes) : tcp_->send(id, place, bytes);
    }
    bool decline(std::uint64_t id, place_index place, herring::decline reason) noexcept {
        return is_shared() ? shared_->decline(id, place, reason) : tcp_->decline(id, place, reason);
    }

    bool wants_write() const noexcept { return is_shared() ? shared_->wants_write() : tcp_->wants_write(); }
    int descriptor() const noexcept { return is_shared() ? shared_->descriptor() : tcp_->descriptor(); }
    bool try_sleep() noexcept { return is_shared() ? shared_->try_sleep() : tcp_->try_sleep(); }
    void awake() noexcept { is_shared() ? shared_->awake() : tcp_->awake(); }
    std::string_view error() const noexcept { return is_shared() ? shared_->error() : tcp_->error(); }

  private:
    manual_lifetime<tcp_lane_member> tcp_;
    manual_lifetime<shared_lane_member> shared_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_MEMBER_LANE_HPP

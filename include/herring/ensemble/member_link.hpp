// herring: a member's end of one admission: its lane, the requests that wait there, and the jobs that still read them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_LINK_HPP
#define HERRING_ENSEMBLE_MEMBER_LINK_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/outcome.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A request that waits for the program.
struct waiting_request {
    std::uint64_t id = 0;
    std::int64_t deadline = 0; ///< of the monotonic clock, as this end knows it
    std::span<std::byte const> bytes{};
    place_index place = 0;
};

/// Lifetime: until it is closed *and* no job has bytes of it.
/// Threads:  the member's.
template <class Lane> class member_link {
  public:
    /// Errors: those of the lane's constructor.
    template <class... Arguments>
    HERRING_SETUP member_link(std::size_t of, std::uint32_t credits, Arguments&&... of_lane)
        : lane(std::forward<Arguments>(of_lane)...), frontend(of), queue_(credits) {}

    /// Oldest first. The lane has no more places than there is room.
    bool push(waiting_request const& request) noexcept {
        if (count_ == queue_.size()) return false;
        queue_[(first_ + count_++) % queue_.size()] = request;
        return true;
    }
    /// False: none waits.
    bool pop(waiting_request& request) noexcept {
        if (count_ == 0) return false;
        request = queue_[first_];
        first_ = (first_ + 1) % queue_.size();
        --count_;
        return true;
    }
    std::size_t waiting() const noexcept { return count_; }

    Lane lane;
    std::size_t frontend;   ///< its place in the options
    std::uint32_t jobs = 0; ///< that the program holds
    bool is_open = true;
    bool watched_for_write = false; ///< the member also sleeps until it can be written to

  private:
    fixed_array<waiting_request> queue_;
    std::size_t first_ = 0, count_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_MEMBER_LINK_HPP

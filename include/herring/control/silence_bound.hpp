// herring: for how long a rank may give no sign of life before it is given up. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SILENCE_BOUND_HPP
#define HERRING_CONTROL_SILENCE_BOUND_HPP

#include "herring/base/config.hpp"
#include "herring/control/data_sockets.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/failure_detector_options.hpp"

#include <algorithm>
#include <chrono>

namespace HERRING_NAMESPACE::detail {

/// `peer_timeout`, and by how much later a sign of life may come than over an idle network: at most four times `peer_timeout`.
class silence_bound {
  public:
    constexpr explicit silence_bound(failure_detector_options const& times) noexcept
        : patience_(times.peer_timeout) {}

    constexpr clock::duration patience() const noexcept { return patience_; }
    /// How much the network may add.
    constexpr clock::duration longest_delay() const noexcept {
        return 3 * std::min<clock::duration>(patience_, std::chrono::hours(24)); // it may be `never`
    }

    /// How long a sign of life may wait in queues. `found`: of the control connection; `shortest`: the shortest round trip that one
    /// before it has had, for a connection that was made while the link was slow has never seen how short it can be; `queue`: of
    /// `queue_estimate`.
    constexpr clock::duration queueing(socket_report const& found, std::chrono::microseconds shortest,
                                       clock::duration queue) const noexcept {
        using namespace std::chrono_literals;
        std::chrono::microseconds const longer =
            std::max(found.queueing, found.round_trip - std::min(found.round_trip, shortest));
        clock::duration const longest = std::max<clock::duration>(longer, queue);
        return longest < 250ms ? clock::duration(0) : std::min(longest, longest_delay());
    }

    /// `unanswered`: the other host has left something unanswered during the silence, so the network may have been away: then
    /// the next retransmission is awaited too.
    constexpr clock::duration after(clock::duration queueing, bool unanswered) const noexcept {
        using namespace std::chrono_literals;
        clock::duration const again =
            unanswered ? std::min<clock::duration>(patience_ / 5, 1s) : clock::duration(0);
        return patience_ + std::min(queueing + again, longest_delay());
    }

  private:
    clock::duration patience_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SILENCE_BOUND_HPP

// herring: for how long a rank may be silent before it is given up, with an estimate of queues. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SURVIVAL_SILENCE_BOUND_HPP
#define HERRING_CONTROL_SURVIVAL_SILENCE_BOUND_HPP

#include "herring/base/config.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/failure_detector_options.hpp"
#include "herring/model/tunings.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// An estimate of how long a sign of life waits in queues while a rank's links are slow. Pure.
///
/// A link that becomes slow shows no longer round trip before the first acknowledgement has passed its
/// queues. But then packets are sent again and again without an answer while data comes in, so nothing is
/// cut. A rank cannot see how much waits: most may be for other ranks, or come from them. So a full window is
/// taken to wait in each direction, and to drain at the rate at which data comes in over this connection, its
/// share of the link. A sign of life takes that time twice: TCP, which takes the first bytes for lost, sends
/// the next when they are acknowledged, and the acknowledgement waits in the queue of the other direction.
/// Nothing may come in while the queues drain, neither data nor an acknowledgement, so an estimate holds for
/// the time that it says. Until then neither looks that find nothing end it, nor looks when all sent bytes
/// have arrived, for incoming bytes may still wait. Only immediate answers on every connection end it sooner.
class queue_estimate {
  public:
    /// Adds one connection to a look at all of them.
    constexpr void add(socket_report const& found) noexcept {
        using namespace std::chrono_literals;
        if (found.unanswered >= 2 && found.since_data < 300ms) {
            auto const waits = static_cast<double>(std::max(found.in_flight, exchange_tuning{}.window_bytes));
            std::chrono::duration<double> const once(waits / std::max(found.incoming, 1.0));
            seen_ = std::max(seen_, std::chrono::duration_cast<clock::duration>(2 * once));
        } else if (found.in_flight != 0 && found.queueing >= 500ms && found.since_packet < 300ms) {
            // Where round trips are measured, no sign of life takes much longer than they do, however little
            // comes in.
            seen_ = std::max<clock::duration>(seen_, 2 * found.queueing);
        }
        any_ = true;
        late_ = late_ || found.unanswered != 0 || found.round_trip >= 100ms;
    }
    /// Ends a look at all connections. `most`: an upper bound of the delay.
    constexpr void end_look(time_point now, clock::duration most) noexcept {
        if (any_ && !late_) delay_ = {}; // sent bytes have their answer at once: nothing waits any more
        if (seen_ != seen_.zero()) {
            delay_ = std::min(seen_, most);
            slow_at_ = now;
        }
        seen_ = {};
        any_ = late_ = false;
    }
    /// Returns the delay of a sign of life behind one that came at `since`; zero: by then the queues had
    /// drained, or no link was slow.
    constexpr clock::duration delay(time_point since) const noexcept {
        return slow_at_ + delay_ > since ? delay_ : clock::duration(0);
    }

  private:
    bool any_ = false, late_ = false;
    time_point slow_at_{};
    clock::duration seen_{}, delay_{}; // in this look, the longest; the one that holds
};

/// The bound of silence: `peer_timeout`, and the time by which a sign of life may come later than over an
/// idle network: at most four times `peer_timeout`.
class silence_bound {
  public:
    constexpr explicit silence_bound(failure_detector_options const& times) noexcept
        : patience_(times.peer_timeout) {}

    constexpr clock::duration patience() const noexcept { return patience_; }
    /// The most that the network may add.
    constexpr clock::duration longest_delay() const noexcept {
        return 3 * std::min<clock::duration>(patience_, std::chrono::hours(24)); // it may be `never`
    }

    /// Returns how long a sign of life may wait in queues. `found`: of the control connection; `shortest`:
    /// the shortest round trip of the earlier connections, for a connection that was opened while the link
    /// was slow has never seen how short a round trip can be; `queue`: of `queue_estimate`.
    constexpr clock::duration queueing(socket_report const& found, std::chrono::microseconds shortest,
                                       clock::duration queue) const noexcept {
        using namespace std::chrono_literals;
        std::chrono::microseconds const longer =
            std::max(found.queueing, found.round_trip - std::min(found.round_trip, shortest));
        clock::duration const longest = std::max<clock::duration>(longer, queue);
        return longest < 250ms ? clock::duration(0) : std::min(longest, longest_delay());
    }

    /// Returns the bound. `unanswered`: the other host has left something unanswered during the silence, so
    /// the network may have been away: then the next retransmission is awaited too.
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

#endif // HERRING_CONTROL_SURVIVAL_SILENCE_BOUND_HPP

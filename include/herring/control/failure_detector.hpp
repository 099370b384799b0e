// herring: how a waiting rank reports the rank that it waits for, and asks for the root cause of a wait in
// vain.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_FAILURE_DETECTOR_HPP
#define HERRING_CONTROL_FAILURE_DETECTOR_HPP

#include "herring/base/config.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/model/failure_detector_options.hpp"

#include <atomic>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// A world's failure detector, as the waiting rank sees it: `detector(world)`.
///
/// Threads:  any.
/// Lifetime: of the world's state.
class failure_detector {
  public:
    failure_detector(control_handle const& control, failure_detector_options const& times) noexcept
        : control_(control), times_(times) {}

    /// The times, all of them set.
    failure_detector_options const& times() const noexcept { return times_; }

    /// The number of the last probe «whom do you wait for?». To be read before the reply is looked for.
    std::uint32_t probe() const noexcept { return control_.board.probe->load(std::memory_order_acquire); }
    /// Replies to the probe: this rank waits for `rank`, or (−1) for no particular rank.
    ///
    /// Cost: one store.
    void waits_for(int rank, std::uint32_t probe) noexcept {
        control_.board.waits->store(wait_report::waits_for(rank, probe), std::memory_order_release);
    }
    /// This rank waits no more.
    void not_waiting() noexcept {
        control_.board.waits->store(wait_report::not_waiting, std::memory_order_release);
    }

    /// Asks which rank is the root cause: the rank of `of.why` itself, or the end of the chain of ranks that
    /// wait for each other. To be called again until the world has failed.
    ///
    /// Cost: that of a set-up call.
    HERRING_SETUP void report_suspicion(suspicion_report& of) noexcept {
        control_.table->report_suspicion(control_.self, of);
    }

  private:
    control_handle const& control_;
    failure_detector_options const& times_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_FAILURE_DETECTOR_HPP

// herring: how a thread knows that it was stopped or starved itself, so that it blames no other rank for it. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_FAILURE_STALL_DETECTOR_HPP
#define HERRING_CONTROL_FAILURE_STALL_DETECTOR_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"

#include <chrono>

namespace HERRING_NAMESPACE::detail {

/// How much of the time between two looks at the clock counts as waiting. A thread that looks seldom was stopped or
/// starved, and waited for nobody meanwhile.
constexpr clock::duration counted_time(clock::duration between) noexcept {
    constexpr clock::duration most = std::chrono::milliseconds(100);
    return between < most ? between : most;
}

/// For a thread that chooses how long it sleeps: whether it slept much longer. It was stopped or starved then, and cannot
/// tell how long others were silent.
class stall_detector {
  public:
    static constexpr std::chrono::milliseconds slack{250};

    /// It is `now`, and this thread will look at the clock again within `most`.
    void expect(time_point now, clock::duration most) noexcept { due_ = now + most; }

    /// By how much it missed that; zero within the slack.
    clock::duration late(time_point now) const noexcept {
        return due_ == time_point{} || now <= due_ + slack ? clock::duration(0) : now - due_;
    }

  private:
    time_point due_{};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_FAILURE_STALL_DETECTOR_HPP

// herring: after how long a silent rank is dead, and how a thread knows that it is itself the one that slept.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_FAILURE_LIVENESS_HPP
#define HERRING_CONTROL_FAILURE_LIVENESS_HPP

#include "herring/base/config.hpp"
#include "herring/base/time.hpp"

#include <chrono>

namespace HERRING_NAMESPACE::detail {

/// How long a call waits that has no deadline of its own, where nobody says otherwise.
inline constexpr std::chrono::milliseconds usual_timeout{30'000};
/// An option that the program has left alone.
inline constexpr std::chrono::milliseconds not_given = std::chrono::milliseconds::min();

/// Times of the control link. A rank that is asked answers at once; the rest is patience with those that are starved.
struct liveness {
    std::chrono::milliseconds beat{500};        ///< between two signs of life
    std::chrono::milliseconds suspected{2'000}; ///< silent for so long: no answer is waited for any more
    std::chrono::milliseconds dead{5'000};      ///< silent, or stopped, for so long: that ends the world
    std::chrono::milliseconds answer{1'000};    ///< for an answer to a question
    std::chrono::milliseconds verdict{3'000};   ///< who has heard of none by then ends its world itself

    /// Those of a world whose ranks may be silent for `dead`: in proportion below the usual time, unchanged above it. An
    /// answer has 250 ms at least: who waits looks around within 50 ms.
    static constexpr liveness of(std::chrono::milliseconds dead) noexcept {
        liveness made;
        std::chrono::milliseconds const part = (dead < made.dead ? dead : made.dead) / 10;
        made.beat = part;
        made.suspected = 4 * part;
        made.dead = dead;
        made.answer = 2 * part;
        if (made.answer < std::chrono::milliseconds(250)) made.answer = std::chrono::milliseconds(250);
        made.verdict = 3 * made.answer;
        return made;
    }
};

/// What counts of a time between two looks at the clock: who looks seldom was stopped or starved, and waited for nobody
/// meanwhile.
constexpr clock::duration counted_time(clock::duration between) noexcept {
    constexpr clock::duration most = std::chrono::milliseconds(100);
    return between < most ? between : most;
}

/// For a thread that sleeps for times that it chooses: whether it slept much longer. Then it was stopped or starved
/// itself, and has no right to say how long others were silent.
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

#endif // HERRING_CONTROL_FAILURE_LIVENESS_HPP

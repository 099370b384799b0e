// herring: time that counts as silence of others, and time that a thread was stopped or starved. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_NET_LIFE_SIGNS_HPP
#define HERRING_NET_LIFE_SIGNS_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"

#include <algorithm>
#include <chrono>

namespace HERRING_NAMESPACE::detail {

/// Returns how much of the time between two looks at the clock counts as waiting: a thread that looks seldom
/// was stopped or starved meanwhile, and did not wait.
constexpr clock::duration counted_time(clock::duration between) noexcept {
    constexpr clock::duration most = std::chrono::milliseconds(100);
    return between < most ? between : most;
}

/// The time by which a thread has slept longer than it meant to. Such a thread was stopped or starved, and
/// cannot know for how long others were silent.
class stall_detector {
  public:
    static constexpr std::chrono::milliseconds slack{250};

    /// Notes at `now` that this thread will look at the clock again within `most`.
    void expect(time_point now, clock::duration most) noexcept { due_ = now + most; }

    /// Returns by how much the thread missed that; zero within the slack.
    clock::duration late(time_point now) const noexcept {
        return due_ == time_point{} || now <= due_ + slack ? clock::duration(0) : now - due_;
    }

  private:
    time_point due_{};
};

/// Returns the timeout of a poll that ends when something is due at `next`: milliseconds, at most a minute;
/// −1: for ever.
inline int poll_timeout(time_point next) noexcept {
    if (next == time_point::max()) return -1;
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(next - clock::now()).count() + 1;
    return static_cast<int>(std::clamp<long long>(ms, 0, 60'000));
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_NET_LIFE_SIGNS_HPP

// herring: the sleep of transport::ofi: on the descriptor of the queue if it has one, else by short naps.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_SLEEP_HPP
#define HERRING_TRANSPORT_OFI_SLEEP_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/wake_event.hpp"
#include "herring/transport/ofi/handle.hpp"

#include <algorithm>
#include <chrono>

#include <poll.h>
#include <sched.h>

namespace HERRING_NAMESPACE::detail {

/// Sleeps until a queue may have completions, `wake` is called, or a time.
///
/// Progress is manual: a provider moves bytes when its queue is read. So no sleep is longer than `backstop`,
/// also with a descriptor; without one, naps grow from `shortest` to `longest`.
///
/// Cost: asleep, about 100 reads of the queue a second with a descriptor, 1000 without.
class ofi_sleep {
  public:
    static constexpr std::chrono::microseconds shortest{20}, longest{1'000}, backstop{10'000};
    /// Time awake after the descriptor was readable.
    static constexpr std::chrono::microseconds keen{100};

    HERRING_SETUP explicit ofi_sleep(int rank) { waker_.open("connect", rank); }

    /// Ends a sleep, from any thread.
    void wake() noexcept { waker_.raise(); }
    /// Notes that a completion came: the next sleep begins with a short nap.
    void news() noexcept { nap_ = shortest; }
    /// Notes that a post found no room: the next sleep is one nap, for room may come without a completion.
    /// Returns false.
    bool not_now() noexcept {
        refused_ = true;
        return false;
    }
    /// Sleeps for `shortest`.
    void nap() noexcept { (void)sleep(-1, shortest); }

    /// Sleeps once. True: read the queue and sleep again. False: `wake` or the time has ended the wait.
    bool doze(time_point until, fid_fabric* fabric, fid_cq* queue, int descriptor) noexcept {
        time_point const now = clock::now();
        auto const left = until - now;
        if (left <= left.zero()) return false;
        if (now < busy_until_) { // more bytes of a long message will come soon
            ::sched_yield();
            return true;
        }
        fid* what = queue == nullptr ? nullptr : &queue->fid;
        bool on_descriptor = descriptor >= 0 && !refused_;
        if (on_descriptor && fi_trywait(fabric, &what, 1) != 0) {
            // There may be completions. If fi_trywait keeps failing, every 64th try is a nap, so as not to
            // burn a core.
            if (++tries_ % 64 != 0) return true;
            on_descriptor = false;
        }
        std::chrono::nanoseconds most = on_descriptor ? backstop : nap_;
        nap_ = std::min<std::chrono::nanoseconds>(nap_ + nap_ / 4, longest);
        most = std::min<std::chrono::nanoseconds>(most, left);
        bool const woken = sleep(on_descriptor ? descriptor : -1, most);
        if (heard_) busy_until_ = clock::now() + keen;
        if (!woken && !refused_) return true;
        refused_ = false;
        return false;
    }

  private:
    // True if `wake` ended the sleep.
    bool sleep(int descriptor, std::chrono::nanoseconds most) noexcept {
        pollfd waiting[] = {{waker_.descriptor(), POLLIN, 0}, {descriptor, POLLIN, 0}};
        auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
        timespec const time{seconds.count(), (most - seconds).count()};
        int const found = ::ppoll(waiting, descriptor >= 0 ? 2 : 1, &time, nullptr);
        heard_ = found > 0 && waiting[1].revents != 0;
        if (found <= 0 || waiting[0].revents == 0) return false;
        return waker_.lower();
    }

    wake_event waker_;
    std::chrono::nanoseconds nap_ = shortest;
    bool refused_ = false;
    bool heard_ = false; // the descriptor ended the last sleep
    time_point busy_until_{};
    unsigned tries_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_SLEEP_HPP

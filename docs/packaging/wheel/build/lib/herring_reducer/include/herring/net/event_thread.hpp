// herring: a thread that sleeps on sockets (epoll) until one of them has an event, or its owner wakes it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_NET_EVENT_THREAD_HPP
#define HERRING_NET_EVENT_THREAD_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/threads.hpp"
#include "herring/net/poller.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <pthread.h>
#include <sys/epoll.h>

namespace HERRING_NAMESPACE::detail {

/// A thread that serves connections, and the poller on which it sleeps, which is opened first.
///
/// Threads:  `watch`, `rewatch`, `forget` and `wake` from any; `sleep` from the thread only.
class event_thread : public poller {
  public:
    event_thread() = default;
    event_thread(event_thread const&) = delete;
    event_thread& operator=(event_thread const&) = delete;

    /// Runs `body(self)` in the thread. Throws `no_resources`.
    HERRING_SETUP void start(void* (*body)(void*), void* self, int rank,
                             std::string_view operation = "join") {
        int const refused = start_thread(thread_, body, self);
        if (refused != 0)
            throw error(errc::no_resources, rank, -1, operation,
                        {"no control thread: ", std::strerror(refused), thread_advice()});
        running_ = true;
        blocked_threads::own(1);
#if defined(__GLIBC__)
        ::pthread_setname_np(thread_, "herring-control");
#endif
    }

    /// Wakes the thread, which then returns, and waits for its end.
    HERRING_SETUP void join() noexcept {
        if (!running_) return;
        blocked_threads::own(-1);
        wake();
        ::pthread_join(thread_, nullptr);
        running_ = false;
    }

    /// Waits at most `timeout_ms` (−1: no limit) for events, and returns them. Valid until the next call.
    HERRING_SETUP std::span<epoll_event const> sleep(int timeout_ms) noexcept {
        int const got = wait(events_, most_events, timeout_ms);
        std::size_t kept = 0;
        for (int i = 0; i < got; ++i) {
            if (events_[i].data.u64 == wake_key)
                (void)woken();
            else
                events_[kept++] = events_[i];
        }
        return {events_, kept};
    }

  private:
    static constexpr int most_events = 64;

    pthread_t thread_{};
    bool running_ = false;
    epoll_event events_[most_events] = {};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_NET_EVENT_THREAD_HPP

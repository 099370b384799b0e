// herring: a thread that sleeps on sockets (epoll) until one of them has an event, or its owner wakes it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_EVENT_THREAD_HPP
#define HERRING_CONTROL_RENDEZVOUS_EVENT_THREAD_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/blocked_threads.hpp"
#include "herring/machine/start_thread.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// The thread of one process's control connections, and what it sleeps on.
///
/// Threads:  `watch`, `rewatch`, `forget` and `wake` from any; `sleep` from the thread only.
class event_thread {
  public:
    event_thread() = default;
    event_thread(event_thread const&) = delete;
    event_thread& operator=(event_thread const&) = delete;
    ~event_thread() {
        if (epoll_ >= 0) ::close(epoll_);
        if (event_ >= 0) ::close(event_);
    }

    /// To be called first. `operation`: for errors. Throws `no_resources`.
    HERRING_SETUP void open(int rank, std::string_view operation = "join") {
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        event_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (epoll_ < 0 || event_ < 0)
            throw error(
                errc::no_resources, rank, -1, operation,
                {"no file descriptor for the control thread: ", std::strerror(errno), "; raise ulimit -n"});
        watch(event_, wake_key, EPOLLIN);
    }

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

    /// `key` comes with each event of `socket`; all ones is taken.
    void watch(int socket, std::uint64_t key, std::uint32_t what) noexcept {
        control(EPOLL_CTL_ADD, socket, key, what);
    }
    void rewatch(int socket, std::uint64_t key, std::uint32_t what) noexcept {
        control(EPOLL_CTL_MOD, socket, key, what);
    }
    void forget(int socket) noexcept { ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr); }

    void wake() noexcept {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(event_, &one, sizeof one);
    }

    /// Waits at most `timeout_ms` (−1: no limit) for events, and returns them. Valid until the next call.
    HERRING_SETUP std::span<epoll_event const> sleep(int timeout_ms) noexcept {
        int got = ::epoll_wait(epoll_, events_, 64, timeout_ms);
        std::size_t kept = 0;
        for (int i = 0; i < got; ++i) {
            epoll_event const& event = events_[i];
            if (event.data.u64 != wake_key) {
                events_[kept++] = event;
                continue;
            }
            std::uint64_t count = 0;
            while (::read(event_, &count, sizeof count) > 0) {
            }
        }
        return {events_, kept};
    }

  private:
    static constexpr std::uint64_t wake_key = ~std::uint64_t{0};

    HERRING_SETUP void control(int how, int socket, std::uint64_t key, std::uint32_t what) noexcept {
        epoll_event event{};
        event.events = what;
        event.data.u64 = key;
        ::epoll_ctl(epoll_, how, socket, &event);
    }

    pthread_t thread_{};
    bool running_ = false;
    int epoll_ = -1;
    int event_ = -1;
    epoll_event events_[64] = {};
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_EVENT_THREAD_HPP

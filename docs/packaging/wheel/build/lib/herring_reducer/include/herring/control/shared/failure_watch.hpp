// herring: a thread that calls a rank's on_failure once a failure lies in memory that all ranks map.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SHARED_FAILURE_WATCH_HPP
#define HERRING_CONTROL_SHARED_FAILURE_WATCH_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/control/control.hpp"
#include "herring/machine/futex.hpp"
#include "herring/machine/threads.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include <pthread.h>

namespace HERRING_NAMESPACE::detail {

/// The word on which the watch of one rank sleeps, and the board where it finds the failure.
struct failure_news {
    std::atomic<std::uint32_t>&
        changes; ///< 0: the rank has no watch; else odd, and different after each change
    std::atomic<std::uint32_t> const& first; ///< 1 + index in `failures` of the first one; 0: none
    failure const* failures;
    bool processes; ///< false: threads of one process

    bool wanted() const noexcept { return changes.load(std::memory_order_seq_cst) != 0; }
    /// Wakes the watch.
    void notify() const noexcept {
        changes.fetch_add(2, std::memory_order_seq_cst); // stays odd
        futex_wake(changes, processes);
    }
};

/// The thread that calls a rank's `on_failure`, at most once. Without a handler there is no thread.
///
/// Threads:  the handler is called in the thread. The destructor waits until it has returned.
/// Errors:   `no_resources` where no thread can be started.
class failure_watch {
  public:
    HERRING_SETUP failure_watch(failure_news news, int rank, failure_handler const& called)
        : news_(news), rank_(rank), called_(called) {
        if (!called_) return;
        news_.changes.store(1, std::memory_order_seq_cst);
        int const refused = start_thread(
            thread_,
            [](void* self) -> void* {
                static_cast<failure_watch*>(self)->run();
                return nullptr;
            },
            this);
        if (refused != 0)
            throw error(errc::no_resources, rank_, -1, "launch",
                        {"no thread for on_failure: ", std::strerror(refused), thread_advice()});
    }
    failure_watch(failure_watch const&) = delete;
    failure_watch& operator=(failure_watch const&) = delete;
    HERRING_SETUP ~failure_watch() {
        if (!called_) return;
        ends_.store(true, std::memory_order_seq_cst);
        news_.notify();
        ::pthread_join(thread_, nullptr);
    }

  private:
    HERRING_SETUP void run() noexcept {
        while (true) {
            std::uint32_t const before = news_.changes.load(std::memory_order_seq_cst);
            bool const ends = ends_.load(std::memory_order_seq_cst);
            if (std::uint32_t const first = news_.first.load(std::memory_order_seq_cst); first != 0)
                return called_(as_seen_by(news_.failures[first - 1], rank_));
            if (ends) return;
            futex_wait(news_.changes, before, std::chrono::hours(1), news_.processes);
        }
    }

    failure_news news_;
    int rank_;
    failure_handler called_;
    std::atomic<bool> ends_{false};
    pthread_t thread_{};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SHARED_FAILURE_WATCH_HPP

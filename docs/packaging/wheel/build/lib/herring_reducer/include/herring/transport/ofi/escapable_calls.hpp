// herring: calls into another library that can be abandoned once the world has failed.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_ESCAPABLE_CALLS_HPP
#define HERRING_TRANSPORT_OFI_ESCAPABLE_CALLS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/threads.hpp"
#include "herring/machine/time.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>

namespace HERRING_NAMESPACE::detail {

/// Ends calls in which a library spins for ever on a lock that a dead rank holds.
///
/// Some libraries keep locks in memory that processes share, as libfabric's shm does. A rank that is killed
/// or stopped while it holds such a lock leaves the others spinning inside the library, where no deadline
/// reaches them. A watching thread measures each call. When a call has used `cpu_limit` of CPU time, its
/// thread is sent a signal. The handler sleeps, so as not to burn a core, and returns to the call; once the
/// world has failed, it jumps out of the call. The work of the library is then half done, and its objects
/// must not be used again.
///
/// The signal is the highest real-time signal that the program neither handles nor blocks. It is unblocked in
/// threads that call. Its handler is installed for the moment of the signal only, and never as long as calls
/// return soon.
///
/// Threads:  calls from any thread, one at a time.
/// Cost:     a call: sigsetjmp, some ns, and one system call when another thread than before calls; a thread
///           that wakes ten times a second. Without `needed`: a branch.
/// Errors:   `no_resources` where no thread can be started.
class escapable_calls {
  public:
    static constexpr long abandoned = -1'000'000; ///< in place of the result of a call

    /// Without `needed`, calls are plain calls.
    HERRING_SETUP escapable_calls(world const& ranks, bool needed) : ranks_(ranks) {
        if (needed) start();
    }
    escapable_calls(escapable_calls const&) = delete;
    escapable_calls& operator=(escapable_calls const&) = delete;
    ~escapable_calls() {
        if (watched_) end();
    }

    /// Returns the result of `call()`, or `abandoned`. No object of `call` may need its destructor.
    template <class Call> [[gnu::noinline]] long operator()(Call const& call) noexcept {
        if (watched_) {
            // Without the signal mask, which would cost a system call; the handler blocks nothing.
            if (sigsetjmp(out_, 0) != 0) return abandoned;
            if (::pthread_equal(who_.load(std::memory_order_relaxed), ::pthread_self()) == 0) adopt_thread();
            calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        }
        long const result = call();
        if (watched_) calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        return result;
    }

  private:
    // seldom, often: times between two looks, while calls return and while one does not; cpu_limit: CPU time
    // of a call until its thread is signalled; nap: sleep of the handler; delivery: wait for a signal to be
    // handled.
    static constexpr std::chrono::milliseconds seldom{100}, often{20}, cpu_limit{100}, nap{200},
        delivery{1'000};

    HERRING_SETUP void start() {
        number_.store(free_signal(SIGRTMAX, true), std::memory_order_relaxed);
        int const refused = start_thread(
            thread_,
            [](void* self) -> void* {
                static_cast<escapable_calls*>(self)->watch();
                return nullptr;
            },
            this);
        if (refused != 0)
            throw error(errc::no_resources, ranks_.rank(), -1, "connect",
                        {"no thread to look after calls that may not return: ", std::strerror(refused),
                         thread_advice()});
        watched_ = true;
    }
    /// Prepares a thread that calls for the first time: some threads, like that of progress::thread, block
    /// all signals.
    HERRING_SETUP void adopt_thread() noexcept {
        who_.store(::pthread_self(), std::memory_order_relaxed);
        int const number = number_.load(std::memory_order_relaxed);
        if (number < 0) return;
        sigset_t ours;
        ::sigemptyset(&ours);
        ::sigaddset(&ours, number);
        ::pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
    }
    HERRING_SETUP void end() noexcept {
        {
            monitor::guard const held(changed_);
            ending_ = true;
            changed_.notify_all();
        }
        ::pthread_join(thread_, nullptr);
    }

    HERRING_SETUP void watch() noexcept {
        monitor::guard const held(changed_);
        std::uint64_t seen = 0;
        std::chrono::nanoseconds at_first{-1}; // CPU time when the call was seen for the second time
        while (!ending_) {
            bool const stays = calls_.load(std::memory_order_acquire) == seen && seen % 2 != 0;
            changed_.wait_until(clock::now() + (stays || ranks_.failed() != nullptr ? often : seldom));
            std::uint64_t const call = calls_.load(std::memory_order_acquire);
            if (call != seen || call % 2 == 0) { // even: not in a call
                seen = call;
                at_first = std::chrono::nanoseconds(-1);
                continue;
            }
            std::chrono::nanoseconds const now = cpu_time();
            if (at_first.count() < 0) at_first = now;
            if (now - at_first >= cpu_limit) signal_caller(call);
        }
    }

    /// Returns the CPU time of the thread that is in a call.
    std::chrono::nanoseconds cpu_time() const noexcept {
        clockid_t its_clock{};
        timespec now{};
        if (::pthread_getcpuclockid(who_.load(std::memory_order_relaxed), &its_clock) != 0 ||
            ::clock_gettime(its_clock, &now) != 0)
            return std::chrono::nanoseconds(0);
        return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
    }

    /// Sends the signal and waits until its handler has returned. If the thread blocks the signal, or the
    /// program handles it by now, the next attempt takes another signal.
    HERRING_SETUP void signal_caller(std::uint64_t call) noexcept {
        static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
        ::pthread_mutex_lock(&one_at_a_time);
        int const number = free_signal(number_.load(std::memory_order_relaxed), false);
        bool heard = calls_.load(std::memory_order_acquire) != call; // the call has returned meanwhile
        if (number > 0 && !heard) heard = send(number);
        ::pthread_mutex_unlock(&one_at_a_time);
        if (heard) return;
        number_.store(number > SIGRTMIN ? number - 1 : SIGRTMAX, std::memory_order_relaxed);
        if (reported_) return;
        reported_ = true;
        std::fprintf(stderr,
                     "herring: rank %d: a call into a library does not return, and its thread does not hear "
                     "the real-time "
                     "signal by which it is to be left (%d; -1: none is free); others are tried\n",
                     ranks_.rank(), number);
    }
    HERRING_SETUP bool send(int number) noexcept {
        struct sigaction ours {};
        struct sigaction before {};
        struct sigaction now {};
        ours.sa_handler = on_signal;
        ours.sa_flags = SA_NODEFER | SA_RESTART; // SA_NODEFER: a jump would leave the signal blocked
        ::sigaction(number, &ours, &before);
        std::uint64_t const earlier = handled_.load(std::memory_order_acquire);
        wanted_.store(this, std::memory_order_release);
        ::pthread_kill(who_.load(std::memory_order_relaxed), number);
        bool heard = false;
        for (time_point const until = clock::now() + delivery; !heard && clock::now() < until;) {
            sleep_for(often / 4);
            heard = handled_.load(std::memory_order_acquire) != earlier;
        }
        wanted_.store(nullptr, std::memory_order_release);
        ::sigaction(number, nullptr, &now);
        if (now.sa_handler != on_signal) return heard; // the program handles it now
        // A blocked signal that is delivered later must not end the program.
        ours.sa_handler = SIG_IGN;
        if (!heard) ::sigaction(number, &ours, nullptr);
        ::sigaction(number, &before, nullptr);
        return heard;
    }
    /// Returns the highest signal up to `most` without a handler, or −1.
    static int free_signal(int most, bool unblocked_here) noexcept {
        sigset_t blocked;
        ::sigemptyset(&blocked);
        if (unblocked_here) ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        struct sigaction found {};
        for (int number = most; number >= SIGRTMIN; --number)
            if (::sigaction(number, nullptr, &found) == 0 && (found.sa_flags & SA_SIGINFO) == 0 &&
                found.sa_handler == SIG_DFL && ::sigismember(&blocked, number) == 0)
                return number;
        return -1;
    }

    // The handler: async-signal-safe calls only.
    static void on_signal(int) noexcept {
        escapable_calls* const of = wanted_.load(std::memory_order_acquire);
        if (of == nullptr || ::pthread_equal(of->who_.load(std::memory_order_relaxed), ::pthread_self()) == 0)
            return;
        int const code = errno;
        std::uint64_t const call = of->calls_.load(std::memory_order_relaxed);
        bool const inside = call % 2 != 0; // else the call has returned
        for (auto left = nap; inside && left.count() > 0 && of->ranks_.failed() == nullptr; left -= often)
            sleep_for(often);
        bool const leaves = inside && of->ranks_.failed() != nullptr;
        if (leaves) of->calls_.store(call + 1, std::memory_order_release);
        of->handled_.store(of->handled_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        if (leaves) siglongjmp(of->out_, 1);
        errno = code;
    }

    static inline std::atomic<escapable_calls*> wanted_{nullptr}; // the object whose call is signalled

    world const& ranks_;
    bool watched_ = false;
    std::atomic<int> number_{-1};         // of the signal
    std::atomic<std::uint64_t> calls_{0}; // odd: in a call
    std::atomic<pthread_t> who_{};        // the thread of the last call; no thread is 0
    std::atomic<std::uint64_t> handled_{0};
    sigjmp_buf out_{};
    monitor changed_;
    bool ending_ = false;
    bool reported_ = false;
    pthread_t thread_{};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_ESCAPABLE_CALLS_HPP

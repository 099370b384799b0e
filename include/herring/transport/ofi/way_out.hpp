// herring: a way out of calls into another library that do not return, once the world has failed.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_WAY_OUT_HPP
#define HERRING_TRANSPORT_OFI_WAY_OUT_HPP

#include "herring/base/config.hpp"
#include "herring/base/monitor.hpp"
#include "herring/base/start_thread.hpp"
#include "herring/base/timespec.hpp"
#include "herring/error.hpp"
#include "herring/world.hpp"

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

/// Calls that go through it end, also where the library spins for ever on a lock that a dead rank holds.
///
/// Some libraries put their locks into memory that processes share, as libfabric's shm does: a rank that is killed
/// or stopped while it holds one leaves the others spinning inside the library, where no deadline reaches them. A
/// thread of this looks on. When one call has burnt `patience` of CPU time, its thread is sent a signal: the handler
/// naps, so that no core is burnt, and goes back to the call; or, once the world has failed, jumps out of it. What the
/// library was about is then half done, and its objects are not to be touched again.
///
/// The signal is the highest real-time one that the program neither handles nor blocks. Threads that call get it
/// unblocked; it is handled for the moment that it takes, and not at all as long as calls return soon.
///
/// Threads:  calls from one thread at a time, any one.
/// Cost:     a call: what sigsetjmp takes, some ns, and one system call when another thread calls than before; a thread
///           that wakes ten times a second. Not needed: a branch.
/// Errors:   `no_resources` where there is no thread.
class way_out {
  public:
    static constexpr long none_returned = -1'000'000; ///< in place of the call's own result

    /// Without `needed`, calls are what they are.
    HERRING_SETUP way_out(world const& ranks, bool needed) : ranks_(ranks) {
        if (needed) start();
    }
    way_out(way_out const&) = delete;
    way_out& operator=(way_out const&) = delete;
    ~way_out() {
        if (watched_) end();
    }

    /// What `call()` returns, or `none_returned`. Nothing that `call` itself does may need a destructor.
    template <class Call> [[gnu::noinline]] long operator()(Call const& call) noexcept {
        if (watched_) {
            // Without the mask: that would cost a system call each time, and the handler blocks nothing.
            if (sigsetjmp(out_, 0) != 0) return none_returned;
            if (::pthread_equal(who_.load(std::memory_order_relaxed), ::pthread_self()) == 0) admit();
            calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        }
        long const result = call();
        if (watched_) calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        return result;
    }

  private:
    // Between two looks at calls that return, and at one that does not; CPU time of a call; of the handler; for a signal
    // to be heard.
    static constexpr std::chrono::milliseconds seldom{100}, often{20}, patience{100}, nap{200},
        delivery{1'000};

    HERRING_SETUP void start() {
        number_.store(free_signal(SIGRTMAX, true), std::memory_order_relaxed);
        int const refused = start_thread(
            thread_,
            [](void* self) -> void* {
                static_cast<way_out*>(self)->watch();
                return nullptr;
            },
            this);
        if (refused != 0)
            throw error(errc::no_resources, ranks_.rank(), -1, "connect",
                        {"no thread to look after calls that may not return: ", std::strerror(refused),
                         "; raise ulimit -u"});
        watched_ = true;
    }
    /// A thread calls for the first time. Some, like those of progress::thread, begin with all signals blocked.
    HERRING_SETUP void admit() noexcept {
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
            if (call != seen || call % 2 == 0) { // even: in none
                seen = call;
                at_first = std::chrono::nanoseconds(-1);
                continue;
            }
            std::chrono::nanoseconds const now = burnt();
            if (at_first.count() < 0) at_first = now;
            if (now - at_first >= patience) knock(call);
        }
    }

    /// CPU time of the thread that is in a call.
    std::chrono::nanoseconds burnt() const noexcept {
        clockid_t its_clock{};
        timespec now{};
        if (::pthread_getcpuclockid(who_.load(std::memory_order_relaxed), &its_clock) != 0 ||
            ::clock_gettime(its_clock, &now) != 0)
            return std::chrono::nanoseconds(0);
        return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
    }

    /// Sends the signal, and waits until its handler is through. One that is not heard, for its thread has blocked it
    /// or the program now handles it, gives way to the next.
    HERRING_SETUP void knock(std::uint64_t call) noexcept {
        static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
        ::pthread_mutex_lock(&one_at_a_time);
        int const number = free_signal(number_.load(std::memory_order_relaxed), false);
        bool heard =
            calls_.load(std::memory_order_acquire) != call; // it has returned while another was knocked at
        if (number > 0 && !heard) heard = send(number);
        ::pthread_mutex_unlock(&one_at_a_time);
        if (heard) return;
        number_.store(number > SIGRTMIN ? number - 1 : SIGRTMAX, std::memory_order_relaxed);
        if (said_) return;
        said_ = true;
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
        ours.sa_handler = answer;
        ours.sa_flags = SA_NODEFER | SA_RESTART; // or a jump would leave it blocked
        ::sigaction(number, &ours, &before);
        std::uint64_t const earlier = answers_.load(std::memory_order_acquire);
        wanted_.store(this, std::memory_order_release);
        ::pthread_kill(who_.load(std::memory_order_relaxed), number);
        bool heard = false;
        for (time_point const until = clock::now() + delivery; !heard && clock::now() < until;) {
            sleep(often / 4);
            heard = answers_.load(std::memory_order_acquire) != earlier;
        }
        wanted_.store(nullptr, std::memory_order_release);
        ::sigaction(number, nullptr, &now);
        if (now.sa_handler != answer) return heard; // the program has taken it meanwhile
        // One that is blocked, and would come later, must not end the program.
        ours.sa_handler = SIG_IGN;
        if (!heard) ::sigaction(number, &ours, nullptr);
        ::sigaction(number, &before, nullptr);
        return heard;
    }
    /// The highest one from `most` down that nothing is set up for, or −1.
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
    static void sleep(std::chrono::milliseconds time) noexcept {
        timespec const left = timespec_of(time);
        ::nanosleep(&left, nullptr);
    }

    // The handler: nothing here but what may be called in one.
    static void answer(int) noexcept {
        way_out* const of = wanted_.load(std::memory_order_acquire);
        if (of == nullptr || ::pthread_equal(of->who_.load(std::memory_order_relaxed), ::pthread_self()) == 0)
            return;
        int const code = errno;
        std::uint64_t const call = of->calls_.load(std::memory_order_relaxed);
        bool const inside = call % 2 != 0; // else it has returned after all
        for (auto left = nap; inside && left.count() > 0 && of->ranks_.failed() == nullptr; left -= often)
            sleep(often);
        bool const leaves = inside && of->ranks_.failed() != nullptr;
        if (leaves) of->calls_.store(call + 1, std::memory_order_release);
        of->answers_.store(of->answers_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        if (leaves) siglongjmp(of->out_, 1);
        errno = code;
    }

    static inline std::atomic<way_out*> wanted_{nullptr}; // whose call is to be left

    world const& ranks_;
    bool watched_ = false;
    std::atomic<int> number_{-1};         // of the signal
    std::atomic<std::uint64_t> calls_{0}; // odd: in one
    std::atomic<pthread_t> who_{};        // called last; no thread is 0
    std::atomic<std::uint64_t> answers_{0};
    sigjmp_buf out_{};
    monitor changed_;
    bool ending_ = false;
    bool said_ = false;
    pthread_t thread_{};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_WAY_OUT_HPP

// herring: drivers, which poll the engine, and wait while it has nothing to do: sleep, deadlines, suspicion.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_DRIVER_HPP
#define HERRING_ENGINE_DRIVER_HPP

#include "herring/base/config.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/world_state.hpp"
#include "herring/engine/engine.hpp"
#include "herring/machine/futex.hpp"
#include "herring/machine/threads.hpp"
#include "herring/net/life_signs.hpp"
#include "herring/waiting/waiting.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// No sleep is longer: a thread that is not woken (a rank of the node died, say) still looks around that
/// often.
inline constexpr std::chrono::milliseconds longest_sleep{50};

/// The waits between polls that found nothing. One object for each stretch of waiting.
///
/// It tells the world which rank this rank waits for. At the deadline, or when a peer is lost, it suspects
/// that rank and goes on waiting: the decision comes as a failure of the world, and may name the rank that
/// the suspected one waits for.
template <class Core, class Waiting> class wait_loop {
  public:
    wait_loop(Core& moved, world& ranks, bool oversubscribed, long_wait* listed = nullptr) noexcept
        : core_(moved), ranks_(ranks), oversubscribed_(oversubscribed), listed_(listed) {}
    wait_loop(wait_loop const&) = delete;
    wait_loop& operator=(wait_loop const&) = delete;
    ~wait_loop() { stop_waiting(); }

    /// Something moved.
    void reset() noexcept {
        rounds_ = 0;
        last_ = {};
        spent_ = {};
    }

    /// This rank waits no more.
    void stop_waiting() noexcept {
        reset();
        if (looked_ == time_point{}) return;
        detector(ranks_).not_waiting();
        looked_ = {};
        excused_ = waited_ = {};
        question_ = 0;
    }

    /// One round of doing nothing. Ends the engine with an error when a rank failed or `deadline` has passed.
    /// Returns until when the driver has to have the engine sleep, and to look around then; or time_point{}:
    /// not.
    [[nodiscard]] time_point wait(time_point deadline) noexcept {
        time_point asleep{};
        // To read the clock and look around costs as much as a few polls: not in every round, nor in the
        // first ones, in which most waits in memory end.
        bool const looks = rounds_ % 8 == 7;
        if (looks) check_world(deadline);
        switch (policy_.next(rounds_, spent_.count(), oversubscribed_)) {
        case wait_action::poll:
            break;
        case wait_action::pause:
            cpu_pause();
            break;
        case wait_action::yield:
            ::sched_yield();
            if (!looks) check_world(deadline);
            break;
        case wait_action::sleep:
            if (!looks) check_world(deadline); // the others are to know which rank this one waits for
            asleep = wake_up(deadline);
            break;
        }
        ++rounds_;
        return asleep;
    }

    /// Tells the world which rank this rank waits for, and takes its answer; at the deadline, suspects that
    /// rank.
    void check_world(time_point deadline) noexcept {
        time_point const now = clock::now();
        if (last_ == time_point{}) last_ = now;
        std::uint32_t const question = detector(ranks_).probe();
        wait_target const who = core_.waiting_for();
        detector(ranks_).waits_for(who.rank, question);
        core_.record_wait(who.rank, static_cast<std::uint64_t>((now - last_).count()));
        if constexpr (Core::is_traced) core_.trace.waits_for(who.rank, core_.ledger);
        // Longer times were another thread's turn on this core, or sleep.
        spent_ += std::min<clock::duration>(now - last_, longest_look);
        last_ = now;
        if (looked_ == time_point{}) looked_ = now;
        clock::duration const between = now - looked_;
        looked_ = now;
        // This process was stopped or starved: the others could do nothing for it meanwhile.
        if (between > detector(ranks_).times().heartbeat && excused_ < ranks_.peer_timeout())
            excused_ += between;
        if (failure const* const why = ranks_.failed()) return core_.end(core_.told(*why), false);
        if (listed_ != nullptr) listed_->look(now, core_.ledger.released().load(std::memory_order_acquire));
        if (core_.failures.suspicion.what != errc::ok || who.gone || now - excused_ >= deadline)
            accuse(who, counted_time(between));
    }

  private:
    static constexpr std::chrono::microseconds longest_look{10};

    /// The time of the next look around: soon while a decision is awaited.
    static time_point wake_up(time_point deadline) noexcept {
        time_point const now = clock::now();
        return now < deadline ? std::min(deadline, now + longest_sleep) : now + std::chrono::milliseconds(10);
    }

    HERRING_SETUP void accuse(wait_target const& who, clock::duration waited) noexcept {
        suspicion_report of;
        of.certain = true;
        if (core_.failures.suspicion.what != errc::ok) {
            of.why = core_.failures.suspicion;
        } else if (who.gone) {
            of.why = departure(ranks_.rank(), who.rank, "reduce", "its reducer was destroyed");
        } else {
            bool const own = who.rank == ranks_.rank();
            char text[200];
            std::snprintf(text, sizeof text, "%s within the deadline; %s",
                          who.rank >= 0 ? who.text : "an operation did not end",
                          own ? "is what the program put into the stream before it slow, or stuck?"
                              : "look at that rank: is it stopped, slow, or in another call?");
            of.why = failure::make(errc::timeout, ranks_.rank(), who.rank, "wait", text);
            of.certain = own;
        }
        if (question_ != 0) waited_ += waited;
        of.probe = question_;
        of.waited = waited_;
        detector(ranks_).report_suspicion(of);
        question_ = of.probe;
        if (failure const* const why = ranks_.failed())
            core_.end(core_.told(*why), false);
        else if (question_ == 0 || (waited_ > detector(ranks_).times().verdict_timeout && !of.held_up))
            core_.end(of.why); // no rank was asked, or none answered
    }

    Core& core_;
    world& ranks_;
    bool oversubscribed_;
    long_wait* const listed_; // nullptr: it is not the program's thread that waits
    Waiting policy_{};
    std::uint32_t rounds_ = 0;
    std::chrono::nanoseconds spent_{0};  // of this core, on polls that found nothing
    time_point last_{};                  // look at the clock since something moved
    time_point looked_{};                // around; not since this stretch began: never
    clock::duration excused_{0};         // by so much later the deadline passes
    std::uint32_t question_ = 0;         // that was asked because of this wait; 0: none
    std::chrono::nanoseconds waited_{0}; // for the decision
};

/// Where an engine of a world's rank announces failures: the world, which has to stay.
inline failure_sink sink_of(world& ranks) noexcept {
    return {&ranks, [](void* to, failure const& why) noexcept { static_cast<world*>(to)->fail(why); },
            [](void* to) noexcept { return static_cast<world*>(to)->failed(); }};
}

/// The part of an engine that is the same for all types of elements.
template <class Engine> using core_of = std::remove_reference_t<decltype(std::declval<Engine&>().core())>;

/// Sleeps until an engine may have something to do, and is woken by other threads. The engine itself knows no
/// clock.
template <class Engine> class sleeper {
  public:
    explicit sleeper(Engine& engine) noexcept : engine_(engine), core_(engine.core()) {}

    /// Sleeps until `poll` may find something, or `until`.
    void sleep(time_point until) noexcept {
        until = core_.memory.nap(until);
        if (core_.who.nodes() == 1) {
            sleep_on(core_.node, until);
        } else if (core_.who.local_size == 1) {
            core_.sleep_on_transport(until);
        } else {
            // News may come from the network or from the node, and one cannot sleep on both: look at both in
            // turn, the less often the longer it has taken.
            if (std::uint64_t const ended = core_.ledger.finished(); ended != ended_) {
                ended_ = ended;
                nap_ = {};
            }
            if (nap_ < std::chrono::milliseconds(2)) nap_ += nap_ / 8 + std::chrono::microseconds(10);
            core_.sleep_on_transport(std::min(until, clock::now() + nap_));
        }
    }

    /// Ends `sleep`, from any thread.
    void wake() noexcept {
        if (core_.who.nodes() > 1)
            core_.transport.wake();
        else
            core_.node.wake();
    }

  private:
    template <class Node> void sleep_on(Node& node, time_point until) noexcept {
        std::uint32_t const heard = node.listen();
        node.sleep(heard, engine_.poll() > 0 ? time_point{} : until);
    }

    Engine& engine_;
    core_of<Engine>& core_;
    std::uint64_t ended_ = 0; // executions, as of the last nap
    std::chrono::nanoseconds nap_{0};
};

/// A round of waiting, with the engine asleep if that is its turn.
template <class WaitLoop, class Engine>
void wait_with(WaitLoop& loop, sleeper<Engine>& sleep, time_point deadline) noexcept {
    time_point const until = loop.wait(deadline);
    if (until == time_point{}) return;
    sleep.sleep(until);
    loop.check_world(deadline);
}

/// progress::caller: the engine moves when the caller calls.
template <class Engine, class Waiting> class caller_driver {
  public:
    /// `channel`: the reducer's number, or 0 when a wait runs code of the program.
    caller_driver(Engine& moved, world& ranks, bool oversubscribed, std::uint64_t channel = 0) noexcept
        : engine_(moved), sleeper_(moved), ranks_(ranks), oversubscribed_(oversubscribed), channel_(channel) {
    }

    void submitted() noexcept { engine_.poll(); }
    void poll() noexcept { engine_.poll(); }

    /// Returns when `count` executions are released, or the engine has failed.
    void until(std::uint64_t count, time_point deadline) noexcept {
        until_true([&] { return engine_.released() >= count; }, deadline);
    }
    /// The same when `holds` does.
    template <class Holds> void until_true(Holds const& holds, time_point deadline) noexcept {
        long_wait listed(ranks_.state(), channel_);
        wait_loop<core_of<Engine>, Waiting> loop(engine_.core(), ranks_, oversubscribed_, &listed);
        while (!holds() && engine_.failed() == nullptr) {
            if (engine_.poll() > 0)
                loop.reset();
            else
                wait_with(loop, sleeper_, deadline);
        }
    }

  private:
    Engine& engine_;
    sleeper<Engine> sleeper_;
    world& ranks_;
    bool oversubscribed_;
    std::uint64_t channel_;
};

/// progress::thread: a thread of the reducer moves the engine; it sleeps while nothing is outstanding.
template <class Engine, class Waiting> class thread_driver {
  public:
    thread_driver(Engine& moved, world& ranks, bool oversubscribed, std::uint64_t channel = 0)
        : engine_(moved), sleeper_(moved), ranks_(ranks), oversubscribed_(oversubscribed), channel_(channel) {
        int const failed = start_thread(
            thread_,
            [](void* self) -> void* {
                static_cast<thread_driver*>(self)->run();
                return nullptr;
            },
            this);
        if (failed != 0)
            throw error(errc::no_resources, ranks.rank(), -1, "construction",
                        {"cannot start the progress thread: ", std::strerror(failed), thread_advice(),
                         "; or use progress::caller"});
        if (channel_ != 0) blocked_threads::own(1);
    }
    thread_driver(thread_driver const&) = delete;
    thread_driver& operator=(thread_driver const&) = delete;
    ~thread_driver() {
        if (channel_ != 0) blocked_threads::own(-1);
        stop_.store(true);
        submitted();
        pthread_join(thread_, nullptr);
    }

    void submitted() noexcept {
        work_.fetch_add(1);
        if (asleep_.load()) {
            futex_wake(work_);
            sleeper_.wake();
        }
    }
    void poll() noexcept {} // the thread does

    void until(std::uint64_t count, time_point deadline) noexcept {
        deadline_.store(deadline.time_since_epoch().count());
        Waiting policy{};
        time_point const since = clock::now();
        long_wait listed(ranks_.state(), channel_);
        for (std::uint32_t rounds = 0; engine_.released() < count && engine_.failed() == nullptr; ++rounds) {
            time_point const now = clock::now();
            listed.look(now, engine_.released());
            switch (policy.next(rounds, (now - since).count(), oversubscribed_)) {
            case wait_action::poll:
                break;
            case wait_action::pause:
                cpu_pause();
                break;
            case wait_action::yield:
                ::sched_yield();
                break;
            case wait_action::sleep: {
                std::uint32_t const heard = done_.load();
                waiting_.store(true);
                std::atomic_thread_fence(std::memory_order_seq_cst); // either sees the other
                if (engine_.released() < count && engine_.failed() == nullptr)
                    futex_wait(done_, heard, longest_sleep);
                waiting_.store(false);
            }
            }
        }
        deadline_.store(never);
    }

  private:
    static constexpr std::int64_t never = time_point::max().time_since_epoch().count();

    void run() noexcept {
        wait_loop<core_of<Engine>, Waiting> loop(engine_.core(), ranks_, oversubscribed_);
        bool asleep = false;
        std::uint64_t told = 0; // released, as of the last look at who waits for it
        while (true) {
            std::uint32_t const heard =
                work_.load(); // before the look at stop_, which is set before it changes
            if (stop_.load()) return;
            std::size_t const moved = engine_.poll();
            if (engine_.released() != told || engine_.failed() != nullptr) {
                told = engine_.released(); // perhaps since a poll within a sleep
                std::atomic_thread_fence(std::memory_order_seq_cst);
                if (waiting_.load()) {
                    done_.fetch_add(1);
                    futex_wake(done_);
                }
            }
            if (moved > 0 || !asleep) {
                // Before the first sleep one more poll, with the flag up: who submits from now on wakes.
                if (moved > 0) loop.reset();
                asleep = moved == 0;
                asleep_.store(asleep);
            } else if (engine_.released() == engine_.requested() || engine_.failed() != nullptr) {
                loop.stop_waiting();
                futex_wait(work_, heard, std::chrono::seconds(1));
            } else {
                wait_with(loop, sleeper_, time_point(clock::duration(deadline_.load())));
            }
        }
    }

    Engine& engine_;
    sleeper<Engine> sleeper_;
    world& ranks_;
    bool oversubscribed_;
    std::uint64_t const channel_;
    pthread_t thread_{};
    std::atomic<bool> stop_{false};
    std::atomic<bool> asleep_{false};  // the thread may be in a sleep that `submitted` has to end
    std::atomic<bool> waiting_{false}; // the caller may be in a sleep that the thread has to end
    std::atomic<std::uint32_t> work_{0};
    std::atomic<std::uint32_t> done_{0};
    std::atomic<std::int64_t> deadline_{never};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_DRIVER_HPP

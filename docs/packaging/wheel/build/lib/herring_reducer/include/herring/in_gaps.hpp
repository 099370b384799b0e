// herring: work in gaps: quanta of a task while this thread waits for the results of a step.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_IN_GAPS_HPP
#define HERRING_IN_GAPS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/gaps/worker.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/step_outcome.hpp"
#include "herring/policy/policy.hpp"
#include "herring/reducer.hpp"
#include "herring/sync/sync.hpp"

#include <chrono>
#include <cstdint>

namespace HERRING_NAMESPACE {

namespace detail {

template <bool Background, bool EveryStep> struct gaps_on {
    static constexpr bool value = true;
    static_assert(Background && EveryStep, "[HRG-G03] in_gaps: needs a thread of the reducer that moves the "
                                           "bytes while the caller's works, and one "
                                           "wait a step; common slips are to leave progress::thread out, and "
                                           "a sync policy that skips steps; name "
                                           "progress::thread, and sync::every_step");
};
template <bool IsTask> struct task_of_gaps {
    static constexpr bool value = true;
    static_assert(IsTask, "[HRG-C08] in_gaps: a task needs 'std::chrono::nanoseconds quantum() noexcept', "
                          "the longest that one 'next' "
                          "takes, and 'bool next() noexcept', whether there was anything to do; a common "
                          "slip is to forget noexcept; "
                          "add it to both");
};

} // namespace detail

/// A reducer with a task for the gaps of its steps, as `reduce.in_gaps(task)` returns it.
///
/// Threads:  as the reducer; `task.next()` is called inside of `wait`, and nowhere else.
/// Lifetime: not longer than the reducer and the task. It may end any time between steps; another one has to
///           learn the gaps anew.
template <class Reducer, class Task> class gap_work {
  public:
    gap_work(gap_work const&) = delete;
    gap_work& operator=(gap_work const&) = delete;

    /// Ends the step, as the reducer's `wait`, with quanta of the task in between.
    ///
    /// Blocks: as that, and by less than one quantum more.
    /// Errors: as that.
    step wait() {
        wait(access::default_timeout(reduce_)).value();
        return reduce_.outcome();
    }
    status wait(std::chrono::milliseconds timeout) { return wait(detail::deadline_in(timeout)); }
    status wait(time_point deadline) { return access::end_step(reduce_, worker_, task_, deadline); }

    Task& task() noexcept { return task_; }
    /// The share of the gaps that was used, and what steps have lost.
    gap_report const& report() const noexcept { return worker_.report(); }
    /// How long the next gap will last at least, as it is predicted; 0 in the first 8 steps.
    std::chrono::nanoseconds predicted() const noexcept { return worker_.forecast().gap(); }

  private:
    using access = detail::gaps_of<Reducer>;
    friend access;
    gap_work(Reducer& reduce, Task& task) noexcept : reduce_(reduce), task_(task) {}

    Reducer& reduce_;
    Task& task_;
    detail::gap_worker<clock> worker_;
};

namespace detail {

/// The call `in_gaps` of a reducer.
template <class Pack> struct gaps_of<basic_reducer<Pack>> {
    using reducer = basic_reducer<Pack>;

    template <class Task> static auto open(reducer& of, Task& task) {
        constexpr bool background = Pack::progress::facts.background;
        constexpr bool every_step = !skips_steps<typename Pack::sync>;
        constexpr bool can = background && every_step;
        if constexpr (!can) {
            (void)holds<gaps_on<background, every_step>>;
            return inert_gaps();
        } else if constexpr (!gap_task<Task>) {
            (void)holds<task_of_gaps<gap_task<Task>>>;
            return inert_gaps();
        } else {
            {
                auto& core = reducer_access::core(of);
                call const here(core.calls_, "in_gaps");
                if (core.session_.cores().as_one_thread)
                    core.calls_.throw_misuse(
                        errc::unsupported, "in_gaps",
                        {"this machine has fewer cores than ranks, so a gap of one is the "
                         "turn of another; start "
                         "fewer ranks, or bind them to cores of their own"});
            }
            return gap_work<reducer, Task>(of, task);
        }
    }

    static std::chrono::milliseconds default_timeout(reducer& of) noexcept {
        return reducer_access::core(of).session_.default_timeout();
    }
    template <class Worker, class Task>
    static status end_step(reducer& of, Worker& worker, Task& task, time_point deadline) {
        (void)holds<only_on_host<session<Pack>::store::on_device>>;
        auto const wait = [&](auto& session, std::uint64_t count, time_point until) {
            status ended;
            worker.wait(
                task, [&] { return session.released() >= count || session.failed() != nullptr; },
                [&] {
                    ended = session.finish(count, until);
                    return ended.ok();
                },
                until);
            return ended;
        };
        return reducer_access::end_step(of, deadline, wait);
    }
};

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_IN_GAPS_HPP

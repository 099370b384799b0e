// herring: the backend of a world: set-up collectives, and the board of failures.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_CONTROL_HPP
#define HERRING_CONTROL_CONTROL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/failure_detector_options.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace HERRING_NAMESPACE {

namespace detail {

class world_state;

/// The state of a backend that can be read without a call. All pointers are valid until `destroy`.
///
/// The question «has any rank failed?» costs two loads: `first_failure` is 0 for no, i for `failures[i - 1]`,
/// which changes no more.
struct control_board {
    std::atomic<std::uint32_t> const* first_failure;
    failure const* failures;
    std::atomic<std::uint32_t> const* probe; ///< number of the last question «whom do you wait for?»
    std::atomic<std::uint64_t>* waits;       ///< this rank's reply, a word of `wait_report`
};

struct split_group;

/// The functions of a backend: for set-up and for announcing failures, never on the path of bytes.
///
/// A backend is a class with these members; one that lacks a function does not compile.
class control_table {
    // Not lambdas: g++ sees their parameters shadow globals of the program.
    template <class Backend> struct call {
        static gather_result all_gather(void* self, std::string_view operation,
                                        std::span<std::byte const> mine, time_point deadline) {
            return static_cast<Backend*>(self)->all_gather(operation, mine, deadline);
        }
        static void barrier(void* self, std::string_view operation, time_point deadline) {
            static_cast<Backend*>(self)->barrier(operation, deadline);
        }
        static split_group split(void* self, std::string_view operation, int colour, int key,
                                 time_point deadline);
        static void fail(void* self, failure const& why) noexcept { static_cast<Backend*>(self)->fail(why); }
        static void report_suspicion(void* self, suspicion_report& of) noexcept {
            static_cast<Backend*>(self)->report_suspicion(of);
        }
        static void attach(void* self, world_state& state) noexcept {
            static_cast<Backend*>(self)->attach(state);
        }
        static void check_deadlock(void* self) noexcept { static_cast<Backend*>(self)->check_deadlock(); }
        static void leave(void* self) noexcept { static_cast<Backend*>(self)->leave(); }
        static void destroy(void* self) noexcept { static_cast<Backend*>(self)->destroy(); }
    };

  public:
    template <class Backend>
    constexpr explicit control_table(std::type_identity<Backend>) noexcept
        : all_gather(call<Backend>::all_gather), barrier(call<Backend>::barrier), split(call<Backend>::split),
          fail(call<Backend>::fail), report_suspicion(call<Backend>::report_suspicion),
          attach(call<Backend>::attach), check_deadlock(call<Backend>::check_deadlock),
          leave(call<Backend>::leave), destroy(call<Backend>::destroy) {}

    /// Collective; returns the bytes of every rank. Throws `error`.
    gather_result (*const all_gather)(void* self, std::string_view operation, std::span<std::byte const> mine,
                                      time_point deadline);
    /// Collective; returns once every rank has called. Throws `error`.
    void (*const barrier)(void* self, std::string_view operation, time_point deadline);
    /// Collective; returns the group of this rank. Throws `error`.
    split_group (*const split)(void* self, std::string_view operation, int colour, int key,
                               time_point deadline);
    /// Announces a failure to every rank; the first one stays. Any thread, any time.
    void (*const fail)(void* self, failure const& why) noexcept;
    /// Asks which rank is the root cause. Returns at once; called again and again until the world has failed,
    /// which it does within the detector's `verdict_timeout`. Any thread.
    void (*const report_suspicion)(void* self, suspicion_report& of) noexcept;
    /// Hands over the world's own state, which lives until `destroy`.
    void (*const attach)(void* self, world_state& state) noexcept;
    /// Looks whether the waits of all ranks are a deadlock, which ends the world. Does nothing in a backend
    /// whose own thread looks.
    void (*const check_deadlock)(void* self) noexcept;
    /// Leaves in order; the board stays valid until `destroy`. Bounded.
    void (*const leave)(void* self) noexcept;
    /// Leaves in order, unless it has left, and frees; bounded, called once.
    void (*const destroy)(void* self) noexcept;
};

template <class Backend> inline constexpr control_table control_table_of{std::type_identity<Backend>{}};

/// A backend of a world: its functions and its board.
struct control_handle {
    control_table const* table;
    void* self;
    control_board board;

    template <class Backend> static control_handle of(Backend& backend) noexcept {
        return {&control_table_of<Backend>, &backend, backend.board()};
    }
};

/// The group of `world::split` that this rank is in, as the backend has made it.
struct split_group {
    std::vector<int>
        ranks{}; ///< in the world that was split, by rank in the group; none: this rank is in none
    std::uint64_t number = 0; ///< below 2^40; from 1, never the same twice among the worlds of a job
    control_handle control{}; ///< the group's backend
};

template <class Backend>
split_group control_table::call<Backend>::split(void* self, std::string_view operation, int colour, int key,
                                                time_point deadline) {
    return static_cast<Backend*>(self)->split(operation, colour, key, deadline);
}

/// A world's failure detector, as the waiting rank sees it: `detector(world)`.
///
/// Threads:  any.
/// Lifetime: of the world's state.
class failure_detector {
  public:
    failure_detector(control_handle const& control, failure_detector_options const& times) noexcept
        : control_(control), times_(times) {}

    /// The times, all of them set.
    failure_detector_options const& times() const noexcept { return times_; }

    /// The number of the last probe «whom do you wait for?». To be read before the reply is looked for.
    std::uint32_t probe() const noexcept { return control_.board.probe->load(std::memory_order_acquire); }
    /// Replies to the probe: this rank waits for `rank`, or (−1) for no particular rank.
    ///
    /// Cost: one store.
    void waits_for(int rank, std::uint32_t probe) noexcept {
        control_.board.waits->store(wait_report::waits_for(rank, probe), std::memory_order_release);
    }
    /// This rank waits no more.
    void not_waiting() noexcept {
        control_.board.waits->store(wait_report::not_waiting, std::memory_order_release);
    }

    /// Asks which rank is the root cause: the rank of `of.why` itself, or the end of the chain of ranks that
    /// wait for each other. To be called again until the world has failed.
    ///
    /// Cost: that of a set-up call.
    HERRING_SETUP void report_suspicion(suspicion_report& of) noexcept {
        control_.table->report_suspicion(control_.self, of);
    }

  private:
    control_handle const& control_;
    failure_detector_options const& times_;
};

/// The backend of no world, as of a moved-from world. Does nothing, and has not failed. Tests derive from it.
class no_control {
  public:
    gather_result all_gather(std::string_view, std::span<std::byte const>, time_point) { return {}; }
    void barrier(std::string_view, time_point) noexcept {}
    split_group split(std::string_view, int, int, time_point) { return {}; }
    void fail(failure const&) noexcept {}
    void report_suspicion(suspicion_report&) noexcept {}
    void attach(world_state&) noexcept {}
    void check_deadlock() noexcept {}
    void leave() noexcept {}
    void destroy() noexcept {}
    control_board board() noexcept { return {&first_failure_, &failure_, &probe_, &waits_}; }

  protected:
    std::atomic<std::uint32_t> first_failure_{0};
    std::atomic<std::uint32_t> probe_{0};
    std::atomic<std::uint64_t> waits_{wait_report::not_waiting};
    failure failure_{};
};

/// Returns the handle of no world.
HERRING_SEPARABLE control_handle absent_control() noexcept;

/// Returns the same failure in the words of one rank. A failure that was seen from outside (a death that the
/// parent or a socket reported) is attributed to `operation`, which this rank was in, if any.
HERRING_SEPARABLE failure as_seen_by(failure const& why, int rank, std::string_view operation = {}) noexcept;

/// Returns "rank 2" or "ranks 1, 4, 5 and 9 more".
HERRING_SEPARABLE std::string rank_list(std::vector<int> const& ranks);

/// Returns now plus `timeout`; a timeout beyond a year is a year, so that nothing overflows.
inline time_point deadline_in(std::chrono::milliseconds timeout) noexcept {
    constexpr std::chrono::milliseconds year = std::chrono::hours(24 * 365);
    return clock::now() + (timeout < year ? timeout : year);
}

/// Returns "30 s" or "250 ms".
HERRING_SEPARABLE std::string duration_text(clock::duration d);

/// Returns the text of a rank whose deadline has passed in a collective.
HERRING_SEPARABLE std::string late_text(std::vector<int> const& missing, clock::duration waited);

} // namespace detail
} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/control/control_impl.hpp"
#endif

#endif // HERRING_CONTROL_CONTROL_HPP

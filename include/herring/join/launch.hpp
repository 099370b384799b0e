// herring: starts local ranks, as processes (`launch`) or as threads of this process (`launch_threads`).
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_LAUNCH_HPP
#define HERRING_JOIN_LAUNCH_HPP

#include "herring/base/config.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/control/world.hpp"
#include "herring/model/failure_detector_options.hpp"
#include "herring/model/topology.hpp"

#include <chrono>
#include <string>
#include <type_traits>
#include <vector>

namespace HERRING_NAMESPACE {

/// Options of `launch`, `launch_threads` and `thread_worlds`.
struct launch_options {
    /// The name of each rank's node; empty: all ranks are on one node. Ranks of one node share memory.
    std::vector<std::string> nodes{};
    /// The role of each rank; empty: all are workers. A server is a node by itself, and calls
    /// `herring::serve`.
    std::vector<role> roles{};
    /// The name of each rank's rack, of at most 64 characters, the same for the ranks of a node; empty: none
    /// are declared. Sums add up a rack's nodes first.
    std::vector<std::string> racks{};
    /// The bandwidth of each rank's network in Mbit/s, for `placement::optimal`; empty: not declared.
    std::vector<int> rates{};
    /// Time for which the other ranks may go on after one has failed, before they are ended.
    std::chrono::milliseconds grace{5'000};
    /// Time after which the whole launch ends, with status 124; 0: no limit.
    std::chrono::milliseconds timeout{0};
    /// Times until a silent rank is given up and a root cause is named. Threads are silent only together.
    failure_detector_options failure_detector{};
    /// Timeout of calls without a deadline and of constructing a reducer, instead of HERRING_DEFAULT_TIMEOUT.
    /// At least 50 ms, or `herring::never`; 30 s if neither is set.
    std::chrono::milliseconds default_timeout = detail::not_given;
    /// The handler that is called once on each rank when the world has failed, with the failure as that rank
    /// sees it. For ranks in other calls, where they would wait for a rank that is gone.
    ///
    /// Threads:  called in a thread of Herring, one per rank, which exists only for this handler. The handler
    ///           may end the process, or end the program's waits. It must neither wait for a call of this
    ///           world nor destroy the world: the destructor waits for the handler. An exception that leaves
    ///           the handler ends the program.
    detail::failure_handler on_failure{};
};

namespace detail {

/// Returns a function's result as the status of a process: 255 for a result that does not fit 8 bits.
constexpr int status_of(long long result) noexcept {
    return result < 0 || result > 255 ? 255 : static_cast<int>(result);
}

template <class Function> int status_of(Function& function, world& here) {
    if constexpr (std::is_void_v<std::invoke_result_t<Function&, world&>>) {
        function(here);
        return 0;
    } else {
        return status_of(static_cast<long long>(function(here)));
    }
}

/// A reference to the function that every rank runs, without its type.
///
/// Lifetime: that of the function.
struct rank_function {
    void const* self = nullptr;
    int (*call)(void const* self, world& here) = nullptr; ///< returns the rank's status

    template <class Function> static rank_function by(Function const& status_in) noexcept {
        return {&status_in, [](void const* function, world& here) -> int {
                    return (*static_cast<Function const*>(function))(here);
                }};
    }
    int operator()(world& here) const { return call(self, here); }
};

HERRING_SEPARABLE int launch_processes(int ranks, rank_function function, launch_options const& options);
HERRING_SEPARABLE int run_in_threads(int ranks, rank_function function, launch_options const& options);

} // namespace detail

/// Forks `ranks` processes, runs `function(world&)` in each, and waits for all of them. Returns 0, or the
/// status of the first rank that failed.
///
/// `function` returns nothing (status 0) or an integer: 0 to 255 are the status itself, any other value is
/// 255. An exception that leaves `function` is printed to stderr; the status is 1. The status of a process
/// that a signal ended is 128 + signal.
///
/// Blocks:   until the last rank has ended. When a rank fails or dies, collectives of the others throw an
///           error that names the rank, and the others are ended `options.grace` later. Ranks die with the
///           process that launched them.
/// Threads:  call it before this process has a second thread: a forked child has only the thread that forked.
/// Errors:   `bad_argument`; `no_resources`, if a process cannot be forked.
/// Example:  return herring::launch(4, [](herring::world& w) { std::printf("rank %d\n", w.rank()); });
template <class Function> int launch(int ranks, Function&& function, launch_options const& options = {}) {
    auto const status = [&function](world& here) { return detail::status_of(function, here); };
    return detail::launch_processes(ranks, detail::rank_function::by(status), options);
}

/// Returns one world for each of `ranks` threads of this process.
///
/// Threads:  each world is used by one thread.
/// Lifetime: independent of each other; the last world frees the memory that they share.
/// Errors:   `bad_argument`.
HERRING_SEPARABLE std::vector<world> thread_worlds(int ranks, launch_options const& options = {});

/// Runs `function(world&)` in `ranks` threads of this process, and joins them. Returns 0, or the lowest
/// rank's status that is not 0.
///
/// Blocks:   until the last thread is done. A rank whose function throws announces the failure, so that
///           collectives of the other ranks end.
/// Errors:   rethrows the first exception that left a rank's function; `bad_argument`; `no_resources`, if a
///           thread cannot be started.
template <class Function>
int launch_threads(int ranks, Function&& function, launch_options const& options = {}) {
    auto const status = [&function](world& here) { return detail::status_of(function, here); };
    return detail::run_in_threads(ranks, detail::rank_function::by(status), options);
}

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/join/launch_impl.hpp"
#endif

#endif // HERRING_JOIN_LAUNCH_HPP

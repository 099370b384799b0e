// herring: starts local ranks: as processes (`launch`) or as threads of this one (`launch_threads`).
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

/// How local ranks are started.
struct launch_options {
    /// A node's name for each rank; empty: all ranks share one node. Ranks of one name share memory.
    std::vector<std::string> nodes{};
    /// A role for each rank; empty: all are workers. A server is a node of its own, and calls `herring::serve`.
    std::vector<role> roles{};
    /// What the network of each rank carries, in Mbit/s, for `placement::optimal`; empty: not declared.
    std::vector<int> rates{};
    /// How long the other ranks may go on after one has failed, before they are ended.
    std::chrono::milliseconds grace{5'000};
    /// The whole launch ends after this long, with status 124; 0: no limit.
    std::chrono::milliseconds timeout{0};
    /// When a silent rank is given up, and how soon a root cause is named. Threads are not silent alone.
    failure_detector_options failure_detector{};
    /// Instead of HERRING_DEFAULT_TIMEOUT: of every call that is given no deadline, and of constructing a reducer; 30 s where
    /// neither is set; at least 50 ms; `herring::never`.
    std::chrono::milliseconds default_timeout = detail::not_given;
    /// Called once on each rank when the world has failed, whoever caused it, with the failure as that rank sees it. For
    /// ranks that then are in other calls, and would wait there for a rank that is gone.
    ///
    /// Threads:  in a thread of Herring's, one a rank, which there is only where this is given. It may end the process, or
    ///           make what the program waits for return. It must not wait for a call of this world, nor destroy it: the
    ///           destructor waits for it. An exception that leaves it ends the program.
    detail::failure_handler on_failure{};
};

namespace detail {

/// A function's result as the status of a process, which has 8 bits: a result that does not fit is 255, not 0.
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

/// The function that every rank runs, whatever its type.
///
/// Lifetime: of the function.
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

/// Forks `ranks` processes, runs `function(world&)` in each and waits for all of them.
///
/// Call it before this process has a second thread: a forked child has only the thread that forked.
/// What a child leaves is its output and its status: `function` returns nothing (0) or a status, of which 1 to 255
/// stay what they are and all others but 0 become 255; an exception that leaves it is printed to stderr and is status 1.
/// Blocks:   until the last rank has ended. When one fails or dies, the others are told at once (their collectives
///           throw an error that names it) and are ended `options.grace` later. Ranks die with the process that
///           launched them.
/// Errors:   returns 0, or the status of the first rank that failed (128 + signal where a signal ended it).
/// Example:  return herring::launch(4, [](herring::world& w) { std::printf("%d of %d\n", w.rank(), w.size()); });
template <class Function> int launch(int ranks, Function&& function, launch_options const& options = {}) {
    auto const status = [&function](world& here) { return detail::status_of(function, here); };
    return detail::launch_processes(ranks, detail::rank_function::by(status), options);
}

/// One world for each of `ranks` threads of this process, to be handed to them.
///
/// Threads:  each world is used by one thread.
/// Lifetime: as long as wanted; the last one frees what they share.
HERRING_SEPARABLE std::vector<world> thread_worlds(int ranks, launch_options const& options = {});

/// Runs `function(world&)` in `ranks` threads of this process and joins them.
///
/// Blocks:   until the last thread is done. A rank whose function throws announces that, so that the others'
///           collectives end.
/// Errors:   rethrows what the first rank threw that did; else returns 0 or the first status that is not.
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

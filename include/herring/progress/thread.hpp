// herring: progress made by a thread of the reducer.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PROGRESS_THREAD_HPP
#define HERRING_PROGRESS_THREAD_HPP

#include "herring/base/config.hpp"
#include "herring/progress/progress.hpp"

namespace HERRING_NAMESPACE::progress {

/// A thread of the reducer moves the bytes while the caller computes.
///
/// Cost:    one thread a reducer; ready() hands over with two atomic writes and at most one wake-up, wait() with one sleep. It
///          pays when backward leaves a core free; on a machine whose cores are all busy, progress::caller
///          with a poll() now and then costs less.
/// Threads: one thread calls the reducer at a time; the reducer's own thread calls the transport.
/// Lifetime: starts in the reducer's constructor, ends in its destructor.
struct thread {
    using axis = axes::progress;
    static constexpr char const* name = "thread";
    static constexpr progress_facts facts{.background = true};
};
static_assert(progress_policy<thread>);

} // namespace HERRING_NAMESPACE::progress

#endif // HERRING_PROGRESS_THREAD_HPP

// herring: progress policies, which name the thread that moves the bytes: the concept and its models.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PROGRESS_PROGRESS_HPP
#define HERRING_PROGRESS_PROGRESS_HPP

#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>

namespace HERRING_NAMESPACE {

/// The facts of a progress policy: `static constexpr progress_facts facts{...};`.
struct progress_facts {
    bool background = false; ///< a thread of the reducer polls while the caller computes
};

// True if no fact is stated outside `facts`, where nothing reads it.
template <class Policy>
concept progress_states_facts = states_facts<Policy, progress_facts> && !requires {
    Policy::background;
};

/// A progress policy decides which thread polls the engine.
template <class Policy>
concept progress_policy =
    std::same_as<typename Policy::axis, axes::progress> && progress_states_facts<Policy>;

template <class Policy> struct check<axes::progress, Policy> {
    static constexpr bool value = progress_states_facts<Policy>;
    static_assert(value,
                  "[HRG-G02] progress: needs 'static constexpr herring::progress_facts facts{...}'; a common "
                  "slip is 'static constexpr bool background', which nothing reads; write "
                  "'facts{.background = true}' if a thread of the reducer shall poll");
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::progress {

/// Moves the bytes inside ready(), poll() and wait(), on the thread that calls them. The default.
///
/// Cost:    no thread, no lock. Between those calls nothing moves except what the kernel or the NIC does by
///          itself; call poll() now and then in a long backward, or name progress::thread.
/// Threads: one thread calls the reducer at a time.
struct caller {
    using axis = axes::progress;
    static constexpr char const* name = "caller";
    static constexpr progress_facts facts{.background = false};
};
static_assert(progress_policy<caller>);

/// Moves the bytes in a thread of the reducer while the caller computes.
///
/// Cost:    one thread a reducer; ready() hands over with two atomic writes and at most one wake-up, wait()
///          with one sleep. Pays when backward leaves a core free; on a machine whose cores are all busy,
///          progress::caller with a poll() now and then costs less.
/// Threads: one thread calls the reducer at a time; the reducer's own thread calls the transport.
/// Lifetime: starts in the reducer's constructor, ends in its destructor.
struct thread {
    using axis = axes::progress;
    static constexpr char const* name = "thread";
    static constexpr progress_facts facts{.background = true};
};
static_assert(progress_policy<thread>);

} // namespace HERRING_NAMESPACE::progress

#endif // HERRING_PROGRESS_PROGRESS_HPP

// herring: what a progress policy is: who moves the bytes between ready() and wait().
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PROGRESS_PROGRESS_HPP
#define HERRING_PROGRESS_PROGRESS_HPP

#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>

namespace HERRING_NAMESPACE {

/// What a progress policy promises, as `static constexpr progress_facts facts{...};`.
struct progress_facts {
    bool background = false; ///< a thread of the reducer polls while the caller computes
};

// A fact beside `facts`, where nothing reads it.
template <class Policy>
concept progress_states_facts = states_facts<Policy, progress_facts> && !requires {
    Policy::background;
};

/// Who polls the engine.
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

/// Bytes move inside ready(), poll() and wait(), on the thread that calls them.
///
/// Cost:    no thread, no lock. Between those calls nothing moves except what the kernel or the NIC does on its
///          own; call poll() now and then in a long backward, or name progress::thread.
/// Threads: one thread calls the reducer at a time.
struct caller {
    using axis = axes::progress;
    static constexpr char const* name = "caller";
    static constexpr progress_facts facts{.background = false};
};
static_assert(progress_policy<caller>);

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

#endif // HERRING_PROGRESS_PROGRESS_HPP

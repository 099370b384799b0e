// herring: progress made by the calling thread.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PROGRESS_CALLER_HPP
#define HERRING_PROGRESS_CALLER_HPP

#include "herring/base/config.hpp"
#include "herring/progress/progress.hpp"

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

} // namespace HERRING_NAMESPACE::progress

#endif // HERRING_PROGRESS_CALLER_HPP

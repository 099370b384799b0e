// herring: what a trace policy is: a call at every event of a step.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TRACE_HPP
#define HERRING_TRACE_TRACE_HPP

#include "herring/base/config.hpp"
#include "herring/policy.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// The index of `bucket_reduced` for (a piece of) an `all_reduce`, which is no bucket of the plan.
inline constexpr std::uint32_t no_bucket = 0xffffffff;

/// What happened. The index that comes with it is given in brackets.
enum class trace_event : std::uint8_t {
    tensor_ready, ///< ready(i) was called [tensor]
    bucket_submitted, ///< all tensors of a bucket are ready, and copied in where that is due: it may leave [bucket]
    bucket_reduced, ///< the result of a bucket lies in this rank's memory [bucket, or no_bucket]
    wait_begin,     ///< wait() was called: communication is exposed from here on [0]
    wait_end        ///< wait() is about to return [0]
};

/// "tensor_ready", ...
constexpr char const* to_string(trace_event event) noexcept {
    switch (event) {
    case trace_event::tensor_ready:
        return "tensor_ready";
    case trace_event::bucket_submitted:
        return "bucket_submitted";
    case trace_event::bucket_reduced:
        return "bucket_reduced";
    case trace_event::wait_begin:
        return "wait_begin";
    case trace_event::wait_end:
        return "wait_end";
    }
    return "unknown";
}

template <class Policy>
concept trace_callable = requires(Policy& policy, trace_event event, std::uint32_t index) {
    policy(event, index);
};

template <class Policy>
concept trace_nothrow = requires(Policy& policy, trace_event event, std::uint32_t index) {
    { policy(event, index) }
    noexcept;
};

template <class Policy>
concept trace_default_made = std::is_nothrow_default_constructible_v<Policy>;

/// What is called at every event: `policy(event, index)`.
///
/// A value held by the reducer and reached by `reduce.trace()`. It reads the clock itself, if it wants times.
/// Threads: under progress::caller all events come from the caller's thread. Under progress::thread `bucket_reduced`
///          comes from the reducer's own thread and all others from the caller's, perhaps at the same time: state that
///          they share needs atomics. When `wait` has returned, the caller's thread sees all that its step's events did.
template <class Policy>
concept trace_policy = std::same_as<typename Policy::axis, axes::trace> && trace_callable<Policy> &&
    trace_nothrow<Policy> && trace_default_made<Policy>;

template <class Policy> struct check<axes::trace, Policy> {
    static constexpr int broken =
        first_broken({trace_callable<Policy>, trace_nothrow<Policy>, trace_default_made<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-R01] trace: needs 'void operator()(trace_event, std::uint32_t index) noexcept'; a "
                  "common slip is to leave out the index, or to make it private; take both");
    static_assert(broken != 1,
                  "[HRG-R02] trace: 'operator()(event, index)' must be noexcept; a common slip is to "
                  "forget it; add noexcept, and reserve memory beforehand");
    static_assert(broken != 2,
                  "[HRG-R03] trace: the reducer makes it, by a noexcept constructor without arguments; a "
                  "common slip is to allocate in the constructor; set it up through reduce.trace()");
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRACE_TRACE_HPP

// herring: what a trace policy is: a call at every event of a step, and, where it asks for them, of the engine.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TRACE_HPP
#define HERRING_TRACE_TRACE_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/model/layout.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// The index of `bucket_reduced` for (a piece of) an `all_reduce`, which is no bucket of the plan.
inline constexpr std::uint32_t no_bucket = 0xffffffff;
/// The execution of a message that is here before it is known which one it belongs to.
inline constexpr std::uint32_t no_execution = 0xffffffff;

/// What happened. The index that comes with it is given in brackets.
enum class trace_event : std::uint8_t {
    tensor_ready, ///< ready(i) was called [tensor]
    bucket_submitted, ///< all tensors of a bucket are ready, and copied in where that is due: it may leave [bucket]
    bucket_reduced, ///< the result of a bucket lies in this rank's memory [bucket, or no_bucket]
    wait_begin,     ///< wait() was called: communication is exposed from here on [0]
    wait_end,       ///< wait() is about to return [0]

    // Only for policies with `facts.details`.
    part_sent, ///< this node's part of a chunk is given to the transport, perhaps not for the last time [bucket]
    part_arrived,   ///< another node's part of a chunk is here [bucket]
    fold_begin,     ///< this rank begins to combine a chunk [bucket]
    fold_end,       ///< it has combined it [bucket]
    result_sent,    ///< the result of a chunk is given to the transport, the same [bucket]
    result_arrived, ///< the result of a chunk is here [bucket]
    credit_stall, ///< a part could leave, and the peer has not answered as many as may be in flight [bucket]
    waits_for,    ///< with nothing to do, this rank found that it waits for another rank than before [bucket]

    // Of tensors on devices that pass the host.
    to_host_begin,   ///< the copy of a bucket to the host is enqueued on the device [bucket]
    to_host_end,     ///< the host found that it is done [bucket]
    to_device_begin, ///< the copy of its result to the device is enqueued [bucket]
    to_device_end, ///< the host found that it is done, perhaps in a later step [no_bucket; the execution names it]
};
inline constexpr int trace_event_count = static_cast<int>(trace_event::to_device_end) + 1;

/// "tensor_ready", ...
constexpr char const* to_string(trace_event event) noexcept {
    constexpr char const* names[] = {"tensor_ready", "bucket_submitted", "bucket_reduced", "wait_begin",
                                     "wait_end",     "part_sent",        "part_arrived",   "fold_begin",
                                     "fold_end",     "result_sent",      "result_arrived", "credit_stall",
                                     "waits_for",    "to_host_begin",    "to_host_end",    "to_device_begin",
                                     "to_device_end"};
    static_assert(std::size(names) == trace_event_count);
    return static_cast<int>(event) < trace_event_count ? names[static_cast<int>(event)] : "unknown";
}

/// What a policy with `facts.details` is told of an event. What an event does not have is as here.
struct trace_details {
    std::uint32_t index = no_bucket; ///< tensor or bucket
    int peer =
        -1; ///< rank that a message goes to or comes from, or that is waited for; wait_end: for the longest time
    std::uint64_t execution =
        0; ///< which of this rank's, counted from 0; wait_*: behind the last one of the step; or no_execution
    std::uint64_t bytes =
        0; ///< of the message, the chunk or the bucket; of a bucket that a node combines by itself, while others do too: 0
    std::uint32_t message =
        0; ///< the same at both ends: its kind, and its number among the pair's of that kind
};

/// What a trace policy takes, as `static constexpr trace_facts facts{...};`. A policy without `facts` takes neither.
struct trace_facts {
    /// Every event comes by `record(event, details)`, and none by `operator()`.
    bool details = false;
    /// `attach(context)` is called once, before the first event.
    bool attaches = false;
};

/// What `attach` is told, during the construction of a reducer, on every rank whose policy asks for it.
///
/// Lifetime: `ranks`, longer than the policy; the rest until `attach` returns.
struct trace_context {
    world& ranks;
    layout const& tensors;
    std::span<std::uint64_t const> bucket_bytes; ///< bucket → bytes
    std::uint64_t digest;                        ///< of the plan; the same on all ranks
    std::uint64_t reducer;                       ///< 1 for the world's first; the same on all ranks
    bool all_attach; ///< every rank has such a policy: `attach` may use the world's collectives, alike on all
};

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

namespace detail {
/// Whether events come by `record`; whether `attach` is called.
template <class Policy> inline constexpr bool traces_details = requires {
    requires std::is_same_v<decltype(Policy::facts), trace_facts const>;
    requires std::bool_constant<Policy::facts.details>::value;
};
template <class Policy> inline constexpr bool trace_attaches = requires {
    requires std::is_same_v<decltype(Policy::facts), trace_facts const>;
    requires std::bool_constant<Policy::facts.attaches>::value;
};
} // namespace detail

template <class Policy>
concept trace_records = requires(Policy& policy, trace_event event, trace_details const& details) {
    { policy.record(event, details) }
    noexcept;
};
template <class Policy>
concept trace_has_attach = requires(Policy& policy, trace_context const& context) {
    policy.attach(context);
};

// What nothing would call: a member whose fact was forgotten, facts of another type, or a fact beside `facts`.
template <class Policy>
concept trace_facts_stated = states_facts<Policy, trace_facts> || !(
    requires { Policy::facts; } || requires { &Policy::record; } || requires { &Policy::attach; } ||
    requires { Policy::details; } || requires { Policy::attaches; });

// What the facts promise is there, and what is there is promised.
template <class Policy>
concept trace_facts_kept = (detail::traces_details<Policy> ==
                            trace_records<Policy>)&&(detail::trace_attaches<Policy> ==
                                                     trace_has_attach<Policy>);

/// What is called at every event: `policy(event, index)`; with `facts.details`, `policy.record(event, details)` in its place.
///
/// A value held by the reducer and reached by `reduce.trace()`. It reads the clock itself, if it wants times.
/// Threads: under progress::caller all events come from the caller's thread. Under progress::thread `tensor_ready`,
///          `bucket_submitted`, `wait_begin` and `wait_end` come from the caller's thread and all others from the reducer's
///          own, perhaps at the same time: state that they share needs atomics. When `wait` has returned, the caller's
///          thread sees all that its step's events did.
template <class Policy>
concept trace_policy = std::same_as<typename Policy::axis, axes::trace> && trace_facts_stated<Policy> &&
                       (detail::traces_details<Policy> ||
                        (trace_callable<Policy> && trace_nothrow<Policy>)) &&
                       trace_facts_kept<Policy>&& trace_default_made<Policy>;

template <class Policy> struct check<axes::trace, Policy> {
    static constexpr bool plain = !detail::traces_details<Policy>;
    static constexpr int broken =
        first_broken({!plain || !trace_facts_stated<Policy> || trace_callable<Policy>,
                      !plain || !trace_facts_stated<Policy> || trace_nothrow<Policy>,
                      trace_default_made<Policy>, trace_facts_stated<Policy>, trace_facts_kept<Policy>});
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
    static_assert(broken != 3,
                  "[HRG-R04] trace: 'record' and 'attach' need 'static constexpr herring::trace_facts "
                  "facts{...}'; a common slip is to write the function alone, which nothing calls; state "
                  "'facts{.details = true, .attaches = true}'");
    static_assert(
        broken != 4,
        "[HRG-R05] trace: 'facts.details' goes with 'void record(trace_event, trace_details const&) "
        "noexcept', 'facts.attaches' with 'void attach(trace_context const&)'; a common slip is to "
        "forget noexcept, or one of the two; write both, or neither");
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::trace {

/// Records nothing: empty, and its calls vanish.
struct off {
    using axis = axes::trace;
    static constexpr char const* name = "off";

    constexpr void operator()(trace_event, std::uint32_t) const noexcept {}
};
static_assert(trace_policy<off>);
static_assert(std::is_empty_v<off>);

} // namespace HERRING_NAMESPACE::trace

#endif // HERRING_TRACE_TRACE_HPP

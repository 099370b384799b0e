// herring: trace policies: called at every event of a step and, on request, of the engine. The policy `off`.
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
/// The execution of a message that arrives before its execution is known.
inline constexpr std::uint32_t no_execution = 0xffffffff;

/// The events. The index that comes with each is given in brackets.
enum class trace_event : std::uint8_t {
    tensor_ready,     ///< ready(i) was called [tensor]
    bucket_submitted, ///< a bucket may leave: its tensors are ready and, where needed, copied in [bucket]
    bucket_reduced,   ///< the result of a bucket lies in this rank's memory [bucket, or no_bucket]
    wait_begin,       ///< wait() was called: communication is exposed from here on [0]
    wait_end,         ///< wait() is about to return [0]

    // Only for policies with `facts.details`.
    part_sent,    ///< this node's part of a chunk is given to the transport; may come more than once [bucket]
    part_arrived, ///< another node's part of a chunk has arrived [bucket]
    fold_begin,   ///< this rank begins to combine a chunk [bucket]
    fold_end,     ///< this rank has combined the chunk [bucket]
    result_sent,  ///< the result of a chunk is given to the transport; may come more than once [bucket]
    result_arrived, ///< the result of a chunk has arrived [bucket]
    credit_stall,   ///< a part is ready to leave, but as many as may be in flight are unanswered [bucket]
    waits_for,      ///< this rank, with nothing to do, waits for another rank than before [bucket]

    // Tensors on devices whose buckets pass the host.
    to_host_begin,   ///< the copy of a bucket to the host is enqueued on the device [bucket]
    to_host_end,     ///< the host found the copy done [bucket]
    to_device_begin, ///< the copy of a result to the device is enqueued [bucket]
    to_device_end,   ///< the host found the copy done, perhaps in a later step [no_bucket; see the execution]
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

/// Details of an event, for a policy with `facts.details`. Members that an event does not have keep these
/// defaults.
struct trace_details {
    std::uint32_t index = no_bucket; ///< tensor or bucket
    /// Rank that a message goes to or comes from, or that is waited for; wait_end: for the longest time.
    int peer = -1;
    /// Number of the execution on this rank, from 0, or no_execution; wait_*: behind the last of the step.
    std::uint64_t execution = 0;
    /// Bytes of the message, the chunk or the bucket; 0 for a bucket that every node combines by itself.
    std::uint64_t bytes = 0;
    /// The same at both ends of a message: its kind, and its number among those of the pair and kind.
    std::uint32_t message = 0;
};

/// Facts of a trace policy, as `static constexpr trace_facts facts{...};`. Without `facts` both are false.
struct trace_facts {
    /// Every event comes by `record(event, details)`, none by `operator()`.
    bool details = false;
    /// `attach(context)` is called once, before the first event.
    bool attaches = false;
};

/// The argument of `attach`, which is called during the construction of a reducer on every rank whose policy
/// has it.
///
/// Lifetime: `ranks` outlives the policy; the rest is valid until `attach` returns.
struct trace_context {
    world& ranks;
    layout const& tensors;
    std::span<std::uint64_t const> bucket_bytes; ///< bucket → bytes
    std::uint64_t digest;                        ///< of the plan; the same on all ranks
    std::uint64_t reducer;                       ///< 1 for the world's first; the same on all ranks
    /// Every rank has such a policy: `attach` may use collectives of the world, alike on all ranks.
    bool all_attach;
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
/// True if events come by `record`; true if `attach` is called.
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

// Finds members that nothing would call: without their fact, with facts of another type, or with a fact
// outside `facts`.
template <class Policy>
concept trace_facts_stated = states_facts<Policy, trace_facts> || !(
    requires { Policy::facts; } || requires { &Policy::record; } || requires { &Policy::attach; } ||
    requires { Policy::details; } || requires { Policy::attaches; });

// Each function that the facts promise exists, and each existing one is promised.
template <class Policy>
concept trace_facts_kept = (detail::traces_details<Policy> ==
                            trace_records<Policy>)&&(detail::trace_attaches<Policy> ==
                                                     trace_has_attach<Policy>);

/// A trace policy: called at every event as `policy(event, index)`, or with `facts.details` as
/// `policy.record(event, details)`.
///
/// A value of the reducer, returned by `reduce.trace()`. It reads a clock itself if it needs times.
/// Threads: under progress::caller all events come from the caller's thread. Under progress::thread
///          `tensor_ready`, `bucket_submitted`, `wait_begin` and `wait_end` come from the caller's thread and
///          all others from the reducer's thread, perhaps at the same time: shared state needs atomics. When
///          `wait` has returned, the caller's thread sees all effects of the events of its step.
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

/// Records nothing: an empty type whose calls compile to nothing.
struct off {
    using axis = axes::trace;
    static constexpr char const* name = "off";

    constexpr void operator()(trace_event, std::uint32_t) const noexcept {}
};
static_assert(trace_policy<off>);
static_assert(std::is_empty_v<off>);

} // namespace HERRING_NAMESPACE::trace

#endif // HERRING_TRACE_TRACE_HPP

// herring: what a transport is: tagged, reliable, unordered two-sided messages between ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TRANSPORT_HPP
#define HERRING_TRANSPORT_TRANSPORT_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/model/roles.hpp"
#include "herring/model/tunings.hpp"
#include "herring/policy/policy.hpp"
#include "herring/transport/envelope.hpp"
#include "herring/transport/transport_facts.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// Bits of a tag that are carried along but do not take part in matching: a receive gets them in `completion::tag`.
inline constexpr std::uint64_t carried_bits = std::uint64_t{0xffffffff} << 28;

/// The end of a post, or of a peer.
struct completion {
    enum kind : std::uint8_t {
        sent,     ///< the buffer of a send may be used again; no promise of delivery
        received, ///< the buffer of a receive has `bytes` bytes
        /// Nothing more comes from or goes to `peer`; `describe(peer)` says why. Once a peer. What it had sent is reported
        /// before; a receive that is posted later may still find a message that had come.
        lost
    };
    std::uint64_t token = 0; ///< of the post
    std::size_t bytes = 0;
    peer_id peer{};
    kind what = sent;
    errc why = errc::ok;   ///< with `lost`
    std::uint64_t tag = 0; ///< with `received`: the sender's tag, with its carried bits
    /// With `received`: what the sender gave beside the payload. Valid until the functor of `poll` returns.
    std::span<std::byte const> envelope{};
};

/// What an engine asks of a transport at construction; all of it is known from the plan.
struct transport_needs {
    /// Ranks to exchange with, ascending. Posts and completions name a rank by its place here (`peer_id`). The pairs are
    /// the same on both sides. Empty on all ranks or on none: construction may wait for all ranks, and times out where
    /// only some have peers.
    std::span<int const> peers;
    std::size_t receives_per_peer = 0; ///< posted at once, at most
    std::size_t sends_per_peer = 0;    ///< posted at once, at most
    std::size_t largest_message = 0;   ///< bytes
    /// Of the envelope that every message will have, the same on all ranks; 0: none has one.
    std::size_t envelope_bytes = 0;
    std::chrono::milliseconds timeout = detail::usual_timeout; ///< of construction
};

namespace clauses::transport {
struct sink {
    void operator()(completion const&) const noexcept {}
};
// Whether `facts` is constexpr. By a function: clang takes a requirement for met where the initializer has an error.
template <class Transport>
constexpr auto are_constant(int) noexcept
    -> decltype(std::integral_constant<int, Transport::facts.tag_bits>{}, true) {
    return true;
}
template <class Transport> constexpr bool are_constant(long) noexcept { return false; }
template <class Transport>
concept facts = requires {
    { Transport::name } -> std::convertible_to<char const*>;
    { Transport::facts } -> std::same_as<transport_facts const&>;
}
&&are_constant<Transport>(0);
/// Members that nobody reads: what they say belongs into `facts`.
template <class Transport>
concept strays = requires {
    Transport::max_message;
}
|| requires { Transport::tag_bits; }
|| requires { Transport::keeps_order; }
|| requires { Transport::registers_memory; }
|| requires { Transport::device_memory; }
|| requires { Transport::reports_lost; }
|| requires { Transport::withdraws; }
|| requires { Transport::envelope_bytes; }
|| requires { Transport::verifies; }
|| requires { Transport::most_receives; }
|| requires { Transport::tuning; }
|| requires { Transport::same_host_tuning; };
template <class Transport>
concept constructible = std::constructible_from<Transport, world&, transport_needs const&>;
template <class Transport>
concept sends = requires(Transport& t, peer_id peer, std::uint64_t tag, std::span<std::byte const> from,
                         std::uint64_t token) {
    { t.post_send(peer, tag, from, token) }
    noexcept->std::same_as<bool>;
};
template <class Transport>
concept receives = requires(Transport& t, peer_id peer, std::uint64_t tag, std::span<std::byte> into,
                            std::uint64_t token) {
    { t.post_receive(peer, tag, into, token) }
    noexcept->std::same_as<bool>;
};
template <class Transport>
concept polls = requires(Transport& t, sink const& on_completion) {
    { t.poll(on_completion) }
    noexcept->std::convertible_to<std::size_t>;
};
// Not asked for: a transport that looks at its peers one after the other may offer it.
template <class Transport>
concept polls_from = requires(Transport& t, peer_id peer, sink const& on_completion) {
    { t.poll_from(peer, on_completion) }
    noexcept->std::convertible_to<std::size_t>;
};
template <class Transport>
concept sleeps = requires(Transport& t, time_point until) {
    { t.wait(until) }
    noexcept;
    { t.wake() }
    noexcept;
};
// A promise and its function go together: one without the other is a slip.
template <class Transport>
concept registers_of_devices = requires(Transport& t, std::span<std::byte> memory) {
    t.register_device_memory(memory, 0);
};
template <class Transport>
concept registers = facts<Transport> && requires(Transport& t, std::span<std::byte> memory) {
    t.register_memory(memory);
} && Transport::facts.device_memory == registers_of_devices<Transport>;
template <class Transport>
concept has_abandon = requires(Transport& t) {
    t.abandon();
};
template <class Transport>
concept abandons = facts<Transport> && Transport::facts.abandons == has_abandon<Transport> &&
                   (!has_abandon<Transport> || requires(Transport & t) { requires noexcept(t.abandon()); });
template <class Transport>
concept has_handlers = requires(Transport& t) {
    t.runs_handlers();
}
|| requires(Transport& t) { t.has_exception(); }
|| requires(Transport& t) { t.take_exception(); };
template <class Transport>
concept hands_over_exceptions = requires(Transport& t, Transport const& c) {
    { c.runs_handlers() }
    noexcept->std::same_as<bool>;
    { c.has_exception() }
    noexcept->std::same_as<bool>;
    { t.take_exception() }
    noexcept->std::same_as<std::exception_ptr>;
};
template <class Transport>
concept runs_handlers = facts<Transport> && Transport::facts.runs_handlers == has_handlers<Transport> &&
                        (!has_handlers<Transport> || hands_over_exceptions<Transport>);
// A class that is derived from a transport has the function of that one, and facts of its own.
template <class Transport>
concept has_envelopes = requires(Transport& t, peer_id peer, std::span<std::byte const> bytes) {
    t.post_send(peer, std::uint64_t{}, bytes, bytes, std::uint64_t{});
};
template <class Transport>
concept carries_envelopes = requires(Transport& t, peer_id peer, std::span<std::byte const> bytes) {
    { t.post_send(peer, std::uint64_t{}, bytes, bytes, std::uint64_t{}) }
    noexcept->std::same_as<bool>;
}
&&Transport::facts.envelope_bytes <= detail::most_envelope_bytes;
template <class Transport>
concept envelopes = facts<Transport> &&(Transport::facts.envelope_bytes > 0) == has_envelopes<Transport> &&
                    (!has_envelopes<Transport> || carries_envelopes<Transport>);
template <class Transport>
concept describes = requires(Transport const& t, peer_id peer) {
    { t.describe(peer) } -> std::convertible_to<char const*>;
};
} // namespace clauses::transport

/// Tagged, reliable, unordered messages.
///
/// - `post_send(peer, tag, bytes, token)`, `post_receive(peer, tag, bytes, token)`: non-blocking, no allocation on
///   the expected path, false for «not now». What was announced at construction is taken in the end; receives also
///   when nothing that was posted before them completes. A message goes to the receive of the same peer and tag,
///   leaving the `carried_bits` out; two posted at once with one tag match in any order. A receive may be larger than
///   its message, never smaller. A send above `max_message` is refused (false), every time, and nothing of it moves.
/// - `poll(on_completion)`: moves bytes and reports completions; calls nothing but its functor.
/// - `poll_from(peer, on_completion)`, where a look at one peer costs less than one at all: as `poll`, which is called now and then
///   all the same, but only what comes from this peer has to be looked for. Called while nothing else is waited for.
/// - `wait(until)`: sleeps until `poll` would find something, or `until`; `wake()` ends it from another thread.
/// - `register_memory(bytes)`: called at construction, once for every region that posts will use.
/// - Destruction withdraws what is still posted: from then on its memory is neither read nor written, by anyone. What
///   was reported as `sent` arrives all the same: a rank leaves when all is done for it, and others may still wait
///   for its last messages.
/// - `facts`, a `transport_facts`: what may be relied upon, and the sizes that suit it. What they promise is there:
///   - `device_memory`: `register_device_memory(bytes, device)`, called once for every region of a device.
///   - `abandons`: `abandon()`, called when a reduction has failed, before the caller hears of it. From then on nothing
///     that was posted is read or written, for its memory may be freed; nothing is posted or polled any more. A
///     transport that touches posted memory in `poll` alone needs none.
///   - `envelope_bytes`: `post_send(peer, tag, envelope, bytes, token)`, for decorators that check or seal what another
///     transport carries. The envelope is copied at the post. `transport_needs::envelope_bytes` says how large those of
///     all messages will be.
///   - `runs_handlers`: `wait` may run handlers of the program. `runs_handlers()` says whether it does;
///     `has_exception()` and `take_exception()` hand over the first exception that one has thrown.
template <class Transport>
concept transport_policy =
    std::same_as<typename Transport::axis, axes::transport> && clauses::transport::facts<Transport> &&
    !clauses::transport::strays<Transport> &&
    clauses::transport::constructible<Transport> && clauses::transport::sends<Transport> &&
    clauses::transport::receives<Transport> && clauses::transport::polls<Transport> &&
    clauses::transport::sleeps<Transport> && clauses::transport::registers<Transport> &&
    clauses::transport::describes<Transport> && clauses::transport::abandons<Transport> &&
    clauses::transport::runs_handlers<Transport> && clauses::transport::envelopes<Transport>;

template <class Transport> struct check<axes::transport, Transport> {
    static constexpr int broken = first_broken(
        {clauses::transport::facts<Transport>, !clauses::transport::strays<Transport>,
         clauses::transport::sends<Transport>, clauses::transport::receives<Transport>,
         clauses::transport::polls<Transport>, clauses::transport::sleeps<Transport>,
         clauses::transport::registers<Transport>, clauses::transport::describes<Transport>,
         clauses::transport::abandons<Transport>, clauses::transport::runs_handlers<Transport>,
         clauses::transport::envelopes<Transport>, clauses::transport::constructible<Transport>});
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-T01] transport: needs 'static constexpr char const* name' and 'static constexpr "
                  "transport_facts facts{...}'; a common slip is a misspelt member of facts, which the "
                  "compiler names; facts{} has the defaults");
    static_assert(broken != 1,
                  "[HRG-T14] transport: its facts are members of 'facts', and one is a member of the "
                  "transport, where nobody reads it; a common slip is 'static constexpr bool device_memory "
                  "= true' in a derived class; write 'facts{.device_memory = true}'");
    static_assert(broken != 2,
                  "[HRG-T02] transport: needs 'post_send(peer_id, tag, span, token) noexcept' that "
                  "returns bool; a common slip is to forget noexcept");
    static_assert(broken != 3,
                  "[HRG-T03] transport: needs 'post_receive(peer_id, tag, span, token) noexcept' that "
                  "returns bool; a common slip is to take a span of const bytes");
    static_assert(broken != 4,
                  "[HRG-T04] transport: needs 'poll(on_completion) noexcept' as a template that returns "
                  "how many completions it reported; a common slip is to take the functor by non-const "
                  "reference");
    static_assert(broken != 5,
                  "[HRG-T05] transport: needs 'wait(time_point) noexcept' and 'wake() noexcept'; a common "
                  "slip is to take a duration");
    static_assert(broken != 6,
                  "[HRG-T06] transport: needs 'register_memory(span)', and 'register_device_memory(span, "
                  "device)' where facts.device_memory is true and only there; where nothing is registered, "
                  "an empty function will do");
    static_assert(broken != 7,
                  "[HRG-T07] transport: needs 'describe(peer_id) const' that tells why a peer was lost; a "
                  "common slip is to return a std::string");
    static_assert(broken != 8,
                  "[HRG-T15] transport: needs 'abandon() noexcept' where facts.abandons is true, and only "
                  "there; a common slip is a function whose fact is left out, so that nobody calls it");
    static_assert(broken != 9,
                  "[HRG-T16] transport: needs 'runs_handlers() const noexcept', 'has_exception() const "
                  "noexcept' and 'take_exception() noexcept', which returns a std::exception_ptr, where "
                  "facts.runs_handlers is true, and only there; a common slip is to leave one out");
    static_assert(broken != 10,
                  "[HRG-T17] transport: needs 'post_send(peer_id, tag, envelope, span, token) noexcept' that "
                  "returns bool where facts.envelope_bytes is above zero, and only there, and at most 32 of "
                  "them; a common slip is facts of one's own in a class derived from inproc or tcp; add "
                  "'.envelope_bytes = inproc::facts.envelope_bytes' to them");
    static_assert(broken != 11,
                  "[HRG-T09] transport: needs a constructor from (world&, transport_needs const&); a "
                  "common slip is to take world by value");
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRANSPORT_TRANSPORT_HPP

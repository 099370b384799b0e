// herring: the transport concept: tagged, reliable, unordered messages between ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TRANSPORT_HPP
#define HERRING_TRANSPORT_TRANSPORT_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/model/roles.hpp"
#include "herring/model/tunings.hpp"
#include "herring/policy/policy.hpp"
#include "herring/transport/envelope.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// Promises of a transport: `static constexpr transport_facts facts{.keeps_order = true, ...};`.
///
/// The defaults hold for every transport of host memory. A misspelt member does not compile. The concept
/// demands the functions that a fact promises.
struct transport_facts {
    /// Bytes of the largest message. A larger send is refused every time.
    std::size_t max_message = static_cast<std::size_t>(-1);
    /// Bits of a tag that are matched or carried along.
    int tag_bits = 64;
    /// Two messages with one tag are matched in the order in which they were sent.
    bool keeps_order = false;
    /// Posts use registered memory only.
    bool registers_memory = false;
    /// Posts may use memory of a device. Demands `register_device_memory(bytes, device)`.
    bool device_memory = false;
    /// Every peer that leaves or dies is reported as `lost`. The world notices the death of a rank in any
    /// case.
    bool reports_lost = true;
    /// The memory of a withdrawn send is not read any more, by any rank.
    bool withdraws = true;
    /// Posted memory is read or written between polls. Demands `abandon()`, which ends that.
    bool abandons = false;
    /// `wait` may run handlers of the program. Demands `runs_handlers()`, `has_exception()` and
    /// `take_exception()`.
    bool runs_handlers = false;
    /// Bytes of envelope that a message can carry beside its payload, at most 32. Above 0: demands a
    /// `post_send` with an envelope, which the receiver finds in `completion::envelope`.
    std::size_t envelope_bytes = 0;
    /// A received message is what was sent, and is reported once: a decorator compares each message with its
    /// envelope.
    bool verifies = false;
    /// Receives that can be posted at once, of all peers together.
    std::size_t most_receives = static_cast<std::size_t>(-1);
    /// Sizes that suit this transport.
    exchange_tuning tuning{};
    /// Sizes where all ranks reach each other over the loopback interface.
    exchange_tuning same_host_tuning = tuning;
};

/// Bits of a tag that are carried along and not matched: the receiver finds them in `completion::tag`.
inline constexpr std::uint64_t carried_bits = std::uint64_t{0xffffffff} << 28;

/// The end of a post, or the loss of a peer, as `poll` reports it.
struct completion {
    enum kind : std::uint8_t {
        sent,     ///< the buffer of a send may be reused; delivery is not promised
        received, ///< the buffer of a receive holds `bytes` bytes
        /// No message comes from or goes to `peer` any more; `describe(peer)` has the reason. Reported once a
        /// peer, after the messages that the peer had sent. A receive that is posted later may still match
        /// one of those.
        lost
    };
    std::uint64_t token = 0; ///< of the post
    std::size_t bytes = 0;   ///< of the payload
    peer_id peer{};          ///< the other end
    kind what = sent;
    errc why = errc::ok;   ///< with `lost`: the kind of the error
    std::uint64_t tag = 0; ///< with `received`: the sender's tag, carried bits included
    /// With `received`: the sender's envelope. Valid until the functor of `poll` returns.
    std::span<std::byte const> envelope{};
};

/// Demands of an engine at the construction of a transport. All of them follow from the plan.
struct transport_needs {
    /// Ranks to exchange messages with, ascending. Posts and completions name a rank by its place here
    /// (`peer_id`). A rank is a peer of its peers. Either all ranks have peers or none has: construction may
    /// wait for all ranks, and times out where only some have peers.
    std::span<int const> peers;
    std::size_t receives_per_peer = 0; ///< most receives posted at once
    std::size_t sends_per_peer = 0;    ///< most sends posted at once
    std::size_t largest_message = 0;   ///< bytes
    std::size_t envelope_bytes = 0;    ///< of every message, the same on all ranks; 0: none has an envelope
    std::chrono::milliseconds timeout = detail::usual_timeout; ///< of construction
};

namespace clauses::transport {
struct sink {
    void operator()(completion const&) const noexcept {}
};
// True if `facts` is constexpr. A function, because clang takes a requirement as met where the initializer
// has an error.
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
/// True if a fact is a member of the transport, where it is never read: it belongs into `facts`.
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
// Optional: for a transport that looks at its peers one after the other.
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
// A fact and its function go together: one without the other is a slip.
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
// A class derived from a transport inherits this function; facts of its own that leave the envelope out are a
// slip, which the clause below finds.
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

/// Tagged, reliable, unordered messages between ranks.
///
/// Threads:  one at a time; `wake` from any.
/// Errors:   construction throws `error`. Later a failed peer is reported as `lost`, and nothing throws.
/// Lifetime: memory of a post is the transport's until the post completes or is withdrawn by `abandon` or
///           destruction.
///
/// Clauses, each required:
///
/// - `name`, `facts`: constants; a `char const*`, and a `transport_facts` on which the engine relies.
/// - No fact is a member of the transport itself, where it is never read.
/// - `Transport(world&, transport_needs const&)`: connects this rank with its peers, on all ranks at once,
///   within `transport_needs::timeout`.
/// - `post_send(peer, tag, bytes, token)`: begins a send; never blocks; does not allocate on the expected
///   path.
///   - False: not now, the caller posts again later. Every send announced at construction is taken in the
///     end.
///   - False every time, and no byte moves: more than `max_message` bytes.
/// - `post_receive(peer, tag, bytes, token)`: begins a receive, likewise. Every receive announced at
///   construction is taken in the end, also if no earlier post completes.
///   - A message goes to the receive of the same peer and tag, compared without `carried_bits`. Two receives
///     posted at once with one tag match in any order.
///   - A receive may be larger than its message. One that is smaller is an error of the program: its
///     completion has the message's true size, and no byte is written past its end; or the peer is `lost`.
/// - `poll(on_completion)`: moves bytes, reports completions, returns their number; calls no code but the
///   functor, which may post.
/// - `wait(until)`: sleeps until `poll` can make progress, until the time, or until `wake()`, which another
///   thread may call.
/// - `register_memory(bytes)`: called at construction, once for every region that posts will use. With
///   `facts.device_memory` also `register_device_memory(bytes, device)`, once for every region of a device.
/// - `describe(peer)`: the reason why a peer is lost; the text is valid as long as the transport.
/// - `abandon()`, with `facts.abandons`: called when a reduction has failed, before the caller learns of it.
///   Afterwards no posted memory is read or written, for it may be freed, and nothing is posted or polled. A
///   transport that touches posted memory in `poll` alone needs none.
/// - `runs_handlers()`, `has_exception()`, `take_exception()`, with `facts.runs_handlers`: true if `wait`
///   runs handlers of the program; true if one has thrown; hands over the first exception since the last
///   call.
/// - `post_send(peer, tag, envelope, bytes, token)`, with `facts.envelope_bytes`: as `post_send`, for
///   decorators that check or seal messages. The envelope is copied at the post.
///   `transport_needs::envelope_bytes` is the size of all envelopes.
///
/// Destruction withdraws every post: afterwards its memory is neither read nor written, by any rank. A
/// message reported as `sent` still arrives: a rank leaves when its own work is done, and others may still
/// wait for its last messages.
///
/// Optional: `poll_from(peer, on_completion)`, where a look at one peer costs less than a look at all. Called
/// when nothing but this peer is waited for; only its messages have to be looked for. `poll` is called now
/// and then all the same.
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

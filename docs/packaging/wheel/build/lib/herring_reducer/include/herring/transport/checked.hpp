// herring: decorates a transport with a checksum of every message: a changed message is an error.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_CHECKED_HPP
#define HERRING_TRANSPORT_CHECKED_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/policy/names.hpp"
#include "herring/transport/decorated.hpp"
#include "herring/transport/received_counters.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// The parts of a message beside its payload that the checksum covers.
struct checked_message {
    std::uint64_t tag = 0;     ///< with its carried bits
    std::uint64_t counter = 0; ///< number among the messages from this sender to this receiver, from 0 on
    int sender = -1;           ///< rank
    int receiver = -1;         ///< rank
};

/// The envelope of a message: its number and the CRC-32C of the whole message.
///
/// Layout: counter 0, crc 8; little-endian.
struct checked_envelope {
    static constexpr std::size_t bytes = 12;
    using buffer = std::array<std::byte, bytes>;

    static buffer of(checked_message const& what, std::span<std::byte const> payload) noexcept {
        buffer result;
        put(result.data(), what.counter);
        put(result.data() + 8, crc_of(what, payload));
        return result;
    }

    explicit checked_envelope(std::span<std::byte const> from) noexcept : whole_(from.size() == bytes) {
        if (!whole_) return;
        counter = get<std::uint64_t>(from.data());
        crc_ = get<std::uint32_t>(from.data() + 8);
    }
    /// True if the message is the one that this envelope was computed for.
    bool is_of(checked_message const& what, std::span<std::byte const> payload) const noexcept {
        return whole_ && crc_of(what, payload) == crc_;
    }

    std::uint64_t counter = 0;

  private:
    static std::uint32_t crc_of(checked_message const& what, std::span<std::byte const> payload) noexcept {
        std::array<std::byte, 32> rest;
        put(rest.data(), what.tag);
        put(rest.data() + 8, what.counter);
        put(rest.data() + 16, std::uint64_t{payload.size()});
        put(rest.data() + 24, static_cast<std::uint32_t>(what.sender));
        put(rest.data() + 28, static_cast<std::uint32_t>(what.receiver));
        return crc32c(rest, crc32c(payload));
    }

    std::uint32_t crc_ = 0;
    bool whole_;
};

struct waiting_send {
    std::uint64_t tag = 0;
    std::span<std::byte const> from{};
    std::uint64_t token = 0;
    checked_envelope::buffer envelope{};
};

struct checked_word {
    static constexpr char const* word = "checked";
};

/// Demands on the inner transport, as a need of the transport: a pack reports it once.
template <class Inner> struct checked_needs {
    template <class Pack> struct check {
        static constexpr bool first = !Inner::facts.verifies;
        static constexpr bool carried = Inner::facts.envelope_bytes >= checked_envelope::bytes;
        static constexpr bool value = first && carried;
        static_assert(first,
                      "[HRG-T21] transport: checked stands around a transport that verifies messages already "
                      "(its facts.verifies is true); a common slip is checked<checked<...>>; name it once");
        static_assert(!first || carried,
                      "[HRG-T22] transport: checked needs a transport that carries an envelope of 12 bytes "
                      "(facts.envelope_bytes); a common slip is checked around a transport of one's own; "
                      "give that a post_send with an envelope, or name checked<tcp>");
    };
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::transport {

/// Numbers of messages that `checked` has handled on this rank.
struct checked_counts {
    std::uint64_t sent = 0;      ///< messages with a checksum
    std::uint64_t received = 0;  ///< messages that came as they were sent
    std::uint64_t repeated = 0;  ///< messages that came again, and were dropped
    std::uint64_t corrupted = 0; ///< messages that differ from what was sent
};

/// Decorates another transport: each message has an envelope with its number and CRC-32C, which are checked
/// before the message is reported.
///
/// Checks:   payload, tag with its carried bits, length, number, sender and receiver. TCP's own checksum of
///           16 bits misses words that changed places, and does not cover the memory of a switch or a network
///           card.
/// Facts:    those of `Inner`, but host memory only; `verifies`. A repeated message is dropped.
/// Order:    the outermost decorator: `checked<chaos<tcp>>`.
/// Memory:   12 bytes of envelope a message; some 5 KiB a peer, and 56 bytes a post.
/// Threads:  as `Inner`.
/// Cost:     a pass over the payload at the post and one at its arrival, both in cache; no allocation after
///           construction beside those of `Inner`. A send that `Inner` refuses is kept, with its checksum,
///           and posted at a later poll.
/// Errors:   those of `Inner`. The sender of a changed message is `lost` with `errc::corrupted`, and the
///           message's size and tag; no later message of that sender is reported.
template <class Inner> class checked {
    using numbers = detail::checked_envelope;

  public:
    using axis = axes::transport;
    using needs = typename detail::needs_and<Inner, detail::checked_needs<Inner>>::type;
    static constexpr char const* name = detail::composed_name<detail::checked_word, Inner>.data();
    static constexpr transport_facts facts = [] {
        transport_facts changed = Inner::facts;
        changed.device_memory = false;
        changed.envelope_bytes = 0;
        changed.verifies = true;
        return changed;
    }();

    /// Further arguments are those of `Inner`.
    template <class... Arguments>
    checked(world& ranks, transport_needs const& wanted, Arguments&&... arguments)
        : inner_(ranks, with_envelopes(wanted), std::forward<Arguments>(arguments)...), rank_(ranks.rank()),
          largest_(wanted.largest_message), peers_(wanted.peers.size()),
          receives_(wanted.peers.size() * wanted.receives_per_peer) {
        for (std::size_t i = 0; i < peers_.size(); ++i) {
            peers_[i].rank = wanted.peers[i];
            peers_[i].received = detail::received_counters(wanted.receives_per_peer);
            peers_[i].waiting = detail::waiting_ring<detail::waiting_send>(wanted.sends_per_peer);
        }
    }
    checked(checked const&) = delete;
    checked& operator=(checked const&) = delete;

    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        peer_state& peer = of(to);
        if (peer.is_lost || from.size() > facts.max_message || peer.waiting.full()) return false;
        detail::checked_message const what{tag, peer.sent++, rank_, peer.rank};
        detail::waiting_send const one{tag, from, token, numbers::of(what, from)};
        ++counts_.sent;
        if (peer.waiting.empty() && pass_on(to, one)) return true;
        if (from.size() > largest_) { // more than was announced: Inner may refuse it every time
            --peer.sent;
            --counts_.sent;
            return false;
        }
        peer.waiting.push(one);
        ++waiting_;
        return true;
    }

    bool post_receive(peer_id from, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        return !of(from).is_corrupted && receives_.post(inner_, from, tag, into, token);
    }

    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        std::size_t count = 0;
        inner_.poll([&](completion const& done) noexcept { count += take(done, on_completion); });
        if (waiting_ > 0) [[unlikely]]
            post_waiting();
        if (receives_.any_waiting()) [[unlikely]]
            receives_.post_again(inner_, [this](peer_id peer) noexcept { return of(peer).is_lost; });
        return count;
    }

    void wait(time_point until) noexcept {
        // Posts that Inner did not take are tried again by poll.
        if (waiting_ > 0 || receives_.any_waiting())
            until = std::min(until, clock::now() + std::chrono::milliseconds(1));
        inner_.wait(until);
    }

    void wake() noexcept { inner_.wake(); }

    bool has_exception() const noexcept requires(facts.runs_handlers) { return inner_.has_exception(); }
    auto take_exception() noexcept requires(facts.runs_handlers) { return inner_.take_exception(); }
    bool runs_handlers() const noexcept requires(facts.runs_handlers) { return inner_.runs_handlers(); }

    void abandon() noexcept requires(facts.abandons) { inner_.abandon(); }

    void register_memory(std::span<std::byte> memory) { inner_.register_memory(memory); }

    char const* describe(peer_id peer) const noexcept {
        char const* const mine = peers_[peer.place()].reason;
        return mine[0] != 0 ? mine : inner_.describe(peer);
    }

    checked_counts const& counts() const noexcept { return counts_; }
    Inner& inner() noexcept { return inner_; }

  private:
    struct peer_state {
        int rank = -1;
        bool is_lost = false;
        bool is_corrupted = false;
        std::uint64_t sent = 0;
        detail::received_counters received;
        detail::waiting_ring<detail::waiting_send> waiting;
        char reason[400] = "";
    };

    static transport_needs with_envelopes(transport_needs wanted) noexcept {
        wanted.envelope_bytes = numbers::bytes;
        return wanted;
    }
    peer_state& of(peer_id peer) noexcept { return peers_[peer.place()]; }

    bool pass_on(peer_id to, detail::waiting_send const& one) noexcept {
        return inner_.post_send(to, one.tag, one.envelope, one.from, one.token);
    }

    /// Handles a completion of Inner. Returns the number of completions reported.
    template <class OnCompletion>
    std::size_t take(completion const& done, OnCompletion& on_completion) noexcept {
        peer_state& peer = of(done.peer);
        if (done.what == completion::received) return take_message(peer, done, on_completion);
        if (peer.is_lost) return 0;
        if (done.what == completion::lost) {
            peer.is_lost = true;
            waiting_ -= peer.waiting.clear();
        }
        on_completion(done);
        return 1;
    }

    template <class OnCompletion>
    std::size_t take_message(peer_state& peer, completion const& done, OnCompletion& on_completion) noexcept {
        auto const at = static_cast<std::size_t>(done.token);
        detail::posted_receives::entry const posted = receives_[at];
        if (peer.is_corrupted) return receives_.release(at), 0;
        completion reported = done;
        reported.token = posted.token;
        reported.envelope = {};
        // A message larger than its receive was cut and is not checked: the engine sees its size.
        if (done.bytes <= posted.into.size()) {
            numbers const envelope(done.envelope);
            bool const same =
                envelope.is_of({done.tag, envelope.counter, peer.rank, rank_}, posted.into.first(done.bytes));
            detail::counter_is const number =
                same ? peer.received.take(envelope.counter) : detail::counter_is::beyond;
            if (number == detail::counter_is::repeated) {
                ++counts_.repeated;
                receives_.repost(inner_, at); // the repeated message used up the receive of another one
                return 0;
            }
            if (number == detail::counter_is::beyond) {
                receives_.release(at);
                give_up(peer, done, same);
                on_completion(completion{.peer = done.peer,
                                         .what = completion::lost,
                                         .why = same ? errc::protocol : errc::corrupted});
                return 1;
            }
        }
        ++counts_.received;
        receives_.release(at);
        on_completion(std::as_const(reported));
        return 1;
    }

    HERRING_SETUP void give_up(peer_state& peer, completion const& done, bool whole) noexcept {
        peer.is_lost = peer.is_corrupted = true;
        waiting_ -= peer.waiting.clear();
        ++counts_.corrupted;
        if (whole)
            std::snprintf(peer.reason, sizeof peer.reason,
                          "messages from rank %d to rank %d are missing, while later ones came: something "
                          "between the two loses messages",
                          peer.rank, rank_);
        else
            std::snprintf(
                peer.reason, sizeof peer.reason,
                "a message of %zu bytes (tag %016llx) came to rank %d otherwise than rank %d sent it, and is "
                "in no "
                "result: memory, a network card or a switch between the two changes data; look at the memory "
                "errors of both hosts (edac-util, dmesg) and at the errors of the links (ethtool -S)",
                done.bytes, static_cast<unsigned long long>(done.tag), rank_, peer.rank);
    }

    HERRING_SETUP void post_waiting() noexcept {
        for (std::size_t i = 0; i < peers_.size(); ++i)
            while (!peers_[i].waiting.empty() && pass_on(peer_id::at(i), peers_[i].waiting.front())) {
                peers_[i].waiting.pop();
                --waiting_;
            }
    }

    Inner inner_;
    int rank_;
    std::size_t largest_; // announced bytes of a message
    detail::fixed_array<peer_state> peers_;
    detail::posted_receives receives_;
    std::size_t waiting_ = 0; // sends to all peers that Inner has not taken
    checked_counts counts_;
};

} // namespace HERRING_NAMESPACE::transport

#endif // HERRING_TRANSPORT_CHECKED_HPP

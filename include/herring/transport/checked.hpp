// herring: decorates a transport with a checksum of every message, so that what was changed on its way is no result.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_CHECKED_HPP
#define HERRING_TRANSPORT_CHECKED_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/policy/names.hpp"
#include "herring/transport/checked/envelope.hpp"
#include "herring/transport/checked/needs.hpp"
#include "herring/transport/checked/waiting_sends.hpp"
#include "herring/transport/decorated.hpp"
#include "herring/transport/decorated/posted_receives.hpp"
#include "herring/transport/received_counters.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::transport {

/// How often `checked` has acted, on this rank.
struct checked_counts {
    std::uint64_t sent = 0;      ///< messages with a checksum
    std::uint64_t received = 0;  ///< messages that are as they were sent
    std::uint64_t repeated = 0;  ///< messages that came once more, and were dropped
    std::uint64_t corrupted = 0; ///< messages that are not what was sent
};

/// Decorates another transport: each message has an envelope with its CRC-32C and its number, which are looked at before it
/// is reported.
///
/// Checks:   payload, tag with its carried bits, length, number, sender and receiver. TCP's own checksum of 16 bits misses
///           words that changed places; memory of a switch or a network card is not covered by it.
/// Facts:    of `Inner`, of host memory only; `verifies`. A message that comes twice is dropped.
/// Order:    it is the outermost: `checked<chaos<tcp>>`.
/// Memory:   12 bytes of each message's envelope; a peer some 5 KiB, and 56 bytes a post.
/// Threads:  as `Inner`.
/// Cost:     a pass over the payload at the post and one at its arrival, both in cache; no allocation after construction that
///           `Inner` does not make. A post that `Inner` refuses is kept, with its checksum, and made at a later poll.
/// Errors:   of `Inner`. A message that was changed: its sender is `lost`, `errc::corrupted`, with the message's size and tag;
///           nothing more of that sender is reported.
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
            peers_[i].waiting = detail::waiting_sends(wanted.sends_per_peer);
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
        if (from.size() > largest_) { // than was announced: Inner may refuse it every time
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
        // What Inner did not take is tried again by poll.
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
        detail::waiting_sends waiting;
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

    /// Takes a completion of Inner. Returns how many it reported.
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
        detail::posted_receives::one const posted = receives_[at];
        if (peer.is_corrupted) return receives_.release(at), 0;
        completion told = done;
        told.token = posted.token;
        told.envelope = {};
        // One that is larger than its receive was cut: the engine sees its size.
        if (done.bytes <= posted.into.size()) {
            numbers const envelope(done.envelope);
            bool const same =
                envelope.is_of({done.tag, envelope.counter, peer.rank, rank_}, posted.into.first(done.bytes));
            detail::counter_is const number =
                same ? peer.received.take(envelope.counter) : detail::counter_is::beyond;
            if (number == detail::counter_is::repeated) {
                ++counts_.repeated;
                receives_.repost(inner_, at); // it has taken the receive of another message
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
        on_completion(std::as_const(told));
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
    std::size_t largest_; // message that was announced
    detail::fixed_array<peer_state> peers_;
    detail::posted_receives receives_;
    std::size_t waiting_ = 0; // sends, of all peers
    checked_counts counts_;
};

} // namespace HERRING_NAMESPACE::transport

#endif // HERRING_TRANSPORT_CHECKED_HPP

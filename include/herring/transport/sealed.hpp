// herring: decorates a transport with authenticated encryption of every message: AES-256-GCM of libcrypto.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_SEALED_HPP
#define HERRING_TRANSPORT_SEALED_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/policy/names.hpp"
#include "herring/transport/decorated.hpp"
#include "herring/transport/sealed/channel.hpp"
#include "herring/transport/sealed/ciphertexts.hpp"
#include "herring/transport/sealed/keys.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

struct sealed_word {
    static constexpr char const* word = "sealed";
};

/// Demands on the inner transport, as a need of the transport: a pack reports it once.
template <class Inner> struct sealed_needs {
    template <class Pack> struct check {
        static constexpr bool first = !Inner::facts.verifies;
        static constexpr bool carried = Inner::facts.envelope_bytes >= sealed_envelope::bytes;
        static constexpr bool value = first && carried;
        static_assert(first,
                      "[HRG-T25] transport: sealed stands around a transport that verifies messages already "
                      "(its facts.verifies is true); a common slip is sealed<checked<tcp>>; a seal sees all "
                      "that a checksum sees: write sealed<tcp>");
        static_assert(!first || carried,
                      "[HRG-T26] transport: sealed needs a transport that carries an envelope of 24 bytes "
                      "(facts.envelope_bytes); a common slip is sealed around a transport of one's own; "
                      "give that a post_send with an envelope, or name sealed<tcp>");
    };
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::transport {

/// Numbers of messages that `sealed` has handled on this rank.
struct sealed_counts {
    std::uint64_t sealed = 0;   ///< messages
    std::uint64_t opened = 0;   ///< messages that came as they were sealed
    std::uint64_t repeated = 0; ///< messages that came again, and were dropped
    std::uint64_t refused = 0;  ///< messages that differ from what was sealed; the sender of each is lost
};

/// For tests, as the argument after the layout: a key seals 2^bits messages in place of the safe maximum, but
/// no fewer than can be in flight.
struct sealed_generations {
    int bits = 0;
};

/// Decorates another transport: messages are sealed by AES-256-GCM when they are posted, and opened before
/// they are reported. An eavesdropper learns sizes, tags and numbers of messages. A changed, forged, repeated
/// or swapped message ends the reduction in an error, or is dropped. Needs libcrypto (CMake:
/// `herring::sealed`).
///
/// Keys:     one for each pair of ranks, direction and transport: by HKDF from the world's key
///           (`world::derive_key`) and 32 random bytes of both ends, drawn for this transport. After at most
///           2^32 blocks the next key is derived from the last by a one-way function; a receiver holds two
///           keys. Every rank of the world could derive the keys of every pair.
/// Seal:     covers payload, tag with its carried bits, length, number, sender and receiver. No number is
///           used twice: a send that `Inner` refuses is kept as it was sealed, and posted at a later poll.
/// Facts:    those of `Inner`, but host memory only; messages of at most 64 MiB; `verifies`. A repeated
///           message is dropped.
/// Order:    the outermost decorator: `sealed<chaos<tcp>>`. It detects all that `checked` detects, and
///           excludes it.
/// Memory:   peers · sends_per_peer · largest_message, in lines of 64 bytes, for sends in flight, because the
///           engine's memory must not change; for a reducer sends_per_peer = 2 · window / chunk + 12 and
///           largest_message = the chunk in the type in which it is summed (`docs/design/plan.md`: memory).
///           Beside that some 9 KiB a peer, and 152 bytes a post.
/// Threads:  as `Inner`.
/// Cost:     sealing at the post, and opening in place at the arrival: each at the rate of AES-GCM of one
///           core, and 0.5 us a message; no allocation after construction beside those of `Inner`. libcrypto
///           calls its ciphers through pointers.
/// Errors:   those of `Inner`; construction: `bad_state` where the world has no secret, `no_resources`,
///           `unsupported`. The sender of a message that does not open is `lost` with `errc::corrupted`; no
///           later message of that sender is reported.
template <class Inner> class sealed {
  public:
    using axis = axes::transport;
    using needs = typename detail::needs_and<Inner, detail::sealed_needs<Inner>>::type;
    static constexpr char const* name = detail::composed_name<detail::sealed_word, Inner>.data();
    static constexpr transport_facts facts = [] {
        transport_facts changed = Inner::facts;
        changed.max_message = std::min<std::size_t>(changed.max_message, 64_MiB);
        changed.device_memory = false;
        changed.envelope_bytes = 0;
        changed.verifies = true;
        return changed;
    }();

    /// Further arguments are those of `Inner`.
    template <class... Arguments>
    requires std::constructible_from<Inner, world&, transport_needs const&, Arguments...>
    sealed(world& ranks, transport_needs const& wanted, Arguments&&... arguments)
        : sealed(ranks, wanted, sealed_generations{}, std::forward<Arguments>(arguments)...) {}
    template <class... Arguments>
    sealed(world& ranks, transport_needs const& wanted, sealed_generations generations,
           Arguments&&... arguments)
        : sealed(detail::sealed_set_up(ranks, wanted), ranks, wanted, generations,
                 std::forward<Arguments>(arguments)...) {}
    sealed(sealed const&) = delete;
    sealed& operator=(sealed const&) = delete;

    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        peer_state& peer = of(to);
        if (peer.is_lost || from.size() > largest_ || peer.under_way == sends_) return false;
        std::size_t const place = ciphertexts_.take();
        detail::sealed_send& one = ciphertexts_[place];
        one.tag = tag;
        one.token = token;
        one.length = from.size();
        if (!peer.seals.seal(tag, from, ciphertexts_.at(place), one.envelope.data())) [[unlikely]] {
            ciphertexts_.give_back(place);
            give_up(peer, errc::internal);
            return false;
        }
        ++counts_.sealed;
        ++peer.under_way;
        if (peer.waiting.empty() && pass_on(to, place)) return true;
        peer.waiting.push(place);
        ++waiting_;
        return true;
    }

    bool post_receive(peer_id from, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        return !of(from).is_closed && receives_.post(inner_, from, tag, into, token);
    }

    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        std::size_t count = 0;
        inner_.poll([&](completion const& done) noexcept { count += take(done, on_completion); });
        if (waiting_ > 0) [[unlikely]]
            post_waiting();
        if (receives_.any_waiting()) [[unlikely]]
            receives_.post_again(inner_, [this](peer_id peer) noexcept { return of(peer).is_lost; });
        if (failed_ > 0) [[unlikely]]
            count += report_failed(on_completion);
        return count;
    }

    void wait(time_point until) noexcept {
        if (failed_ > 0) return;
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

    sealed_counts const& counts() const noexcept { return counts_; }
    /// Binary logarithm of the number of messages that one key seals.
    int generation_bits() const noexcept { return generation_bits_; }
    Inner& inner() noexcept { return inner_; }

  private:
    struct peer_state {
        int rank = -1;
        bool is_lost = false;
        bool is_closed = false; // by this side: its messages are dropped
        bool is_reported = false;
        std::size_t under_way = 0; // places of ciphertexts in use
        detail::sealer seals;
        detail::opener opens;
        detail::waiting_ring<std::size_t> waiting;
        errc why = errc::ok;
        char reason[400] = "";
    };

    template <class... Arguments>
    HERRING_SETUP sealed(detail::sealed_set_up const& keys, world& ranks, transport_needs const& wanted,
                         sealed_generations generations, Arguments&&... arguments)
        : rank_(ranks.rank()), sends_(wanted.sends_per_peer), largest_(wanted.largest_message),
          ciphertexts_(wanted.peers.size() * wanted.sends_per_peer, wanted.largest_message, ranks.rank()),
          inner_(ranks, with_envelopes(wanted), std::forward<Arguments>(arguments)...),
          peers_(wanted.peers.size()), receives_(wanted.peers.size() * wanted.receives_per_peer) {
        std::size_t const window = detail::received_counters::window_for(wanted.receives_per_peer);
        generation_bits_ = detail::sealed_generation_bits(largest_, window);
        if (generations.bits > 0)
            generation_bits_ =
                std::min(generation_bits_, std::max(generations.bits, detail::least_generation_bits(window)));
        for (std::size_t i = 0; i < peers_.size(); ++i) {
            peer_state& peer = peers_[i];
            peer.rank = wanted.peers[i];
            peer.seals =
                detail::sealer({rank_, peer.rank, generation_bits_}, keys.key(rank_, peer.rank), rank_);
            peer.opens = detail::opener({peer.rank, rank_, generation_bits_}, keys.key(peer.rank, rank_),
                                        wanted.receives_per_peer, rank_);
            peer.waiting = detail::waiting_ring<std::size_t>(wanted.sends_per_peer);
        }
        if constexpr (facts.registers_memory)
            if (!ciphertexts_.memory().empty()) inner_.register_memory(ciphertexts_.memory());
    }

    static transport_needs with_envelopes(transport_needs wanted) noexcept {
        wanted.envelope_bytes = detail::sealed_envelope::bytes;
        return wanted;
    }
    peer_state& of(peer_id peer) noexcept { return peers_[peer.place()]; }

    bool pass_on(peer_id to, std::size_t place) noexcept {
        detail::sealed_send const& one = ciphertexts_[place];
        return inner_.post_send(to, one.tag, one.envelope, {ciphertexts_.at(place), one.length}, place);
    }

    /// Handles a completion of Inner. Returns the number of completions reported.
    template <class OnCompletion>
    std::size_t take(completion const& done, OnCompletion& on_completion) noexcept {
        peer_state& peer = of(done.peer);
        if (done.what == completion::received) return take_message(peer, done, on_completion);
        if (done.what == completion::lost) {
            if (std::exchange(peer.is_lost, true)) return 0;
            waiting_ -= peer.waiting.clear();
            on_completion(done);
            return 1;
        }
        auto const place = static_cast<std::size_t>(done.token);
        completion reported = done;
        reported.token = ciphertexts_[place].token;
        ciphertexts_.give_back(place);
        --peer.under_way;
        if (peer.is_lost) return 0;
        on_completion(std::as_const(reported));
        return 1;
    }

    template <class OnCompletion>
    std::size_t take_message(peer_state& peer, completion const& done, OnCompletion& on_completion) noexcept {
        auto const at = static_cast<std::size_t>(done.token);
        detail::posted_receives::entry const posted = receives_[at];
        if (peer.is_closed) return receives_.release(at), 0;
        detail::opened result = detail::opened::changed;
        if (done.bytes <= posted.into.size())
            result = peer.opens.open(done.tag, done.envelope, posted.into.first(done.bytes));
        else if (peer.opens.seen(done.envelope)) // repeated, into the receive of a smaller message
            result = detail::opened::repeated;
        if (result == detail::opened::fresh) [[likely]] {
            ++counts_.opened;
            receives_.release(at);
            completion reported = done;
            reported.token = posted.token;
            reported.envelope = {};
            on_completion(std::as_const(reported));
            return 1;
        }
        if (result == detail::opened::repeated) {
            ++counts_.repeated;
            receives_.repost(inner_, at); // the repeated message used up the receive of another one
            return 0;
        }
        receives_.release(at);
        refuse(peer, done, posted, result);
        return report_failed(on_completion);
    }

    HERRING_SETUP void refuse(peer_state& peer, completion const& done,
                              detail::posted_receives::entry const& posted, detail::opened how) noexcept {
        ++counts_.refused;
        bool const missing = how == detail::opened::missing, cut = done.bytes > posted.into.size();
        give_up(peer, missing || cut ? errc::protocol : errc::corrupted);
        if (missing)
            std::snprintf(peer.reason, sizeof peer.reason,
                          "messages from rank %d to rank %d are missing, while later ones came: something or "
                          "somebody between the two takes messages away",
                          peer.rank, rank_);
        else if (cut)
            std::snprintf(
                peer.reason, sizeof peer.reason,
                "a message of %zu bytes came for a receive of %zu, so that it cannot be opened: rank %d "
                "runs another program than rank %d, or somebody else sent it",
                done.bytes, posted.into.size(), peer.rank, rank_);
        else
            std::snprintf(peer.reason, sizeof peer.reason,
                          "a message of %zu bytes (tag %016llx) does not open at rank %d: it is not what "
                          "rank %d sealed, and "
                          "is in no result; somebody on the network between the two changes or forges "
                          "messages, or memory, a "
                          "network card or a switch changes data: see who can reach that network, the memory "
                          "errors of both "
                          "hosts (edac-util, dmesg) and the errors of the links (ethtool -S)",
                          done.bytes, static_cast<unsigned long long>(done.tag), rank_, peer.rank);
    }

    /// Gives a peer up. It is reported as lost by this poll or the next.
    HERRING_SETUP void give_up(peer_state& peer, errc why) noexcept {
        peer.is_closed = true;
        waiting_ -= peer.waiting.clear();
        if (std::exchange(peer.is_lost, true)) return; // its loss was reported
        peer.why = why;
        ++failed_;
        std::snprintf(peer.reason, sizeof peer.reason, "libcrypto failed to seal a message for rank %d",
                      peer.rank);
    }
    template <class OnCompletion>
    HERRING_SETUP std::size_t report_failed(OnCompletion& on_completion) noexcept {
        std::size_t count = 0;
        for (std::size_t i = 0; i < peers_.size() && failed_ > 0; ++i) {
            peer_state& peer = peers_[i];
            if (peer.why == errc::ok || std::exchange(peer.is_reported, true)) continue;
            --failed_;
            ++count;
            on_completion(completion{.peer = peer_id::at(i), .what = completion::lost, .why = peer.why});
        }
        return count;
    }

    HERRING_SETUP void post_waiting() noexcept {
        for (std::size_t i = 0; i < peers_.size(); ++i)
            while (!peers_[i].waiting.empty() && pass_on(peer_id::at(i), peers_[i].waiting.front())) {
                peers_[i].waiting.pop();
                --waiting_;
            }
    }

    int rank_;
    std::size_t sends_; // in flight to a peer, at most
    std::size_t largest_;
    int generation_bits_ = 0;
    detail::ciphertexts ciphertexts_; // outlives inner_, which reads it
    Inner inner_;
    detail::fixed_array<peer_state> peers_;
    detail::posted_receives receives_;
    std::size_t waiting_ = 0; // sends to all peers that Inner has not taken
    std::size_t failed_ = 0;  // peers that are given up and not reported yet
    sealed_counts counts_;
};

} // namespace HERRING_NAMESPACE::transport

#endif // HERRING_TRANSPORT_SEALED_HPP

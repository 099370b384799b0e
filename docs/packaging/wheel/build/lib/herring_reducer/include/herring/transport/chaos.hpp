// herring: decorates a transport with delays, reordering, refusals and faults from a seed; for tests.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_CHAOS_HPP
#define HERRING_TRANSPORT_CHAOS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/transport/chaos/schedule.hpp"
#include "herring/transport/chaos/tuning.hpp"
#include "herring/transport/decorated.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::transport {

/// Decorates another transport, for tests of engines and of transports.
///
/// Late:     sends are posted, and completions reported, some polls later and in any order; a post may return
///           false. The concept allows all that, so a program must have the same results over `chaos<Inner>`
///           as over `Inner`.
/// Destroys: on request: flips a bit of a received message or of its envelope; silences a rank; cuts a link.
///           A flipped bit ends in a wrong result without an error: Herring checks headers (`tcp`), sizes and
///           fingerprints, not elements.
/// Repeats:  on request: sends a message again, from a copy, some polls later. The layer above has to drop
///           it, as `checked` does; it may use up a receive that was posted for a later message with its tag.
///           A repeated message without a receive stays in the buffer of early messages.
/// Seed:     the constructor's argument, else `Tuning.seed`, else HERRING_CHAOS_SEED, else rank 0 draws one
///           for all. All that happens is a function of the seed, the rank and the sequence of its posts,
///           polls and completions; no clock is read. So one thread that drives all ranks over `inproc`
///           repeats a run exactly; independent ranks have the same schedule, but meet it in another order.
///           `seed()` returns the seed; `trace()` returns a hash of all actions.
/// Facts:    those of `Inner`, envelopes included; keeps no order.
/// Threads:  as `Inner`.
/// Cost:     O(1) a post and a completion, and a pass over all late posts and completions at every poll; no
///           allocation after construction beside those of `Inner`. `wait` sleeps only while nothing is late.
/// Errors:   those of `Inner`; `bad_argument` when HERRING_CHAOS_SEED is not a number.
template <transport_policy Inner, chaos_tuning Tuning = chaos_tuning{}> class chaos {
  public:
    using axis = axes::transport;
    using needs = typename detail::needs_and<Inner, detail::chaos_numbers<Inner, Tuning>>::type;
    static constexpr char const* name = detail::composed_name<detail::chaos_word, Inner>.data();
    static constexpr transport_facts facts = [] {
        transport_facts changed = Inner::facts;
        changed.keeps_order = false;
        changed.device_memory = changed.device_memory && Tuning.flip_per_1000 == 0; // the host flips the bit
        changed.abandons = true;
        return changed;
    }();

    /// Further arguments are those of `Inner`.
    template <class... Arguments>
    requires std::constructible_from<Inner, world&, transport_needs const&, Arguments...>
    explicit chaos(world& ranks, transport_needs const& wanted, Arguments&&... arguments)
        : chaos(ranks, wanted, chaos_seed{}, std::forward<Arguments>(arguments)...) {}
    template <class... Arguments>
    chaos(world& ranks, transport_needs const& wanted, chaos_seed seed, Arguments&&... arguments)
        : copies_(wanted.peers.empty() ? 0 : most_copies * wanted.largest_message),
          inner_(ranks, with_copies(wanted), std::forward<Arguments>(arguments)...),
          largest_(wanted.largest_message) {
        if (wanted.peers.empty()) return;
        prepare(ranks, wanted, seed.value);
    }
    chaos(chaos const&) = delete;
    chaos& operator=(chaos const&) = delete;

    bool post_send(peer_id peer, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        return send({peer, tag, from, token});
    }
    bool post_send(peer_id peer, std::uint64_t tag, std::span<std::byte const> envelope,
                   std::span<std::byte const> from, std::uint64_t token) noexcept
        requires(facts.envelope_bytes > 0) {
        return envelope.size() <= facts.envelope_bytes &&
               send({peer, tag, from, token, 0, detail::kept_envelope(envelope)});
    }

    bool post_receive(peer_id peer, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        peer_link& from = of(peer);
        ++counts_.posts;
        if (stopped_) return true;
        if (from.is_cut || receives_.full() || refuses()) return note(did::refuse, peer, tag);
        if (!receives_.post(inner_, peer, tag, into, token)) return note(did::pass_refusal, peer, tag);
        note(did::receive, peer, tag);
        return true;
    }

    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        begin_poll();
        inner_.poll([this](completion const& done) noexcept { take(done); });
        return stopped_ ? 0 : report(on_completion);
    }
    template <class OnCompletion>
    std::size_t poll_from(peer_id peer, OnCompletion&& on_completion) noexcept
        requires(clauses::transport::polls_from<Inner>) {
        begin_poll();
        inner_.poll_from(peer, [this](completion const& done) noexcept { take(done); });
        return stopped_ ? 0 : report(on_completion);
    }

    /// Returns at once while anything is late or was refused: that becomes due after some polls, not at a
    /// time.
    void wait(time_point until) noexcept {
        if (!stopped_ && (refused_ || held_.size() > 0 || sets_out_later())) {
            ::sched_yield();
            return;
        }
        // Sends that Inner did not take are tried again by poll.
        if (!stopped_ && late_.size() > 0)
            until = std::min(until, clock::now() + std::chrono::milliseconds(1));
        inner_.wait(until);
    }

    void wake() noexcept { inner_.wake(); }

    bool has_exception() const noexcept requires(facts.runs_handlers) { return inner_.has_exception(); }
    auto take_exception() noexcept requires(facts.runs_handlers) { return inner_.take_exception(); }
    bool runs_handlers() const noexcept requires(facts.runs_handlers) { return inner_.runs_handlers(); }

    /// Withdraws all posts, also late ones.
    void abandon() noexcept {
        late_.clear();
        held_.clear();
        if constexpr (Inner::facts.abandons) inner_.abandon();
    }

    void register_memory(std::span<std::byte> memory) { inner_.register_memory(memory); }
    void register_device_memory(std::span<std::byte> memory, int device) requires(facts.device_memory) {
        inner_.register_device_memory(memory, device);
    }

    /// Returns the reason why a peer was lost, with the seed.
    char const* describe(peer_id peer) const noexcept {
        char const* const mine = links_[peer.place()].reason;
        return mine[0] != 0 ? mine : inner_.describe(peer);
    }

    /// Returns the seed that repeats the schedule, the same on every rank; 0 without peers.
    std::uint64_t seed() const noexcept { return seed_; }
    /// Returns a hash of all actions on this rank so far.
    std::uint64_t trace() const noexcept { return trace_; }
    chaos_counts const& counts() const noexcept { return counts_; }
    Inner& inner() noexcept { return inner_; }

  private:
    enum class did : std::uint64_t {
        refuse,
        pass_refusal,
        send,
        delay,
        receive,
        set_out,
        duplicate,
        hold,
        report,
        flip,
        stop,
        cut
    };

    struct peer_link {
        peer_id peer{};
        std::uint64_t sends = 0;
        std::uint64_t cut_at = detail::chaos_schedule::never; // number of sends
        std::size_t held = 0;                                 // completions that are not reported yet
        bool is_cut = false;
        bool is_lost = false; // by Inner
        char reason[240] = "";
    };
    struct late_send {
        peer_id peer{};
        std::uint64_t tag = 0;
        std::span<std::byte const> from{};
        std::uint64_t token = 0;
        std::uint64_t due = 0; // number of polls
        detail::kept_envelope envelope{};
        bool is_copy = false;
    };
    struct held_completion {
        completion what{};
        std::uint64_t due = 0;
        detail::kept_envelope envelope{};
    };
    static constexpr bool repeats = Tuning.duplicate_per_1000 > 0;
    static constexpr std::size_t most_copies = repeats ? 8 : 0;

    void begin_poll() noexcept {
        ++polls_;
        refused_ = false;
        destroy();
        if (!stopped_) set_out();
    }

    HERRING_SETUP void prepare(world& ranks, transport_needs const& wanted, std::uint64_t asked) {
        detail::chaos_schedule const plan(ranks, Tuning, asked, wanted.timeout);
        seed_ = plan.seed;
        stop_at_ = plan.stops;
        random_ = detail::draws(detail::draws::mixed(seed_) + static_cast<std::uint64_t>(ranks.rank()));

        links_ = detail::fixed_array<peer_link>(wanted.peers.size());
        for (std::size_t i = 0; i < links_.size(); ++i) {
            links_[i].peer = peer_id::at(i);
            links_[i].cut_at = plan.cuts(ranks.rank(), wanted.peers[i]);
        }
        std::size_t const receives = links_.size() * wanted.receives_per_peer;
        std::size_t const sends = links_.size() * wanted.sends_per_peer;
        receives_ = detail::posted_receives(receives);
        late_ = detail::shuffle_buffer<late_send>(sends + most_copies);
        held_ = detail::shuffle_buffer<held_completion>(receives + sends + links_.size());
        due_ = detail::shuffle_buffer<held_completion>(receives + sends + links_.size());
        if constexpr (repeats) {
            inner_.register_memory({copies_.data(), copies_.size()});
            sends_ = detail::fixed_array<late_send>(sends);
            places_ = detail::fixed_array<std::size_t>(sends);
            for (; free_places_ < sends; ++free_places_) places_[free_places_] = free_places_;
        }
    }

    peer_link& of(peer_id peer) noexcept { return links_[peer.place()]; }

    std::uint64_t later() noexcept { return polls_ + 1 + random_(Tuning.longest); }
    bool refuses() noexcept {
        if (!random_.chance(Tuning.not_now_per_1000)) return false;
        ++counts_.refused;
        return refused_ = true;
    }
    /// Adds an action to the hash. Returns false, as the result of a refused post.
    bool note(did what, peer_id peer, std::uint64_t more) noexcept {
        trace_ = detail::draws::mixed(trace_ ^ (static_cast<std::uint64_t>(what) << 56) ^
                                      (static_cast<std::uint64_t>(peer.value) << 32) ^ polls_) +
                 more;
        return false;
    }

    bool sets_out_later() noexcept {
        for (std::size_t i = 0; i < late_.size(); ++i)
            if (late_[i].due > polls_) return true;
        return false;
    }

    bool send(late_send one) noexcept {
        peer_link& to = of(one.peer);
        ++counts_.posts;
        if (stopped_) return true; // as a network takes messages that will never be read
        if (to.is_cut || one.from.size() > facts.max_message || refuses())
            return note(did::refuse, one.peer, one.tag);
        // Inner judges a message that is larger than announced, or to a lost peer.
        bool const lags = !Tuning.reorder && late_.size() > 0;
        bool const may = one.from.size() <= largest_ && !late_.full() && !to.is_lost;
        if (may && (random_.chance(Tuning.delay_per_1000) || lags)) {
            one.due = later();
            late_.push(one);
            ++counts_.delayed;
            note(did::delay, one.peer, one.tag);
        } else if (pass_on(one)) {
            note(did::send, one.peer, one.tag);
        } else {
            return note(did::pass_refusal, one.peer, one.tag);
        }
        ++to.sends;
        ++sent_;
        return true;
    }
    bool pass_on(late_send const& one) noexcept {
        if constexpr (repeats) {
            // The token is a place, so that no token of the program equals that of a copy.
            if (one.is_copy) return post(one, one.token);
            if (free_places_ == 0) return false;
            std::size_t const at = places_[free_places_ - 1];
            sends_[at] = one;
            if (!post(one, most_copies + at)) return false;
            --free_places_;
            return true;
        }
        return post(one, one.token);
    }
    bool post(late_send const& one, std::uint64_t token) noexcept {
        if constexpr (facts.envelope_bytes > 0)
            if (one.envelope.size > 0)
                return inner_.post_send(one.peer, one.tag, one.envelope.view(), one.from, token);
        return inner_.post_send(one.peer, one.tag, one.from, token);
    }
    /// Repeats a message that Inner has sent, by chance, from a copy: its memory is the program's again after
    /// this.
    void repeat(late_send one) noexcept {
        peer_link const& to = of(one.peer);
        if (stopped_ || to.is_cut || to.is_lost || one.from.size() > largest_ || late_.full()) return;
        if (!random_.chance(Tuning.duplicate_per_1000)) return;
        std::size_t const at = static_cast<std::size_t>(std::countr_one(copies_taken_));
        if (at >= most_copies) return;
        copies_taken_ |= 1u << at;
        std::byte* const copy = copies_.data() + at * largest_;
        if (!one.from.empty()) std::memcpy(copy, one.from.data(), one.from.size());
        one.from = {copy, one.from.size()};
        one.token = at;
        one.is_copy = true;
        one.due = later();
        late_.push(one);
        ++counts_.duplicated;
        note(did::duplicate, one.peer, one.tag);
    }
    /// True if the send was the program's, whose token is restored; false if it was of a copy.
    bool take_sent(completion& done) noexcept {
        auto const at = done.token;
        if (at < most_copies) return copies_taken_ &= ~(1u << at), false;
        late_send const& one = sends_[at - most_copies];
        done.token = one.token;
        places_[free_places_++] = at - most_copies;
        repeat(one);
        return true;
    }
    void drop_late(peer_id peer) noexcept {
        late_.keep_if([&](late_send const& one) noexcept {
            if (one.peer != peer) return true;
            if (one.is_copy) copies_taken_ &= ~(1u << one.token);
            return false;
        });
    }
    static transport_needs with_copies(transport_needs wanted) noexcept {
        wanted.sends_per_peer += most_copies;
        return wanted;
    }

    /// Posts the sends that are due.
    void set_out() noexcept {
        if (Tuning.reorder) late_.shuffle(random_);
        bool more = true; // without reorder: up to the first send that stays
        late_.keep_if([&](late_send const& one) noexcept {
            bool const goes = more && one.due <= polls_ && pass_on(one);
            more = more && (goes || Tuning.reorder);
            if (goes) note(did::set_out, one.peer, one.tag);
            return !goes;
        });
    }

    /// Holds a completion of Inner until it is reported.
    void take(completion done) noexcept {
        peer_link& with = of(done.peer);
        detail::kept_envelope envelope(done.envelope);
        if (done.what == completion::received) {
            auto const at = done.token;
            done.token = receives_[at].token;
            if (!stopped_ && !with.is_cut) flip(done, receives_[at].into, envelope);
            receives_.release(at);
        }
        if constexpr (repeats)
            if (done.what == completion::sent && !take_sent(done)) return;
        if (stopped_ || with.is_cut) return;
        if (done.what == completion::lost) {
            with.is_lost = true;
            drop_late(done.peer);
            std::snprintf(with.reason, sizeof with.reason, "%.180s (chaos, seed %llu)",
                          inner_.describe(done.peer), static_cast<unsigned long long>(seed_));
        } else {
            ++with.held;
        }
        bool const holds = random_.chance(Tuning.hold_back_per_1000);
        held_.push(held_completion{done, holds ? later() : polls_, envelope});
        if (!holds) return;
        ++counts_.held_back;
        note(did::hold, done.peer, done.tag);
    }

    /// Flips a bit of the payload or of the envelope, by chance.
    void flip(completion const& done, std::span<std::byte> into, detail::kept_envelope& envelope) noexcept {
        std::size_t const bytes = std::min(done.bytes, into.size());
        if (bytes + envelope.size == 0 || !random_.chance(Tuning.flip_per_1000)) return;
        std::uint64_t const bit = random_(std::uint64_t{bytes + envelope.size} * 8);
        auto const at = bit / 8;
        (at < bytes ? into[at] : envelope.bytes[at - bytes]) ^= std::byte{1} << bit % 8;
        ++counts_.flipped;
        note(did::flip, done.peer, bit);
    }

    template <class OnCompletion> std::size_t report(OnCompletion& on_completion) noexcept {
        bool more = true;
        held_.keep_if([&](held_completion const& one) noexcept {
            more = more && (Tuning.reorder || one.due <= polls_);
            // The loss of a peer is reported after all messages from it.
            bool const due = more && one.due <= polls_ &&
                             (one.what.what != completion::lost || of(one.what.peer).held == 0);
            if (due) due_.push(one);
            return !due;
        });
        if (Tuning.reorder) due_.shuffle(random_);
        std::size_t const count = due_.size();
        for (std::size_t i = 0; i < count; ++i) {
            completion done = due_[i].what;
            done.envelope = due_[i].envelope.view();
            if (done.what != completion::lost) --of(done.peer).held;
            note(did::report, done.peer, done.tag ^ done.bytes << 8 ^ done.what);
            on_completion(std::as_const(done)); // it may post
        }
        due_.clear();
        return count;
    }

    void destroy() noexcept {
        if (!stopped_ && sent_ >= stop_at_) {
            stopped_ = true;
            late_.clear();
            held_.clear();
            note(did::stop, peer_id{}, sent_);
        }
        if (Tuning.cut.a != chaos_tuning::nobody && !stopped_) cut_links();
    }
    void cut_links() noexcept {
        for (peer_link& one : links_)
            if (!one.is_cut && one.sends >= one.cut_at) cut(one);
    }
    HERRING_SETUP void cut(peer_link& one) noexcept {
        one.is_cut = true;
        one.held = 0;
        drop_late(one.peer);
        held_.keep_if([&](held_completion const& h) noexcept { return h.what.peer != one.peer; });
        std::snprintf(one.reason, sizeof one.reason,
                      "chaos cut the link after %llu sends, as was asked (seed %llu)",
                      static_cast<unsigned long long>(one.sends), static_cast<unsigned long long>(seed_));
        held_.push(held_completion{
            completion{.peer = one.peer, .what = completion::lost, .why = errc::peer_lost}, polls_});
        note(did::cut, one.peer, one.sends);
    }

    detail::fixed_array<std::byte> copies_; // outlive inner_, which may read them
    std::uint32_t copies_taken_ = 0;        // bit i: copy i is in use
    Inner inner_;
    std::size_t largest_;
    detail::fixed_array<peer_link> links_;
    std::uint64_t seed_ = 0;
    detail::draws random_;
    std::uint64_t trace_ = 0;
    std::uint64_t polls_ = 0;
    std::uint64_t sent_ = 0;
    std::uint64_t stop_at_ = detail::chaos_schedule::never; // number of sends
    bool stopped_ = false;
    bool refused_ = false; // a post, since the last poll

    detail::posted_receives receives_;
    detail::fixed_array<late_send> sends_; // in flight in Inner, by place; only where messages are repeated
    detail::fixed_array<std::size_t> places_; // the first free_places_: places without a send
    std::size_t free_places_ = 0;
    detail::shuffle_buffer<late_send> late_; // not posted to Inner yet
    detail::shuffle_buffer<held_completion> held_;
    detail::shuffle_buffer<held_completion> due_; // within report
    chaos_counts counts_;
};
static_assert(transport_policy<chaos<inproc>>);

} // namespace HERRING_NAMESPACE::transport

#endif // HERRING_TRANSPORT_CHAOS_HPP

// herring: what every transport must do: the cases, for whoever writes one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_TRANSPORT_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_TRANSPORT_SUITE_HPP

#include "conformance/suite.hpp"

#include "herring/transport/transport.hpp"

#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <optional>

#include <pthread.h>
#include <unistd.h>

namespace herring::conformance {

/// What a station asks its transport for.
struct needs_of_case {
    std::vector<int> peers{}; ///< empty: all other ranks
    std::size_t receives = 64;
    std::size_t sends = 64;
    std::size_t largest = 1 << 16;
    std::size_t envelope = 0;     ///< of every message
    std::size_t memory = 1 << 20; ///< for all messages of the case, guards included
};

/// A transport with memory, which keeps the books: every post has a ticket, every completion is checked.
///
/// All messages lie in one piece of memory, registered as a plan's would be, with guards between them. What is written
/// past a message shows: no guard is what a message has at first, nor what another rank's guard is.
template <class Transport> class station {
  public:
    using ticket = std::size_t;
    static constexpr std::size_t guard = 64;
    static constexpr std::byte unwritten{0x07}; // a message, until somebody fills it

    station(stage& on, needs_of_case const& wanted)
        : on_(on), memory_(wanted.memory), lost_(static_cast<std::size_t>(on.size()), errc::ok) {
        fill_guards();
        peers_ = wanted.peers;
        if (peers_.empty())
            for (int r = 0; r < on.size(); ++r)
                if (r != on.rank()) peers_.push_back(r);
        transport_needs needs;
        needs.peers = peers_;
        needs.receives_per_peer = wanted.receives;
        needs.sends_per_peer = wanted.sends;
        needs.largest_message = wanted.largest;
        needs.envelope_bytes = wanted.envelope;
        needs.timeout = on.patience();
        transport_ = std::make_unique<Transport>(on.ranks, needs);
        transport_->register_memory(memory_);
        posts_.reserve(1 << 12);
        if constexpr (requires { transport_->seed(); }) on.seed(transport_->seed()); // of chaos
        if constexpr (requires { transport_->inner().seed(); }) on.seed(transport_->inner().seed());
    }

    Transport& transport() noexcept { return *transport_; }
    /// What the transport calls that rank.
    peer_id id(int rank) const noexcept {
        auto const at = std::find(peers_.begin(), peers_.end(), rank);
        return peer_id::at(static_cast<std::size_t>(at - peers_.begin()));
    }
    void destroy() noexcept { transport_.reset(); }

    /// Memory of a message; stays until the station goes.
    std::span<std::byte> take(std::size_t bytes) {
        std::size_t const at = (used_ + guard + 63) / 64 * 64;
        if (at + bytes + guard > memory_.size())
            throw std::runtime_error("the suite asks for too little memory");
        used_ = at + bytes;
        taken_.push_back({at, bytes});
        std::span<std::byte> const made = std::span(memory_).subspan(at, bytes);
        std::fill(made.begin(), made.end(), unwritten);
        return made;
    }
    /// Whether nothing was written beside the messages.
    bool guards_intact() const noexcept {
        std::size_t from = 0;
        for (auto const& [at, bytes] : taken_) {
            if (!is_guard(from, at)) return false;
            from = at + bytes;
        }
        return is_guard(from, memory_.size());
    }

    /// Distinct for distinct n below 2^28, spread over all bits; those that are carried along are another matter.
    static constexpr std::uint64_t tag(std::uint64_t n) noexcept {
        std::uint64_t const low = (n * 0x9e3779b97f4a7c15u) & 0xfff'ffffu;
        return low | (n * 11 & 0xf) << 60;
    }
    /// The same message for matching, with other bits to be carried.
    static constexpr std::uint64_t carrying(std::uint64_t tag, std::uint64_t what) noexcept {
        return (tag & ~carried_bits) | (what << 28 & carried_bits);
    }

    /// Posts once; false when the transport says «not now».
    bool try_send(int peer, std::uint64_t tag, std::span<std::byte const> from, ticket& made) {
        made = add({false, peer, from.size(), from.size(), tag});
        if (transport_->post_send(id(peer), tag, from, token_of(made))) return true;
        posts_.pop_back();
        return false;
    }
    bool try_send(int peer, std::uint64_t tag, std::span<std::byte const> envelope,
                  std::span<std::byte const> from) requires(Transport::facts.envelope_bytes > 0) {
        ticket const made = add({false, peer, from.size(), from.size(), tag});
        if (transport_->post_send(id(peer), tag, envelope, from, token_of(made))) return true;
        posts_.pop_back();
        return false;
    }
    bool try_receive(int peer, std::uint64_t tag, std::span<std::byte> into, ticket& made) {
        made = add({true, peer, into.size(), 0, tag});
        if (transport_->post_receive(id(peer), tag, into, token_of(made))) return true;
        posts_.pop_back();
        return false;
    }
    /// Posts, and polls while the transport says «not now».
    ticket send(int peer, std::uint64_t tag, std::span<std::byte const> from) {
        ticket made = 0;
        while (!try_send(peer, tag, from, made)) retry("post_send");
        return made;
    }
    void send(int peer, std::uint64_t tag, std::span<std::byte const> envelope,
              std::span<std::byte const> from) requires(Transport::facts.envelope_bytes > 0) {
        while (!try_send(peer, tag, envelope, from)) retry("post_send with an envelope");
    }
    ticket receive(int peer, std::uint64_t tag, std::span<std::byte> into) {
        ticket made = 0;
        while (!try_receive(peer, tag, into, made)) retry("post_receive");
        return made;
    }

    std::size_t poll() noexcept {
        return poll([](ticket) noexcept {});
    }
    /// `then(ticket)` for each post that is done.
    template <class Then> std::size_t poll(Then&& then) noexcept {
        std::size_t seen = 0;
        std::size_t const told = transport_->poll([&](completion const& done) noexcept {
            ++seen;
            take_in(done, then);
        });
        if (told != seen)
            on_.find("poll returned " + std::to_string(told) + " and reported " + std::to_string(seen) +
                     " completions");
        return seen;
    }
    bool done(ticket t) const noexcept { return posts_[t].done; }
    /// What came beside the payload.
    std::span<std::byte const> envelope(ticket t) const noexcept {
        return {posts_[t].envelope.data(), posts_[t].beside};
    }
    /// The sender's tag.
    std::uint64_t tag_of(ticket t) const noexcept { return posts_[t].tag; }
    std::size_t bytes(ticket t) const noexcept { return posts_[t].bytes; }
    bool all_done() const noexcept { return open_ == 0; }
    std::size_t open() const noexcept { return open_; }
    /// Why a peer was lost; ok: it was not.
    errc lost(int peer) const noexcept { return lost_[static_cast<std::size_t>(peer)]; }

    /// Polls until `holds`, which it must before patience ends.
    template <class Predicate> bool until(Predicate&& holds, std::string const& what) {
        for (idle_rounds between; !holds();) {
            if (poll() > 0) {
                between.progress();
                continue;
            }
            if (on_.late()) {
                on_.find(what + " did not happen");
                return false;
            }
            between.pause();
        }
        return true;
    }
    bool until_all_done(std::string const& what) {
        return until([&] { return all_done(); }, what + ": " + "completion of every post");
    }

  private:
    // What lies beside the messages of this rank: a piece of a prime length, again and again, by whole pieces, as loops over
    // single bytes are most of a case where nothing is optimised.
    static constexpr std::size_t piece = 4099;
    void fill_guards() noexcept {
        std::uint64_t const rank = static_cast<std::uint64_t>(on_.rank()) << 32;
        for (std::size_t i = 0; i < piece; ++i) {
            std::uint64_t const mixed = (i + rank + 1) * 0x9e3779b97f4a7c15u;
            guards_[i] = static_cast<std::byte>((mixed >> 56) ^ (mixed >> 31));
        }
        for (std::size_t at = 0; at < memory_.size(); at += piece)
            std::memcpy(memory_.data() + at, guards_.data(), std::min(piece, memory_.size() - at));
    }
    bool is_guard(std::size_t from, std::size_t end) const noexcept {
        while (from < end) {
            std::size_t const within = from % piece, bytes = std::min(piece - within, end - from);
            if (std::memcmp(memory_.data() + from, guards_.data() + within, bytes) != 0) return false;
            from += bytes;
        }
        return true;
    }

    struct post {
        bool receive;
        int peer;
        std::size_t capacity;
        std::size_t bytes;
        std::uint64_t tag = 0;
        bool done = false;
        std::array<std::byte, 64> envelope{};
        std::size_t beside = 0; ///< bytes of it
    };

    ticket add(post const& made) {
        posts_.push_back(made);
        return posts_.size() - 1;
    }
    // All 64 bits must come back.
    static std::uint64_t token_of(ticket t) noexcept {
        return 0xa5c3'0000'0000'0000u | static_cast<std::uint64_t>(t);
    }

    void retry(char const* what) {
        poll();
        if (on_.late()) throw std::runtime_error(std::string(what) + " says «not now» for ever");
        ::sched_yield();
    }

    template <class Then> void take_in(completion const& done, Then& then) noexcept {
        if (done.what == completion::lost) {
            if (done.peer.value < 0 || done.peer.place() >= peers_.size())
                return on_.find("lost: peer " + std::to_string(done.peer.value) + ", which is none");
            int const rank = peers_[done.peer.place()];
            errc& why = lost_[static_cast<std::size_t>(rank)];
            on_.expect(why == errc::ok, "lost twice: rank " + std::to_string(rank));
            on_.expect(done.why != errc::ok, "lost without a reason");
            char const* const text = transport_->describe(done.peer);
            on_.expect(text != nullptr && text[0] != 0, "lost, and describe() says nothing");
            why = done.why == errc::ok ? errc::internal : done.why;
            return;
        }
        ticket const t = static_cast<ticket>(done.token & 0xffff'ffff'ffffu);
        if (t >= posts_.size() || done.token != token_of(t))
            return on_.find("a completion with a token that nobody gave");
        post& p = posts_[t];
        if (p.done) return on_.find("a post that is completed twice");
        on_.expect((done.what == completion::received) == p.receive,
                   "a send completed as a receive, or the reverse");
        on_.expect(done.peer == id(p.peer), "a completion of peer " + std::to_string(id(p.peer).value) +
                                                " that names " + std::to_string(done.peer.value));
        // A receive that is posted late may still find what had come before.
        on_.expect(p.receive || lost(p.peer) == errc::ok, "a send that completes after its peer is lost");
        if (p.receive) {
            on_.expect(((done.tag ^ p.tag) & ~carried_bits) == 0,
                       "a receive that completes with the tag of another");
            p.bytes = done.bytes;
            p.tag = done.tag;
            p.beside = std::min(done.envelope.size(), p.envelope.size());
            std::copy_n(done.envelope.data(), p.beside, p.envelope.data());
        } else
            on_.expect(done.bytes == p.bytes, "a send of " + std::to_string(p.bytes) +
                                                  " bytes that completes with " + std::to_string(done.bytes));
        p.done = true;
        --open_;
        then(t);
    }

    stage& on_;
    std::vector<int> peers_; // ranks, by their id
    std::vector<std::byte> memory_;
    std::array<std::byte, piece> guards_;
    std::size_t used_ = 0;
    std::vector<std::pair<std::size_t, std::size_t>> taken_;
    std::unique_ptr<Transport> transport_;
    std::vector<errc> lost_;

    // Posts are counted by vector operations above; keep `open_` in step with them.
    struct book : std::vector<post> {
        std::size_t* open;
        explicit book(std::size_t& count) noexcept : open(&count) {}
        void push_back(post const& p) {
            std::vector<post>::push_back(p);
            ++*open;
        }
        void pop_back() noexcept {
            std::vector<post>::pop_back();
            --*open;
        }
    };
    std::size_t open_ = 0;
    book posts_{open_};
};

/// The cases. Each is a function of a stage, for as many ranks as it says in `list`.
template <class Transport> struct transport_cases {
    using at = station<Transport>;

    static std::uint64_t seed(int from, int to, std::uint64_t n) noexcept {
        return (static_cast<std::uint64_t>(from) * 131 + static_cast<std::uint64_t>(to)) * 1'000'003 + n;
    }
    /// At most what one message takes.
    static constexpr std::size_t up_to(std::size_t bytes) noexcept {
        return std::min<std::size_t>(Transport::facts.max_message, bytes);
    }
    static bool right(stage& on, std::span<std::byte const> got, std::uint64_t of, std::string const& what) {
        std::ptrdiff_t const where = pattern(of).difference(got);
        return on.expect(where < 0, what + ": wrong bytes from " + std::to_string(where) + " of " +
                                        std::to_string(got.size()));
    }

    /// What a transport says of itself.
    static void facts(stage& on) {
        on.expect(Transport::name != nullptr && Transport::name[0] != 0, "name is empty");
        on.expect(Transport::facts.tag_bits >= 64, "tag_bits: the engine's tags take 64 bits");
        on.expect(Transport::facts.max_message >= Transport::facts.tuning.chunk_bytes,
                  "max_message is less than tuning.chunk_bytes");
        on.expect(Transport::facts.tuning.chunk_bytes >= 64, "tuning.chunk_bytes is less than a cache line");
    }

    /// No peers, nothing to do.
    static void nobody(stage& on) {
        transport_needs const none{};
        Transport alone(on.ranks, none);
        std::size_t const got = alone.poll([](completion const&) noexcept {});
        on.expect(got == 0, "a completion out of nothing");
    }

    /// Messages of many sizes in both directions, some into larger receives.
    static void sizes(stage& on) {
        std::vector<std::size_t> all{0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     8,
                                     9,
                                     63,
                                     64,
                                     65,
                                     1000,
                                     4095,
                                     4096,
                                     4097,
                                     16384,
                                     65535,
                                     65536,
                                     65537,
                                     (1 << 20) - 1,
                                     (1 << 20) + 1,
                                     (4 << 20) + 13};
        std::size_t const most = std::min<std::size_t>(Transport::facts.max_message, std::size_t{5} << 20);
        std::erase_if(all, [&](std::size_t s) { return s > most; });
        if (most == Transport::facts.max_message) all.push_back(most);
        std::size_t memory = 1 << 16;
        for (std::size_t const s : all) memory += 2 * (s + 300);
        at here(on, {.largest = most, .memory = memory});
        int const other = 1 - on.rank();
        for (std::size_t i = 0; i < all.size(); ++i) {
            auto const out = here.take(all[i]);
            auto const in = here.take(all[i] + (i % 2) * 100);
            pattern(seed(on.rank(), other, i)).fill(out);
            auto const got = here.receive(other, at::tag(i), in);
            here.send(other, at::tag(i), out);
            std::string const what = "a message of " + std::to_string(all[i]) + " bytes";
            if (!here.until_all_done(what)) return;
            if (on.expect(here.bytes(got) == all[i], what + " came as " + std::to_string(here.bytes(got))))
                right(on, in.first(all[i]), seed(other, on.rank(), i), what);
        }
        on.expect(here.guards_intact(), "bytes beside a message were written");
        on.meet(0, [&] { here.poll(); });
    }

    /// Receives are posted in another order than sends; every order must do.
    static void any_order(stage& on) {
        constexpr std::size_t count = 48;
        at here(on, {.receives = count, .sends = count, .memory = 1 << 21});
        dice random(static_cast<std::uint64_t>(on.rank()) + 7);
        std::vector<std::size_t> order(count);
        for (std::size_t i = 0; i < count; ++i) order[i] = i;
        auto const length = [](std::size_t i) { return (i * 37) % 3000; };
        struct incoming {
            int from;
            std::size_t n;
            std::span<std::byte> into;
            typename at::ticket ticket;
        };
        std::vector<incoming> all;
        for (int peer = 0; peer < on.size(); ++peer) {
            if (peer == on.rank()) continue;
            random.shuffle(order);
            for (std::size_t const i : order) {
                auto const into = here.take(length(i));
                all.push_back({peer, i, into, here.receive(peer, at::tag(i), into)});
            }
        }
        on.meet(0, [&] { here.poll(); });
        for (int peer = 0; peer < on.size(); ++peer) {
            if (peer == on.rank()) continue;
            random.shuffle(order);
            for (std::size_t const i : order) {
                auto const out = here.take(length(i));
                pattern(seed(on.rank(), peer, i)).fill(out);
                here.send(peer, at::tag(i), out);
            }
        }
        if (!here.until_all_done("messages in any order")) return;
        for (incoming const& in : all) {
            on.expect(here.bytes(in.ticket) == in.into.size(), "a message of another size");
            right(on, in.into, seed(in.from, on.rank(), in.n), "message " + std::to_string(in.n));
        }
        on.expect(here.guards_intact(), "bytes beside a message were written");
        on.meet(1, [&] { here.poll(); });
    }

    /// Messages that come before their receive is posted.
    static void unexpected(stage& on) {
        constexpr std::size_t count = 40;
        at here(on, {.receives = count, .sends = count, .memory = 4 << 20});
        auto const length = [](std::size_t i) { return i % 5 == 4 ? up_to(60'000) : i * i; };
        int const other = 1 - on.rank();
        for (std::size_t i = 0; i < count; ++i) {
            auto const out = here.take(length(i));
            pattern(seed(on.rank(), other, i)).fill(out);
            here.send(other, at::tag(i), out);
        }
        on.meet(0, [&] { here.poll(); });
        for (int i = 0; i < 100; ++i) here.poll(); // lets them in, where they are
        std::vector<std::span<std::byte>> in(count);
        std::vector<typename at::ticket> tickets(count);
        for (std::size_t i = count; i-- > 0;) {
            in[i] = here.take(length(i) + 10);
            tickets[i] = here.receive(other, at::tag(i), in[i]);
        }
        if (!here.until_all_done("messages that came early")) return;
        for (std::size_t i = 0; i < count; ++i)
            if (on.expect(here.bytes(tickets[i]) == length(i), "an early message of another size"))
                right(on, in[i].first(length(i)), seed(other, on.rank(), i),
                      "early message " + std::to_string(i));
        on.expect(here.guards_intact(), "bytes beside a message were written");
        on.meet(1, [&] { here.poll(); });
    }

    /// Thousands of posts at once, as were announced; the receives all before the first message, the sends in another
    /// order.
    static void in_flight(stage& on) {
        std::size_t count = static_cast<std::size_t>(std::max(times(4096), 512));
        count = std::min<std::size_t>(count, Transport::facts.most_receives);
        auto const length = [](std::size_t i) { return i % 97 == 5 ? std::size_t{3000} : i % 150; };
        at here(on, {.receives = count, .sends = count, .largest = 3000, .memory = 2 * count * 400});
        int const other = 1 - on.rank();
        std::vector<std::span<std::byte>> in(count);
        std::vector<typename at::ticket> tickets(count);
        for (std::size_t i = 0; i < count; ++i)
            tickets[i] = here.receive(other, at::tag(i), in[i] = here.take(length(i)));
        on.meet(0, [&] { here.poll(); });
        std::vector<std::size_t> order(count);
        for (std::size_t i = 0; i < count; ++i) order[i] = i;
        dice(static_cast<std::uint64_t>(on.rank()) + 3).shuffle(order);
        for (std::size_t const i : order) {
            auto const out = here.take(length(i));
            pattern(seed(on.rank(), other, i)).fill(out);
            here.send(other, at::tag(i), out);
        }
        if (!here.until_all_done("thousands at once")) return;
        for (std::size_t i = 0; i < count; ++i)
            if (!on.expect(here.bytes(tickets[i]) == length(i), "a message of another size") ||
                !right(on, in[i], seed(other, on.rank(), i), "message " + std::to_string(i)))
                return;
        on.expect(here.guards_intact(), "bytes beside a message were written");
        on.meet(1, [&] { here.poll(); });
    }

    /// The receiver takes nothing until the sender has posted all it may; what is sent may be overwritten, not before.
    static void back_pressure(stage& on) {
        constexpr std::size_t count = 64;
        std::size_t const length = up_to(200'003);
        at here(on, {.receives = 8, .sends = count, .largest = length, .memory = count * (length + 200)});
        std::vector<std::span<std::byte>> memory(count);
        for (auto& m : memory) m = here.take(length);
        if (on.rank() == 0) {
            auto const overwrite = [&](typename at::ticket t) noexcept {
                std::memset(memory[t].data(), 0xee, length);
            };
            std::size_t posted = 0;
            std::size_t refused = 0;
            while (posted < count) {
                pattern(seed(0, 1, posted)).fill(memory[posted]);
                typename at::ticket t;
                while (!here.try_send(1, at::tag(posted), memory[posted], t)) {
                    here.poll(overwrite);
                    // One that takes no more before the receiver does is let off here.
                    if (++refused == 10'000) on.flag(0).store(1);
                    if (on.late()) return on.find("post_send says «not now» for ever");
                    ::sched_yield();
                }
                ++posted;
            }
            on.flag(0).store(1);
            while (!here.all_done()) {
                here.poll(overwrite);
                if (on.late()) return on.find("sends that never complete");
                ::sched_yield();
            }
        } else {
            if (!on.await(0, 1)) return on.find("the sender is stuck in post_send");
            // A window of eight receives at a time, in order.
            std::vector<typename at::ticket> tickets(count);
            for (std::size_t i = 0; i < count; ++i) {
                if (i >= 8 && !here.until([&] { return here.done(tickets[i - 8]); },
                                          "message " + std::to_string(i - 8)))
                    return;
                tickets[i] = here.receive(0, at::tag(i), memory[i]);
            }
            if (!here.until_all_done("under back pressure")) return;
            for (std::size_t i = 0; i < count; ++i)
                if (!right(on, memory[i], seed(0, 1, i),
                           "message " + std::to_string(i) +
                               ", whose memory was reused when its send was done"))
                    return;
            on.expect(here.guards_intact(), "bytes beside a message were written");
        }
        on.meet(1, [&] { here.poll(); });
    }

    /// Eight ranks, everyone with everyone, several rounds.
    static void everyone(stage& on) {
        int const rounds = times(24);
        constexpr std::size_t most = up_to(40'000);
        at here(on, {.receives = 4, .sends = 4, .largest = most, .memory = 16 * (most + 200)});
        std::vector<std::span<std::byte>> in(static_cast<std::size_t>(on.size())), out(in.size());
        for (auto& m : in) m = here.take(most);
        for (auto& m : out) m = here.take(most);
        std::vector<typename at::ticket> tickets(in.size());
        auto const length = [&](int from, int to, int round) {
            return dice(seed(from, to, static_cast<std::uint64_t>(round)))(most);
        };
        for (int round = 0; round < rounds; ++round) {
            auto const tag = at::tag(static_cast<std::uint64_t>(round));
            for (int step = 1; step < on.size(); ++step) {
                int const from = (on.rank() + step) % on.size();
                tickets[static_cast<std::size_t>(from)] =
                    here.receive(from, tag, in[static_cast<std::size_t>(from)]);
            }
            for (int step = 1; step < on.size(); ++step) {
                int const to = (on.rank() + step) % on.size();
                auto const message = out[static_cast<std::size_t>(to)].first(length(on.rank(), to, round));
                pattern(seed(on.rank(), to, static_cast<std::uint64_t>(round))).fill(message);
                here.send(to, tag, message);
            }
            if (!here.until_all_done("round " + std::to_string(round))) return;
            for (int from = 0; from < on.size(); ++from) {
                if (from == on.rank()) continue;
                std::size_t const due = length(from, on.rank(), round);
                if (!on.expect(here.bytes(tickets[static_cast<std::size_t>(from)]) == due,
                               "a message of another size"))
                    return;
                if (!right(on, in[static_cast<std::size_t>(from)].first(due),
                           seed(from, on.rank(), static_cast<std::uint64_t>(round)),
                           "round " + std::to_string(round) + " from rank " + std::to_string(from)))
                    return;
            }
        }
        on.expect(here.guards_intact(), "bytes beside a message were written");
        on.meet(0, [&] { here.poll(); });
    }

    /// Messages of equal size differ in their tag only, by any bit of it, and in their peer.
    static void tags(stage& on) {
        constexpr std::size_t length = 40;
        constexpr std::size_t carried = std::popcount(carried_bits); // in the middle: of others
        constexpr std::size_t below = std::countr_zero(carried_bits);
        constexpr std::size_t count = 1 + 64 - carried; // all bits that take part in matching
        at here(on,
                {.receives = count, .sends = count, .largest = length, .memory = 6 * count * (length + 200)});
        auto const tag = [](std::size_t i) { // all ones, and all ones but one
            return i == 0 ? ~std::uint64_t{0}
                          : ~(std::uint64_t{1} << (i - 1 < below ? i - 1 : i - 1 + carried));
        };
        std::vector<std::span<std::byte>> in(count * static_cast<std::size_t>(on.size()));
        for (std::size_t i = 0; i < count; ++i)
            for (int peer = 0; peer < on.size(); ++peer) {
                if (peer == on.rank()) continue;
                auto& into = in[i * static_cast<std::size_t>(on.size()) + static_cast<std::size_t>(peer)];
                into = here.take(length);
                here.receive(peer, tag(i), into);
            }
        for (std::size_t k = 0; k < count; ++k) {
            std::size_t const i = (k * 29) % count; // another order
            static_assert(count % 29 != 0);
            for (int peer = 0; peer < on.size(); ++peer) {
                if (peer == on.rank()) continue;
                auto const out = here.take(length);
                pattern(seed(on.rank(), peer, i)).fill(out);
                here.send(peer, tag(i), out);
            }
        }
        if (!here.until_all_done("messages with tags that differ by one bit")) return;
        for (std::size_t i = 0; i < count; ++i)
            for (int peer = 0; peer < on.size(); ++peer)
                if (peer != on.rank())
                    right(on, in[i * static_cast<std::size_t>(on.size()) + static_cast<std::size_t>(peer)],
                          seed(peer, on.rank(), i),
                          "tag " + std::to_string(i) + " of rank " + std::to_string(peer));
        on.meet(0, [&] { here.poll(); });
    }

    /// Some bits of a tag are carried along: they do not decide where a message goes, and the receiver gets them.
    static void carried(stage& on) {
        constexpr std::size_t count = 64;
        at here(on, {.receives = count, .sends = count, .memory = 1 << 18});
        int const other = 1 - on.rank();
        auto const carries = [](int rank, std::size_t i) {
            return (i * 0x51ab7 + static_cast<std::size_t>(rank)) & 0xfffff;
        };
        std::vector<std::span<std::byte>> in(count);
        std::vector<typename at::ticket> tickets(count);
        for (std::size_t half = 0; half < 2; ++half) { // posted before, posted after
            auto const receive = [&] {
                for (std::size_t i = half; i < count; i += 2)
                    tickets[i] = here.receive(other, at::carrying(at::tag(i), 3 * i), in[i] = here.take(20));
            };
            if (half == 0) receive();
            on.meet(static_cast<int>(2 * half), [&] { here.poll(); });
            for (std::size_t i = half; i < count; i += 2) {
                auto const out = here.take(20);
                pattern(seed(on.rank(), other, i)).fill(out);
                here.send(other, at::carrying(at::tag(i), carries(on.rank(), i)), out);
            }
            on.meet(static_cast<int>(2 * half + 1), [&] { here.poll(); });
            if (half == 1) receive();
            if (!here.until_all_done("messages whose tags carry something")) return;
        }
        for (std::size_t i = 0; i < count; ++i) {
            right(on, in[i], seed(other, on.rank(), i), "message " + std::to_string(i));
            on.expect(here.tag_of(tickets[i]) == at::carrying(at::tag(i), carries(other, i)),
                      "the bits that a tag carries did not come");
        }
        on.meet(4, [&] { here.poll(); });
    }

    /// Every message has an envelope, which is copied at its post and comes with it: before its receive is posted and after,
    /// with a payload and without, small and large.
    static void envelopes(stage& on) {
        if constexpr (Transport::facts.envelope_bytes > 0) {
            constexpr std::size_t count = 64;
            for (std::size_t const size :
                 {Transport::facts.envelope_bytes, std::size_t{12}, std::size_t{1}}) {
                if (size > Transport::facts.envelope_bytes) continue;
                at here(on, {.receives = count, .sends = count, .envelope = size, .memory = 4 << 20});
                int const other = 1 - on.rank();
                auto const length = [](std::size_t i) { return i % 8 == 7 ? up_to(40'000) : i % 8 * i; };
                std::vector<std::span<std::byte>> in(count);
                std::vector<typename at::ticket> tickets(count);
                for (std::size_t half = 0; half < 2; ++half) { // posted before, posted after
                    auto const receive = [&] {
                        for (std::size_t i = half; i < count; i += 2)
                            tickets[i] = here.receive(other, at::tag(i), in[i] = here.take(length(i)));
                    };
                    if (half == 0) receive();
                    on.meet(static_cast<int>(2 * half), [&] { here.poll(); });
                    for (std::size_t i = half; i < count; i += 2) {
                        auto const out = here.take(length(i));
                        pattern(seed(on.rank(), other, i)).fill(out);
                        std::array<std::byte, 64> memory{};
                        std::span<std::byte> const envelope(memory.data(), size);
                        pattern(seed(on.rank(), other, 1000 + i)).fill(envelope);
                        here.send(other, at::tag(i), envelope, out);
                        memory.fill(std::byte{0xdd}); // it was copied
                    }
                    on.meet(static_cast<int>(2 * half + 1), [&] { here.poll(); });
                    if (half == 1) receive();
                    if (!here.until_all_done("messages with envelopes")) return;
                }
                for (std::size_t i = 0; i < count; ++i) {
                    std::string const what = "message " + std::to_string(i);
                    right(on, in[i], seed(other, on.rank(), i), what);
                    auto const beside = here.envelope(tickets[i]);
                    if (on.expect(beside.size() == size,
                                  what + ": its envelope has " + std::to_string(beside.size()) + " bytes"))
                        right(on, beside, seed(other, on.rank(), 1000 + i), what + ", its envelope");
                }
                on.expect(here.guards_intact(), "bytes beside a message were written");
                on.meet(4, [&] { here.poll(); });
            }
        }
    }

    /// Several messages with one tag: every one comes once, and in order where the transport says so.
    static void one_tag(stage& on) {
        constexpr std::size_t count = 32;
        at here(on, {.receives = count, .sends = count, .memory = 1 << 20});
        int const other = 1 - on.rank();
        std::vector<std::span<std::byte>> in(count);
        for (int round = 0; round < 2; ++round) { // posted before, posted after
            std::uint64_t const tag = at::tag(static_cast<std::uint64_t>(round));
            auto const receive = [&] {
                for (auto& into : in) here.receive(other, tag, into = here.take(8));
            };
            if (round == 0) receive();
            on.meet(2 * round, [&] { here.poll(); });
            for (std::uint64_t i = 0; i < count; ++i) {
                auto const out = here.take(8);
                std::memcpy(out.data(), &i, 8);
                here.send(other, tag, out);
            }
            on.meet(2 * round + 1, [&] { here.poll(); });
            if (round == 1) receive();
            if (!here.until_all_done("messages with one tag")) return;
            std::vector<std::uint64_t> seen;
            for (auto const& into : in) {
                std::uint64_t value;
                std::memcpy(&value, into.data(), 8);
                seen.push_back(value);
            }
            if (Transport::facts.keeps_order)
                on.expect(std::is_sorted(seen.begin(), seen.end()),
                          "keeps_order, and messages with one tag came in another order");
            std::sort(seen.begin(), seen.end());
            for (std::uint64_t i = 0; i < count; ++i)
                if (!on.expect(seen[i] == i, "a message with a shared tag is missing, or came twice")) return;
        }
        on.meet(4, [&] { here.poll(); });
    }

    /// A long stream of small messages, both ways, a window at a time.
    static void many(stage& on) {
        std::uint64_t const count = static_cast<std::uint64_t>(times(20'000));
        constexpr std::uint64_t window = 32;
        at here(on, {.receives = window, .sends = window, .largest = 256, .memory = 2 * window * 600});
        int const other = 1 - on.rank();
        std::vector<std::span<std::byte>> in(window), out(window);
        std::vector<typename at::ticket> received(window), sent(window);
        for (auto& m : in) m = here.take(256);
        for (auto& m : out) m = here.take(256);
        auto const length = [](std::uint64_t n) { return 8 + static_cast<std::size_t>(n * 7 % 200); };
        std::uint64_t taken = 0;
        for (std::uint64_t n = 0; n < window && n < count; ++n)
            received[n] = here.receive(other, at::tag(n), in[n]);
        on.meet(0, [&] { here.poll(); });
        for (std::uint64_t n = 0; n < count || taken < count;) {
            if (n < count && (n < window || here.done(sent[n % window])) && n < taken + window / 2) {
                auto const message = out[n % window].first(length(n));
                pattern(seed(on.rank(), other, n)).fill(message);
                sent[n % window] = here.send(other, at::tag(n), message);
                ++n;
                continue;
            }
            if (taken < count && here.done(received[taken % window])) {
                if (!on.expect(here.bytes(received[taken % window]) == length(taken),
                               "message " + std::to_string(taken) + " has another size"))
                    return;
                if (!right(on, in[taken % window].first(length(taken)), seed(other, on.rank(), taken),
                           "message " + std::to_string(taken)))
                    return;
                if (taken + window < count)
                    received[taken % window] =
                        here.receive(other, at::tag(taken + window), in[taken % window]);
                ++taken;
                continue;
            }
            if (here.poll() == 0) {
                if (on.late())
                    return on.find("message " + std::to_string(taken) + " of " + std::to_string(count) +
                                   " did not come");
                ::sched_yield();
            }
        }
        here.until_all_done("the last of many");
        on.meet(1, [&] { here.poll(); });
    }

    /// The functor that poll calls posts the next send and the next receive.
    static void functor_posts(stage& on) {
        int const rounds = times(2000);
        at here(on, {.receives = 4, .sends = 4, .memory = 1 << 16});
        int const other = 1 - on.rank();
        auto const in = here.take(100);
        auto const out = here.take(100);
        pattern(seed(on.rank(), other, 0)).fill(out);
        Transport& transport = here.transport();
        // Rank 0 serves; the ball is returned from within poll.
        int received = 0;
        bool owed_receive = false, owed_send = false, lost = false;
        auto const receive = [&]() noexcept {
            owed_receive =
                !transport.post_receive(here.id(other), at::tag(static_cast<std::uint64_t>(received)), in, 1);
        };
        auto const send = [&](int n) noexcept {
            owed_send = !transport.post_send(here.id(other), at::tag(static_cast<std::uint64_t>(n)), out, 2);
        };
        int sent = 0, to_send = on.rank() == 0 ? 1 : 0;
        receive();
        on.meet(0, [] {});
        bool sending = false;
        auto const go_on = [&]() noexcept {
            if (owed_receive) receive();
            if (sending && owed_send) send(sent);
            if (!sending && sent < to_send) {
                sending = true;
                send(sent);
            }
        };
        auto const got = [&](completion const& done) noexcept {
            if (done.what == completion::lost) lost = true;
            if (done.what == completion::sent) {
                sending = false;
                ++sent;
            }
            if (done.what == completion::received) {
                if (done.bytes != 100 || pattern(seed(other, on.rank(), 0)).difference(in) >= 0)
                    on.find("a wrong message");
                ++received;
                on.rest(); // a busy machine takes long for all rounds: none may take as long
                if (received < rounds) receive();
                if (on.rank() == 1 || received < rounds) ++to_send;
            }
            go_on();
        };
        while ((received < rounds || sent < rounds) && !lost) {
            go_on();
            transport.poll(got);
            if (on.late())
                return on.find("round " + std::to_string(received) +
                               " of posts from within poll did not end");
            if (received < rounds) ::sched_yield();
        }
        on.expect(!lost, "a peer was lost");
        on.meet(1, [&] { transport.poll(got); });
    }

    /// wait() ends when a message comes, or when a send is done: nobody sleeps through it.
    static void wait_for_message(stage& on) {
        int const rounds = times(400);
        at here(on, {.receives = 4, .sends = 4, .memory = 1 << 20});
        int const other = 1 - on.rank();
        auto const in = here.take(up_to(50'000));
        auto const out = here.take(up_to(50'000));
        for (int round = 0; round < rounds; ++round) {
            std::uint64_t const n = static_cast<std::uint64_t>(round);
            std::size_t const length = round % 10 == 9 ? up_to(50'000) : 16;
            auto const got = here.receive(other, at::tag(n), in.first(length));
            auto const sleep_until_done = [&](typename at::ticket t, char const* what) {
                while (here.poll(), !here.done(t)) {
                    time_point const until = clock::now() + on.patience();
                    here.transport().wait(until);
                    if (clock::now() >= until) {
                        on.find(std::string("wait() slept through ") + what);
                        return false;
                    }
                }
                return true;
            };
            // A message back and forth, each side asleep while the other is at work.
            if (on.rank() == 1 && !sleep_until_done(got, "a message")) return;
            pattern(seed(on.rank(), other, n)).fill(out.first(length));
            auto const sent = here.send(other, at::tag(n), out.first(length));
            if (on.rank() == 0 && !sleep_until_done(got, "a message")) return;
            if (!sleep_until_done(sent, "the end of a send")) return;
            if (!right(on, in.first(length), seed(other, on.rank(), n), "round " + std::to_string(round)))
                return;
        }
        on.rest();
        on.meet(0, [&] { here.poll(); });
    }

    /// wait(until) ends by itself.
    static void wait_ends(stage& on) {
        at here(on, {});
        int const other = 1 - on.rank();
        auto const in = here.take(8);
        auto const got = here.receive(other, at::tag(1), in);
        on.meet(0, [&] { here.poll(); });
        if (on.rank() == 0) {
            here.transport().wait(time_point{}); // long past
            here.transport().wait(clock::now()); // now
            for (int i = 0; i < 3; ++i) {
                time_point const until = clock::now() + std::chrono::milliseconds(5);
                while (clock::now() < until) {
                    here.transport().wait(until);
                    here.poll();
                }
            }
            on.flag(1).store(1);
        } else if (!on.await(1, 1, [&] { here.poll(); })) {
            on.find("wait() does not end when its time is over");
        }
        on.rest();
        // A message for the one that still sleeps, if it does.
        auto const out = here.take(8);
        here.send(other, at::tag(1), out);
        here.until([&] { return here.done(got); }, "the last message");
        on.meet(2, [&] { here.poll(); });
    }

    /// wake() ends a wait from another thread; if nobody waits just then, it ends the next one.
    static void wake(stage& on) {
        static constexpr std::uint32_t rounds = 200;
        at here(on, {});
        struct waker {
            Transport& transport;
            stage& on;
            std::atomic<std::uint32_t> asked{0}, woken{0};
            static void* run(void* self) noexcept {
                waker& me = *static_cast<waker*>(self);
                for (std::uint32_t r = 1; r <= rounds; ++r) {
                    while (me.asked.load() < r) {
                        if (me.asked.load() == ~std::uint32_t{0}) return nullptr;
                        ::sched_yield();
                    }
                    if (r % 3 == 0)
                        for (int i = 0; i < 3; ++i)
                            ::sched_yield(); // now and then the other is asleep by then
                    me.woken.store(r);
                    me.transport.wake();
                    if (r % 5 == 0) me.transport.wake(); // once more does no harm
                }
                return nullptr;
            }
        };
        on.meet(0, [&] { here.poll(); });
        time_point const early = clock::now() + on.patience();
        here.transport().wake();
        here.transport().wait(early);
        on.expect(clock::now() < early, "a wake() before the wait() was forgotten");
        on.rest();
        waker other{here.transport(), on};
        pthread_t thread;
        if (::pthread_create(&thread, nullptr, waker::run, &other) != 0) return on.find("no thread");
        bool slept = false;
        for (std::uint32_t r = 1; r <= rounds && !slept; ++r) {
            other.asked.store(r);
            time_point const until = clock::now() + on.patience();
            do {
                here.transport().wait(until);
                here.poll();
            } while (other.woken.load() < r && clock::now() < until);
            slept = clock::now() >= until;
        }
        if (slept) {
            on.find("wait() slept through a wake()");
            other.asked.store(~std::uint32_t{0});
        }
        ::pthread_join(thread, nullptr);
        on.rest();
        on.meet(1, [&] { here.poll(); });
    }

    /// A rank that leaves: what it sent comes, then it is lost, once, with a reason (but for a transport that says
    /// `facts.reports_lost = false`); the others go on.
    static void leave(stage& on) {
        at here(on, {.receives = 8, .sends = 8, .memory = 1 << 20});
        constexpr int leaver = 2;
        auto const in = here.take(up_to(30'000));
        if (on.rank() == leaver) {
            for (int peer = 0; peer < 2; ++peer) {
                auto const out = here.take(up_to(30'000));
                pattern(seed(leaver, peer, 0)).fill(out);
                here.send(peer, at::tag(0), out);
            }
            here.until_all_done("the last words of a rank that leaves");
            here.destroy();
            on.meet(0);
            return;
        }
        auto const last = here.receive(leaver, at::tag(0), in);
        bool const in_time = here.lost(leaver) == errc::ok; // the transport may have said «not now» for long
        auto const never = here.receive(leaver, at::tag(1), here.take(10));
        if constexpr (Transport::facts.reports_lost)
            here.until([&] { return here.lost(leaver) != errc::ok; }, "news that rank 2 has left");
        else
            here.until([&] { return here.done(last); }, "what rank 2 sent before it left");
        if (!in_time) here.until([&] { return here.done(last); }, "what rank 2 sent before it left");
        if (on.expect(here.done(last), "what a rank sent before it left did not come"))
            right(on, in, seed(leaver, on.rank(), 0), "last words");
        on.expect(!here.done(never), "a message that was never sent");
        // Posts to it do no harm, whatever they answer.
        typename at::ticket t;
        (void)here.try_receive(leaver, at::tag(2), here.take(10), t);
        (void)here.try_send(leaver, at::tag(2), here.take(10), t);
        for (int i = 0; i < 10; ++i) here.poll();
        int const other = 1 - on.rank();
        auto const more = here.take(1000);
        auto const got = here.receive(other, at::tag(3), more);
        auto const out = here.take(1000);
        pattern(seed(on.rank(), other, 3)).fill(out);
        auto const sent = here.send(other, at::tag(3), out);
        here.until([&] { return here.done(got) && here.done(sent); }, "a message between those who stay");
        right(on, more, seed(other, on.rank(), 3), "a message between those who stay");
        on.expect(here.lost(other) == errc::ok, "a rank that stays was reported as lost");
        on.meet(0, [&] { here.poll(); });
    }

    /// A rank that leaves while the other is busy with something else for a while, and has not posted all of its
    /// receives: they are met all the same.
    static void last_words(stage& on) {
        constexpr std::uint64_t count = 40, window = 8;
        constexpr std::size_t size = up_to(1000);
        at here(on, {.receives = window, .sends = count, .memory = 1 << 20});
        if (on.rank() == 1) {
            for (std::uint64_t n = 0; n < count; ++n) {
                auto const out = here.take(size);
                pattern(seed(1, 0, n)).fill(out);
                here.send(0, at::tag(n), out);
            }
            here.until_all_done("the last words of a rank that leaves");
            here.destroy();
            on.flag(3).store(1);
            on.meet(0);
            return;
        }
        // Hears of it, unless the other cannot end its sends before they are received; then it is away.
        time_point const until = clock::now() + std::chrono::seconds(1);
        while (on.flag(3).load() == 0 && clock::now() < until) {
            here.poll();
            ::sched_yield();
        }
        here.poll();
        ::usleep(400'000); // waits for nothing: is away
        on.rest();
        bool all = true;
        for (std::uint64_t n = 0; all && n < count; n += window) {
            std::vector<std::span<std::byte>> in;
            std::vector<typename at::ticket> got;
            for (std::uint64_t i = n; i < n + window; ++i) {
                in.push_back(here.take(size));
                got.push_back(here.receive(1, at::tag(i), in.back()));
            }
            for (std::size_t i = 0; all && i < window; ++i) {
                all = here.until([&] { return here.done(got[i]); },
                                 "message " + std::to_string(n + i) + ", sent before its sender left") &&
                      right(on, in[i], seed(1, 0, n + i), "last words");
            }
        }
        on.meet(0, [&] { here.poll(); });
    }

    /// Destruction with posts that were never met, at both ends; then a new one on the same world works, and hears
    /// nothing of what was under way in the old one.
    static void destroy_in_flight(stage& on) {
        constexpr std::size_t most = up_to(1 << 20);
        for (int round = 0; round < 4; ++round) {
            at here(on, {.receives = 16, .sends = 16, .largest = most, .memory = 3 << 20});
            int const other = 1 - on.rank();
            auto const in = here.take(64);
            auto const got = here.receive(other, at::tag(0), in);
            auto const out = here.take(64);
            pattern(seed(on.rank(), other, static_cast<std::uint64_t>(round))).fill(out);
            here.send(other, at::tag(0), out);
            if (!here.until([&] { return here.done(got); }, "a message after a destruction")) return;
            right(on, in, seed(other, on.rank(), static_cast<std::uint64_t>(round)),
                  "round " + std::to_string(round));
            on.meet(2, [&] { here.poll(); });
            typename at::ticket t;
            for (std::uint64_t i = 0; i < 8; ++i) { // the sends with tags that the next round receives
                (void)here.try_receive(other, at::tag(100 + i), here.take(up_to(100'000)), t);
                (void)here.try_send(other, at::tag(i), here.take(i == 7 ? most : 64 + 1000 * i), t);
                if (round % 2 == 1) here.poll();
            }
            on.meet(0, [&] { here.poll(); });
        }
        on.meet(1);
    }

    /// Rank 1 withdraws what it has posted, by `abandon` or by destruction: from then on nobody writes to its receives
    /// or reads from its sends, whatever rank 0 does.
    static void withdraw(stage& on, bool destroys) {
        constexpr std::size_t count = 8;
        constexpr std::byte later{0x11};
        auto const length = [](std::size_t i) { return i == 7 ? up_to(300'000) : i * 700 + 1; };
        at here(on, {.receives = count, .sends = count, .largest = up_to(300'000), .memory = 1 << 20});
        std::vector<std::span<std::byte>> in(count), out(count);
        for (std::size_t i = 0; i < count; ++i) {
            in[i] = here.take(length(i));
            out[i] = here.take(length(i));
            pattern(seed(on.rank(), 1 - on.rank(), i)).fill(out[i]);
        }
        if (on.rank() == 1) {
            for (std::size_t i = 0; i < count; ++i) {
                here.receive(0, at::tag(i), in[i]);
                here.send(0, at::tag(100 + i), out[i]);
            }
            for (int i = 0; i < 10; ++i) here.poll();
            if (destroys)
                here.destroy();
            else if constexpr (Transport::facts.abandons)
                here.transport().abandon();
            for (auto const& all : {in, out})
                for (auto const& m : all) std::memset(m.data(), static_cast<int>(later), m.size());
            on.flag(1).store(1);
            on.await(1, 2); // it polls no more
            for (auto const& m : in)
                on.expect(std::all_of(m.begin(), m.end(), [&](std::byte b) { return b == later; }),
                          "a receive that was withdrawn was written to");
            on.expect(here.guards_intact(), "bytes beside a message were written");
            on.meet(0);
            return;
        }
        if (!on.await(1, 1, [&] { here.poll(); })) return on.find("rank 1 did not withdraw");
        constexpr typename at::ticket none = ~typename at::ticket{0};
        std::vector<typename at::ticket> tickets(count, none);
        for (std::size_t i = 0; i < count; ++i) {
            // Whatever they answer: the other end is gone, and the transport may know.
            typename at::ticket t;
            for (int tries = 0; tries < 20 && !here.try_send(1, at::tag(i), out[i], t); ++tries) here.poll();
            for (int tries = 0; tries < 20 && tickets[i] == none && here.lost(1) == errc::ok; ++tries)
                if (here.try_receive(1, at::tag(100 + i), in[i], t))
                    tickets[i] = t;
                else
                    here.poll();
        }
        for (int i = 0; i < 2000; ++i) here.poll();
        // What had left before may come.
        for (std::size_t i = 0; i < count; ++i)
            if (Transport::facts.withdraws && tickets[i] != none && here.done(tickets[i]))
                right(on, in[i].first(std::min(here.bytes(tickets[i]), in[i].size())), seed(1, 0, i),
                      "message " + std::to_string(i) + " that was withdrawn, or sent before");
        on.flag(1).store(2);
        on.meet(0, [&] { here.poll(); });
    }
    static void abandon(stage& on) { withdraw(on, false); }
    static void destroy(stage& on) { withdraw(on, true); }

    /// A message above `max_message` is refused every time, and nothing of it is sent. Only where one can be tried.
    static void beyond(stage& on) {
        if constexpr (Transport::facts.max_message <= std::size_t{16} << 20) {
            constexpr std::size_t most = Transport::facts.max_message;
            at here(on, {.receives = 2, .sends = 2, .largest = most, .memory = 2 * most + 4096});
            auto const memory = here.take(most + 1);
            if (on.rank() == 1) {
                auto const got = here.receive(0, at::tag(0), memory);
                on.meet(0, [&] { here.poll(); });
                if (!here.until_all_done("a message of max_message bytes, after one that is too large"))
                    return;
                if (on.expect(here.bytes(got) == most, "a message of " + std::to_string(most) +
                                                           " bytes came as " +
                                                           std::to_string(here.bytes(got))))
                    right(on, memory.first(most), seed(0, 1, 0), "a message of max_message bytes");
                on.expect(here.guards_intact(), "bytes beside a message were written");
            } else {
                on.meet(0, [&] { here.poll(); });
                typename at::ticket t;
                for (int i = 0; i < 50; ++i) {
                    if (here.try_send(1, at::tag(0), memory, t))
                        return on.find("took a message above max_message");
                    here.poll();
                }
                pattern(seed(0, 1, 0)).fill(memory.first(most));
                here.send(1, at::tag(0), memory.first(most));
                here.until_all_done("a message of max_message bytes");
            }
            on.meet(1, [&] { here.poll(); });
        }
    }

    /// A message that is longer than its receive, or than anything that was announced: told, never cut in silence.
    static void too_long(stage& on) {
        for (std::size_t const length : {std::size_t{1000}, up_to(20'000)}) {
            at here(on, {.receives = 8, .sends = 8, .largest = 4096, .memory = 1 << 17});
            auto const out = here.take(length);
            auto const in = here.take(100);
            on.meet(0, [&] { here.poll(); });
            bool noticed = false;
            if (on.rank() == 1) {
                auto const got = here.receive(0, at::tag(0), in);
                on.flag(1).store(1);
                while (!noticed && !on.late()) {
                    here.poll();
                    if (here.done(got)) {
                        on.expect(here.bytes(got) == length,
                                  "a message of " + std::to_string(length) + " bytes completed as " +
                                      std::to_string(here.bytes(got)) + " in a receive of 100");
                        noticed = true;
                    }
                    noticed = noticed || here.lost(0) != errc::ok || on.flag(2).load() == 1;
                    ::sched_yield();
                }
                on.expect(noticed, "a message that is too long: neither side hears of it");
                on.expect(here.guards_intact(),
                          "a message that is too long was written past the end of its receive");
                on.expect(here.lost(0) == errc::ok || here.lost(0) == errc::mismatch ||
                              here.lost(0) == errc::protocol,
                          "lost for another reason than a mismatch");
                on.flag(1).store(2);
            } else {
                on.await(1, 1, [&] { here.poll(); });
                typename at::ticket t;
                bool sent = false;
                for (int tries = 0; tries < 100 && !sent; ++tries) {
                    sent = here.try_send(1, at::tag(0), out, t);
                    here.poll();
                }
                if (!sent) on.flag(2).store(1); // one may refuse it as well
                on.await(1, 2, [&] { here.poll(); });
            }
            on.meet(3, [&] { here.poll(); });
            if (on.rank() == 0) {
                on.flag(1).store(0);
                on.flag(2).store(0);
            }
            on.meet(4);
        }
    }

    /// Two transports on one world do not hear each other, whichever goes first.
    static void two_at_once(stage& on) {
        int const other = 1 - on.rank();
        std::optional<at> one, two;
        one.emplace(on, needs_of_case{});
        two.emplace(on, needs_of_case{});
        for (int round = 0; round < 20; ++round) {
            std::uint64_t const n = static_cast<std::uint64_t>(round);
            auto const in_one = one->take(500), in_two = two->take(500);
            auto const out_one = one->take(500), out_two = two->take(500);
            pattern(seed(on.rank(), other, n)).fill(out_one);
            pattern(seed(on.rank(), other, 1000 + n)).fill(out_two);
            one->receive(other, at::tag(n), in_one);
            if (on.rank() == 0) {
                one->send(other, at::tag(n), out_one);
                two->send(other, at::tag(n), out_two);
            } else {
                two->send(other, at::tag(n), out_two);
                one->send(other, at::tag(n), out_one);
            }
            two->receive(other, at::tag(n), in_two);
            auto const both = [&] { return two->poll(), one->all_done() && two->all_done(); };
            if (!one->until(both, "messages of two transports")) return;
            right(on, in_one, seed(other, on.rank(), n), "the first transport");
            right(on, in_two, seed(other, on.rank(), 1000 + n), "the second transport");
        }
        on.meet(0, [&] { one->poll(), two->poll(); });
        one.reset();
        auto const in = two->take(10);
        two->receive(other, at::tag(50), in);
        two->send(other, at::tag(50), two->take(10));
        two->until_all_done("the second transport, after the first is gone");
        on.meet(1, [&] { two->poll(); });
    }

    struct entry {
        char const* name;
        int ranks;
        void (*run)(stage&);
    };
    [[maybe_unused]] static constexpr std::array list{
        entry{"facts", 1, facts},
        entry{"nobody", 2, nobody},
        entry{"sizes", 2, sizes},
        entry{"any_order", 3, any_order},
        entry{"unexpected", 2, unexpected},
        entry{"in_flight", 2, in_flight},
        entry{"back_pressure", 2, back_pressure},
        entry{"everyone", 8, everyone},
        entry{"tags", 3, tags},
        entry{"carried", 2, carried},
        entry{"envelopes", 2, envelopes},
        entry{"one_tag", 2, one_tag},
        entry{"many", 2, many},
        entry{"functor_posts", 2, functor_posts},
        entry{"wait_for_message", 2, wait_for_message},
        entry{"wait_ends", 2, wait_ends},
        entry{"wake", 2, wake},
        entry{"leave", 3, leave},
        entry{"last_words", 2, last_words},
        entry{"destroy_in_flight", 2, destroy_in_flight},
        entry{"abandon", 2, abandon},
        entry{"destroy", 2, destroy},
        entry{"too_long", 2, too_long},
        entry{"beyond", 2, beyond},
        entry{"two_at_once", 2, two_at_once},
    };
};

/// Runs every case, each in a world of its own. Empty: the transport is sound.
template <class Transport> findings transport_suite(settings const& how = {}) {
    static_assert(transport_policy<Transport>);
    findings all;
    for (auto const& one : transport_cases<Transport>::list)
        append(all, run_case(one.name, one.ranks, {}, how, one.run));
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_TRANSPORT_SUITE_HPP

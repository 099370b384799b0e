// herring: hello and goodbye over libfabric: ranks show that they are connected, and that they leave.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_HANDSHAKE_HPP
#define HERRING_TRANSPORT_OFI_HANDSHAKE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/world.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/net/life_signs.hpp"
#include "herring/transport/ofi/channel.hpp"
#include "herring/transport/ofi/select.hpp"
#include "herring/transport/ofi/sleep.hpp"

#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Two notes each way between a pair of ranks. Notes are untagged, so that every tag is the engine's.
///
/// Hello:    at construction, both ways, before all messages; it makes the connection and shows that it
///           works. The lower rank sends first, so that a pair does not make two connections at once.
/// Goodbye:  from a rank that leaves, with the number of messages that it has sent. The receiver waits for
///           those, in any order; then it reports that rank as lost.
/// Proof:    each note has an HMAC, under a key of the pair and of this construction, derived from both
///           ranks' nonces, which came over the control connections. A note recorded from another transport
///           or job does not verify, nor does a note that is reflected to its sender.
/// Cost:     two receives a peer, posted once; one branch a poll while no rank leaves.
/// Errors:   `unreachable` and `timeout` at construction, naming the peer; later the peer is lost.
class ofi_handshake {
  public:
    static constexpr std::size_t posts_a_peer = 3;

    HERRING_SETUP ofi_handshake(world& ranks, ofi_channel& channel, ofi_sleep& sleep)
        : ranks_(ranks), channel_(channel), sleep_(sleep), states_(channel.peers().size()),
          notes_(states_.size()), posts_(posts_a_peer * states_.size()) {
        for (std::size_t i = 0; i < posts_.size(); ++i) {
            posts_[i].what = static_cast<ofi_post::kind>(ofi_post::hello + i % posts_a_peer);
            posts_[i].peer = static_cast<std::uint32_t>(i / posts_a_peer);
        }
    }
    /// Registers the memory of notes. Called once the endpoint is open.
    HERRING_SETUP void register_memory() {
        channel_.register_memory({reinterpret_cast<std::byte*>(notes_.data()), notes_.size() * sizeof(notes)},
                                 -1);
    }

    /// Exchanges hellos with all peers. `look()` reads completions and returns their number.
    template <class Look>
    HERRING_SETUP void greet(ofi_facts const& tag, time_point deadline, Look const& look) {
        agree_on_keys(deadline);
        for (ofi_peer& p : channel_.peers())
            while (!p.is_lost && !expect(p)) wait_for_hellos(tag, deadline, look);
        for (;;) {
            bool complete = true;
            for (ofi_peer& p : channel_.peers()) {
                state& s = of(p);
                if (!s.greeting && !p.is_lost && (p.rank > ranks_.rank() || s.greeted))
                    s.greeting = say(p, note::hello);
                complete = complete && s.greeted && s.greeting && !s.writing;
            }
            if (complete) return;
            wait_for_hellos(tag, deadline, look);
        }
    }

    /// Sends a goodbye to the peers that stay, for `goodbye_timeout` at most.
    template <class Look> HERRING_SETUP void say_goodbye(Look const& look) noexcept {
        time_point const until = clock::now() + goodbye_timeout;
        look(); // some peers may have left already
        for (bool complete = false; !complete && clock::now() < until;) {
            complete = true;
            for (ofi_peer& p : channel_.peers()) {
                state& s = of(p);
                if (p.is_lost || s.leaving) continue;
                if (!s.parting) s.parting = say(p, note::goodbye);
                complete =
                    complete && s.parting && !s.writing && (channel_.closes_in_flight() || p.sending == 0);
            }
            if (look() == 0 && !complete) sleep_.nap();
        }
    }

    /// Handles a note that was sent or received.
    HERRING_SETUP void done(ofi_post const& o) noexcept {
        if (o.what == ofi_post::note_out)
            states_[o.peer].writing = false;
        else
            hear(channel_.peers()[o.peer],
                 o.what == ofi_post::hello ? notes_[o.peer].hello : notes_[o.peer].goodbye);
    }
    HERRING_SETUP void failed(ofi_post const& o) noexcept {
        if (o.what == ofi_post::note_out) states_[o.peer].writing = false;
    }
    /// True if a post is of a note.
    bool owns(ofi_post const* o) const noexcept { return posts_.begin() <= o && o < posts_.end(); }

    /// True if a peer has said goodbye and is not lost yet.
    bool has_departures() const noexcept { return leaving_ > 0; }
    /// Reports peers that have said goodbye as lost: a peer once its messages are received and those to it
    /// are taken, or when no message has moved for `drain_timeout`, for some may have no receive. Time in
    /// which this rank did not poll does not count.
    HERRING_SETUP void retire_departed() noexcept {
        time_point const now = clock::now();
        leaving_ = 0;
        for (ofi_peer& p : channel_.peers()) {
            state& s = of(p);
            if (!s.leaving || p.is_lost) continue;
            std::uint64_t const moved = p.received + p.sent;
            s.still = moved == s.moved ? s.still + counted_time(now - s.looked) : clock::duration(0);
            s.moved = moved;
            s.looked = now;
            if ((p.received < s.announced || p.sending > 0) && s.still < drain_timeout) {
                ++leaving_;
                continue;
            }
            std::snprintf(
                p.reason, sizeof p.reason,
                "it destroyed its reducer while others still wait for it; let every rank make the same "
                "calls");
            channel_.lose(p, errc::peer_lost);
        }
    }

  private:
    // goodbye_timeout: for sending a goodbye; drain_timeout: without progress of the announced messages.
    static constexpr std::chrono::milliseconds goodbye_timeout{200}, drain_timeout{250};

    struct note {
        enum kind : std::uint32_t { nothing = 0, hello = 0x6f6c6c68, goodbye = 0x65796273 };
        std::uint64_t job = 0;
        std::uint32_t what = nothing; ///< `nothing` is 0: a message that is too short is no hello
        std::uint32_t rank = 0;
        std::uint64_t messages = 0; ///< of a goodbye: sent and complete
        sha256_digest proof{};      ///< of the fields above
    };
    struct notes {
        note hello, goodbye, out;
    };
    struct state {
        secret_key key{};            // of the proofs, both ways
        bool greeted = false;        // the peer's hello is received
        bool greeting = false;       // this rank's hello is posted
        bool leaving = false;        // the peer's goodbye is received
        bool parting = false;        // this rank's goodbye is posted
        bool writing = false;        // a note is in flight
        int expected = 0;            // posted receives of notes
        std::uint64_t announced = 0; // messages, by the peer's goodbye
        // While the peer leaves: messages that have moved, time of the last look, time without movement.
        std::uint64_t moved = 0;
        time_point looked{};
        clock::duration still{};
    };

    state& of(ofi_peer const& p) noexcept { return states_[channel_.place(p)]; }
    ofi_post& post(ofi_peer const& p, ofi_post::kind what) noexcept {
        return posts_[posts_a_peer * channel_.place(p) + static_cast<std::size_t>(what - ofi_post::hello)];
    }

    /// Derives the key of each pair, for this construction.
    HERRING_SETUP void agree_on_keys(time_point deadline) {
        auto const mine = random_nonce();
        auto const all = ranks_.all_gather(
            mine, std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()));
        for (ofi_peer const& p : channel_.peers()) {
            std::span<std::byte const> const theirs = std::as_const(all)[static_cast<std::size_t>(p.rank)];
            if (theirs.size() != mine.size())
                throw error(
                    errc::mismatch, ranks_.rank(), p.rank, "connect",
                    "it is in another collective; let every rank make the same calls in the same order");
            std::array<std::byte, 2 * sizeof mine> both{};
            bool const lower = ranks_.rank() < p.rank;
            std::copy(mine.begin(), mine.end(), both.begin() + (lower ? 0 : mine.size()));
            std::copy(theirs.begin(), theirs.end(), both.begin() + (lower ? mine.size() : 0));
            ranks_.derive_key(of(p).key.bytes(), "herring ofi notes 1", p.rank, both);
        }
    }
    /// Returns the proof of a note. It covers the sender's rank, so a note of one end is never valid from the
    /// other.
    HERRING_SETUP static sha256_digest prove(secret_key const& key, note const& said) noexcept {
        std::array<std::byte, 24> bytes{};
        put(bytes.data(), said.job);
        put(bytes.data() + 8, said.what);
        put(bytes.data() + 12, said.rank);
        put(bytes.data() + 16, said.messages);
        return hmac_sha256(key.bytes()).update(bytes).finish();
    }

    /// Posts the receives of both notes of a peer. False: not now.
    HERRING_SETUP bool expect(ofi_peer& p) noexcept {
        notes& into = notes_[channel_.place(p)];
        for (int& expected = of(p).expected; expected < 2; ++expected) {
            note& one = expected == 0 ? into.hello : into.goodbye;
            ofi_post& o = post(p, expected == 0 ? ofi_post::hello : ofi_post::goodbye);
            long const rc = channel_.call([&]() noexcept {
                ofi_endpoint& at = channel_.endpoint();
                return fi_recv(at.get(), &one, sizeof one, at.descriptor_of(&one), p.address, &o);
            });
            if (rc == 0) continue;
            if (rc != -FI_EAGAIN) channel_.refused(p, rc, sizeof one);
            return false;
        }
        return true;
    }
    HERRING_SETUP bool say(ofi_peer& p, note::kind what) noexcept {
        note& from = notes_[channel_.place(p)].out;
        from = {ranks_.job(), what, static_cast<std::uint32_t>(ranks_.rank()), p.sent, {}};
        from.proof = prove(of(p).key, from);
        long const rc = channel_.call([&]() noexcept {
            ofi_endpoint& at = channel_.endpoint();
            return fi_send(at.get(), &from, sizeof from, at.descriptor_of(&from), p.address,
                           &post(p, ofi_post::note_out));
        });
        if (rc != 0 && rc != -FI_EAGAIN) channel_.refused(p, rc, sizeof from);
        return of(p).writing = rc == 0;
    }

    HERRING_SETUP void hear(ofi_peer& p, note const& heard) noexcept {
        if (p.is_lost) return;
        state& s = of(p);
        if (heard.job != ranks_.job() || heard.rank != static_cast<std::uint32_t>(p.rank) ||
            heard.what != (s.greeted ? note::goodbye : note::hello) ||
            !equal_in_constant_time(heard.proof, prove(s.key, heard))) {
            std::snprintf(p.reason, sizeof p.reason, "it sent what is neither its hello nor its goodbye");
            return channel_.lose(p, errc::protocol);
        }
        if (!s.greeted) {
            s.greeted = true; // no rank leaves before all hellos are exchanged: the next note is its goodbye
            return;
        }
        s.leaving = true;
        s.announced = heard.messages;
        s.moved = p.received + p.sent;
        s.looked = clock::now();
        ++leaving_;
    }

    /// Sleeps while hellos are due; throws at the deadline.
    template <class Look>
    HERRING_SETUP void wait_for_hellos(ofi_facts const& tag, time_point deadline, Look const& look) {
        ranks_.check();
        if (look() == 0) sleep_.nap();
        ranks_.check();
        for (ofi_peer const& p : channel_.peers())
            if (p.is_lost)
                throw error(errc::unreachable, ranks_.rank(), p.rank, "connect",
                            {"provider '", tag.libfabric, "': ", p.reason});
        if (clock::now() < deadline) return;
        for (ofi_peer const& p : channel_.peers()) {
            state const& s = of(p);
            if (!s.greeted || !s.greeting || s.writing)
                throw error(errc::timeout, ranks_.rank(), p.rank, "connect",
                            {"provider '", tag.libfabric,
                             "': no hello from that rank within the deadline; this one is at ",
                             ranks_.local_address(),
                             "; is a firewall between the hosts, or its HERRING_INTERFACE not "
                             "routable from here?"});
        }
    }

    world& ranks_;
    ofi_channel& channel_;
    ofi_sleep& sleep_;
    fixed_array<state> states_; // by peer_id
    fixed_array<notes> notes_;
    fixed_array<ofi_post> posts_;
    int leaving_ = 0; // peers with a goodbye that were not lost at the last `retire_departed`
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_HANDSHAKE_HPP

// herring: hello and goodbye over libfabric: how a pair of ranks shows that it is connected, and how one tells that it leaves.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_GREETINGS_HPP
#define HERRING_TRANSPORT_OFI_GREETINGS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/failure/stall_detector.hpp"
#include "herring/error.hpp"
#include "herring/transport/ofi/line.hpp"
#include "herring/transport/ofi/select.hpp"
#include "herring/transport/ofi/sleep.hpp"
#include "herring/world.hpp"

#include <rdma/fi_endpoint.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace HERRING_NAMESPACE::detail {

/// What a pair of ranks say to each other that is no message of the engine's: two notes each way, not tagged, so that
/// every tag is the engine's.
///
/// Hello:    at construction, both ways, before anything else; it makes the connection and shows that it works. The
///           lower rank speaks first: two that connect to each other at once are work for nothing.
/// Goodbye:  from who leaves, with the number of messages that it has got rid of, so that the receiver waits for them, in
///           whatever order they come. Then who left is lost to it.
/// Cost:     two receives a peer, posted once; one branch a poll while nobody leaves.
/// Errors:   `unreachable` and `timeout` at construction, naming the peer; later the peer is lost.
class ofi_greetings {
  public:
    static constexpr std::size_t posts_a_peer = 3;

    HERRING_SETUP ofi_greetings(world& ranks, ofi_line& line, ofi_sleep& sleep)
        : ranks_(ranks), line_(line), sleep_(sleep), states_(line.peers().size()), notes_(states_.size()),
          posts_(posts_a_peer * states_.size()) {
        for (std::size_t i = 0; i < posts_.size(); ++i) {
            posts_[i].what = static_cast<ofi_post::kind>(ofi_post::hello + i % posts_a_peer);
            posts_[i].peer = static_cast<std::uint32_t>(i / posts_a_peer);
        }
    }
    /// Once the endpoint is open.
    HERRING_SETUP void register_memory() {
        line_.register_memory({reinterpret_cast<std::byte*>(notes_.data()), notes_.size() * sizeof(notes)},
                              -1);
    }

    /// Says hello to all peers and hears theirs. `look()` reads completions and returns how many there were.
    template <class Look>
    HERRING_SETUP void greet(ofi_facts const& tag, time_point deadline, Look const& look) {
        for (ofi_peer& p : line_.peers())
            while (!p.is_lost && !expect(p)) turn(tag, deadline, look);
        for (;;) {
            bool complete = true;
            for (ofi_peer& p : line_.peers()) {
                state& s = of(p);
                if (!s.greeting && !p.is_lost && (p.rank > ranks_.rank() || s.greeted))
                    s.greeting = say(p, note::hello);
                complete = complete && s.greeted && s.greeting && !s.writing;
            }
            if (complete) return;
            turn(tag, deadline, look);
        }
    }

    /// Says goodbye to those who stay, as far as that can be done in `farewell`.
    template <class Look> HERRING_SETUP void part(Look const& look) noexcept {
        time_point const until = clock::now() + farewell;
        look(); // who has left already?
        for (bool complete = false; !complete && clock::now() < until;) {
            complete = true;
            for (ofi_peer& p : line_.peers()) {
                state& s = of(p);
                if (p.is_lost || s.leaving) continue;
                if (!s.parting) s.parting = say(p, note::goodbye);
                complete =
                    complete && s.parting && !s.writing && (line_.closes_in_flight() || p.sending == 0);
            }
            if (look() == 0 && !complete) sleep_.nap();
        }
    }

    /// A note is out, or here.
    HERRING_SETUP void done(ofi_post const& o) noexcept {
        if (o.what == ofi_post::note_out)
            states_[o.peer].writing = false;
        else
            hear(line_.peers()[o.peer],
                 o.what == ofi_post::hello ? notes_[o.peer].hello : notes_[o.peer].goodbye);
    }
    HERRING_SETUP void failed(ofi_post const& o) noexcept {
        if (o.what == ofi_post::note_out) states_[o.peer].writing = false;
    }
    /// Whether it is a post of these.
    bool owns(ofi_post const* o) const noexcept { return posts_.begin() <= o && o < posts_.end(); }

    /// Whether a peer has said goodbye that is not lost yet.
    bool anyone_leaves() const noexcept { return leaving_ > 0; }
    /// Who has said goodbye is lost once all that it sent is here, and it has all that was sent to it; or when nothing
    /// has moved for `grace`, for there may be no receive for some of it. Times in which this rank did not look do not
    /// count.
    HERRING_SETUP void see_off() noexcept {
        time_point const now = clock::now();
        leaving_ = 0;
        for (ofi_peer& p : line_.peers()) {
            state& s = of(p);
            if (!s.leaving || p.is_lost) continue;
            std::uint64_t const moved = p.received + p.sent;
            s.still = moved == s.moved ? s.still + counted_time(now - s.looked) : clock::duration(0);
            s.moved = moved;
            s.looked = now;
            if ((p.received < s.announced || p.sending > 0) && s.still < grace) {
                ++leaving_;
                continue;
            }
            std::snprintf(
                p.reason, sizeof p.reason,
                "it destroyed its reducer while others still wait for it; let every rank make the same "
                "calls");
            line_.lose(p, errc::peer_lost);
        }
    }

  private:
    // How long who leaves tries to say so, and for how long nothing of what it announced may come.
    static constexpr std::chrono::milliseconds farewell{200}, grace{250};

    struct note {
        enum kind : std::uint32_t { hello = 0x6f6c6c68, goodbye = 0x65796273 };
        std::uint64_t job = 0;
        std::uint32_t what = hello;
        std::uint32_t rank = 0;
        std::uint64_t messages = 0; ///< with a goodbye: that were sent to the end
    };
    struct notes {
        note hello, goodbye, out;
    };
    struct state {
        bool greeted = false;        // its hello is here
        bool greeting = false;       // this rank's is on its way, or there
        bool leaving = false;        // its goodbye is here
        bool parting = false;        // this rank's is on its way, or there
        bool writing = false;        // a note is on its way
        int expected = 0;            // notes that it can be heard by
        std::uint64_t announced = 0; // with its goodbye
        // While it leaves: what has moved, and for how long nothing did.
        std::uint64_t moved = 0;
        time_point looked{};
        clock::duration still{};
    };

    state& of(ofi_peer const& p) noexcept { return states_[line_.place(p)]; }
    ofi_post& post(ofi_peer const& p, ofi_post::kind what) noexcept {
        return posts_[posts_a_peer * line_.place(p) + static_cast<std::size_t>(what - ofi_post::hello)];
    }

    /// Both of a peer's notes can come from now on. False: not now.
    HERRING_SETUP bool expect(ofi_peer& p) noexcept {
        notes& into = notes_[line_.place(p)];
        for (int& expected = of(p).expected; expected < 2; ++expected) {
            note& one = expected == 0 ? into.hello : into.goodbye;
            ofi_post& o = post(p, expected == 0 ? ofi_post::hello : ofi_post::goodbye);
            long const rc = line_.call([&]() noexcept {
                ofi_endpoint& at = line_.endpoint();
                return fi_recv(at.get(), &one, sizeof one, at.descriptor_of(&one), p.address, &o);
            });
            if (rc == 0) continue;
            if (rc != -FI_EAGAIN) line_.refused(p, rc, sizeof one);
            return false;
        }
        return true;
    }
    HERRING_SETUP bool say(ofi_peer& p, note::kind what) noexcept {
        note& from = notes_[line_.place(p)].out;
        from = {ranks_.job(), what, static_cast<std::uint32_t>(ranks_.rank()), p.sent};
        long const rc = line_.call([&]() noexcept {
            ofi_endpoint& at = line_.endpoint();
            return fi_send(at.get(), &from, sizeof from, at.descriptor_of(&from), p.address,
                           &post(p, ofi_post::note_out));
        });
        if (rc != 0 && rc != -FI_EAGAIN) line_.refused(p, rc, sizeof from);
        return of(p).writing = rc == 0;
    }

    HERRING_SETUP void hear(ofi_peer& p, note const& heard) noexcept {
        if (p.is_lost) return;
        state& s = of(p);
        if (heard.job != ranks_.job() || heard.rank != static_cast<std::uint32_t>(p.rank) ||
            heard.what != (s.greeted ? note::goodbye : note::hello)) {
            std::snprintf(p.reason, sizeof p.reason, "it sent what is neither its hello nor its goodbye");
            return line_.lose(p, errc::protocol);
        }
        if (!s.greeted) {
            s.greeted = true; // nobody leaves before all have been greeted: what comes next is its goodbye
            return;
        }
        s.leaving = true;
        s.announced = heard.messages;
        s.moved = p.received + p.sent;
        s.looked = clock::now();
        ++leaving_;
    }

    /// Lets time pass while hellos are due.
    template <class Look>
    HERRING_SETUP void turn(ofi_facts const& tag, time_point deadline, Look const& look) {
        ranks_.check();
        if (look() == 0) sleep_.nap();
        ranks_.check();
        for (ofi_peer const& p : line_.peers())
            if (p.is_lost)
                throw error(errc::unreachable, ranks_.rank(), p.rank, "connect",
                            {"provider '", tag.libfabric, "': ", p.reason});
        if (clock::now() < deadline) return;
        for (ofi_peer const& p : line_.peers()) {
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
    ofi_line& line_;
    ofi_sleep& sleep_;
    fixed_array<state> states_; // by the place of the peer
    fixed_array<notes> notes_;
    fixed_array<ofi_post> posts_;
    int leaving_ = 0; // peers that said goodbye, and were not lost when `see_off` looked last
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_GREETINGS_HPP

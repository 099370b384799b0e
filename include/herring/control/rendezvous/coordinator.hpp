// herring: rank 0's end of a star: lets ranks in, completes collectives, tells every failure to all.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_COORDINATOR_HPP
#define HERRING_CONTROL_RENDEZVOUS_COORDINATOR_HPP

#include "herring/base/address.hpp"
#include "herring/base/config.hpp"
#include "herring/base/identity.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/endpoint.hpp"
#include "herring/control/rendezvous/link.hpp"
#include "herring/control/rendezvous/pending_collective.hpp"
#include "herring/control/rendezvous/registration.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/error.hpp"
#include "herring/plan/topology.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::star {

inline constexpr int pending_limit = 64; // connections of whoever has not said who it is

/// Rank 0. Every other rank connects to it, says hello, and is let in or refused; strangers cost one of
/// `pending_limit` places for at most `pending_time`.
class hub final : public star_end {
  public:
    HERRING_SETUP explicit hub(settings&& from)
        : star_end(std::move(from)), door_(own_hello()), tally_(is_.size) {}
    ~hub() { stop(); }

  private:
    friend class star_end;

    void begin() {
        local_address_ = local_end(is_.listeners.at(0)).address();
        watch_listeners();
    }

    /// Nobody else came in time.
    HERRING_SETUP void give_up() {
        stage_ = stage::refused;
        why_not_ =
            door_.timed_out(admission::absent(links_.places()), is_.hub_text, is_.timeout, last_trouble_);
        links_.send_all(message::refuse, 0, write_failure(why_not_));
    }

    /// What is due at `now`; when something is due next.
    HERRING_SETUP time_point before_sleep(time_point now) {
        time_point next = time_point::max();
        if (judging_ && !failed()) {
            judge(now);
            next = now + std::chrono::milliseconds(10); // rank 0's own caller answers by a word in memory
        }
        if (unread_ && !judging_ && !failed()) {
            if (now >= look_at_) {
                look_for_deadlock();
                look_at_ = now + std::chrono::milliseconds(250); // many ranks, one look
            } else {
                next = std::min(next, look_at_);
            }
        }
        if (paused_ && now >= resume_at_) {
            paused_ = false;
            watch_listeners();
        }
        if (paused_) next = std::min(next, resume_at_);
        if (stage_ != stage::joining) return next;
        if (now >= tick_at_) {
            tick_at_ = now + std::chrono::seconds(1);
            tell_missing();
        }
        return std::min(next, tick_at_);
    }

    void overslept(clock::duration late) noexcept { verdict_at_ += late; }

    // ---- connections --------------------------------------------------------------------------------------

    static constexpr std::uint64_t listener_key = std::uint64_t{0xFFFFFFFF} << 32;

    HERRING_SETUP void watch_listeners() noexcept {
        for (std::size_t i = 0; i < is_.listeners.size(); ++i)
            thread_.watch(is_.listeners[i], listener_key + i, EPOLLIN);
    }

    /// Whether what happened at `key` was at a listener.
    HERRING_SETUP bool occurred(std::uint64_t key) {
        if (key < listener_key) return false;
        if (key - listener_key < is_.listeners.size()) accept(is_.listeners[key - listener_key]);
        return true;
    }

    HERRING_SETUP void accept(int listener) {
        for (int i = 0; i < 16; ++i) {
            endpoint who;
            who.size = sizeof who.raw;
            int const socket = ::accept4(listener, who.get(), &who.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (socket < 0) {
                if (errno == EINTR || errno == ECONNABORTED) continue;
                if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                    last_trouble_ = text({"accept: ", std::strerror(errno)});
                    if (!drop_oldest()) pause();
                }
                return;
            }
            int pending = 0;
            for (link const& l : links_.all()) pending += l.pending();
            if (pending >= pending_limit) drop_oldest();
            link& l = links_.open(socket, who.text(), EPOLLIN);
            tune(socket, is_.times.dead);
            receive(l); // what it says is often here already
        }
    }

    /// Makes room among those who have not said who they are: a rank says it at once, so the oldest is the
    /// likeliest to be none; if it is one, it connects again.
    HERRING_SETUP bool drop_oldest() {
        link* oldest = nullptr;
        for (link& l : links_.all())
            if (l.pending() && (oldest == nullptr || l.serial < oldest->serial)) oldest = &l;
        if (oldest == nullptr) return false;
        receive(*oldest);
        if (oldest->pending()) stranger(*oldest);
        return true;
    }

    /// Out of descriptors: a listener that stays readable would keep the thread from sleeping.
    HERRING_SETUP void pause() noexcept {
        if (paused_) return;
        paused_ = true;
        resume_at_ = clock::now() + std::chrono::milliseconds(100);
        for (int const l : is_.listeners) thread_.forget(l);
    }

    void connected(link&) noexcept {} // rank 0 connects to nobody

    HERRING_SETUP void stranger(link& l) noexcept {
        if (!l.refused) door_.count_stranger();
        close_link(l);
    }

    void expired(link& l) noexcept { stranger(l); }

    HERRING_SETUP void ended(link& l, int why) {
        if (l.rank < 0) {
            stranger(l);
        } else if (stage_ == stage::joining) {
            close_link(l); // its place is free again
            last_trouble_ = text({"rank ", l.rank, " (", l.from, ") left before all were here"});
        } else {
            lost(l, why);
        }
    }

    // ---- joining ------------------------------------------------------------------------------------------

    void heard(link& from, head const& h, std::span<std::byte const> body) {
        from.rank < 0 ? heard_newcomer(from, h, body) : heard_member(from, h, body);
    }

    HERRING_SETUP void heard_newcomer(link& from, head const& h, std::span<std::byte const> body) {
        if (!admission::speaks(h)) return refuse(from, h.rank, admission::other_version(h));
        hello said;
        if (h.type != message::hello || !said.read(body) || said.rank != h.rank) return stranger(from);
        refusal why;
        if (door_.refuses(said, links_.places(), stage_ != stage::joining, why))
            return refuse(from, said.rank, why);
        link*& place = links_.places()[said.rank];
        if (place != nullptr) close_link(*place); // the same process, on a new connection
        place = &from;
        from.rank = static_cast<int>(said.rank);
        from.until = time_point::max();
        door_.admit(said);
        if (admission::absent(links_.places()).empty()) welcome();
    }

    HERRING_SETUP void refuse(link& l, std::uint32_t rank, refusal const& why) {
        links_.send(l, message::refuse, why.again ? 1 : 0,
                    write_failure(door_.count_refusal(rank, l.from, why)));
        if (!l.open()) return;
        l.refused = true;
        links_.finish(l);
    }

    /// Everyone is here: who is on which node and machine.
    HERRING_SETUP void welcome() {
        fixed_array<std::string> nodes(at(is_.size)), boots(at(is_.size));
        for (std::size_t r = 0; r < nodes.size(); ++r) {
            nodes[r] = door_.hellos()[r].node;
            boots[r] = door_.hellos()[r].boot;
        }
        job_ = random_bits();
        node_ids_ = topology::of_names({nodes.data(), nodes.size()}).node_of;
        machine_ids_ = topology::of_names({boots.data(), boots.size()}).node_of;
        byte_buffer body;
        append<std::uint64_t>(body, job_);
        append<std::uint64_t>(body, static_cast<std::uint64_t>(is_.asked.peer.count()));
        append<std::uint64_t>(body, static_cast<std::uint64_t>(is_.asked.call.count()));
        for (std::size_t r = 0; r < nodes.size(); ++r) {
            append<std::uint32_t>(body, static_cast<std::uint32_t>(node_ids_[r]));
            append<std::uint32_t>(body, static_cast<std::uint32_t>(machine_ids_[r]));
        }
        stage_ = stage::joined;
        for (link* const place : links_.places())
            if (place != nullptr) place->heard = clock::now(); // until now nothing was expected of it
        links_.send_all(message::welcome, 0, body);
        lock_.notify_all();
    }

    HERRING_SETUP void tell_missing() {
        std::vector<int> const ranks = admission::absent(links_.places());
        byte_buffer body;
        append<std::uint32_t>(body, ranks.empty() ? 0u : static_cast<std::uint32_t>(ranks[0]));
        append(body, rank_list(ranks));
        links_.send_all(message::missing, 0, body);
    }

    // ---- collectives and failures -------------------------------------------------------------------------

    HERRING_SETUP void take_part(message kind, std::uint64_t sequence, std::span<std::byte const> mine,
                                 time_point deadline) {
        time_point const started = clock::now();
        arrive(0, kind, mine);
        if (wait_until_done(sequence, deadline)) return;
        report_late(0, clock::now() - started);
        thread_.wake();
        if (!wait_until_done(sequence, clock::now() + is_.times.verdict)) set_failure(accused_);
    }

    HERRING_SETUP void heard_member(link& from, head const& h, std::span<std::byte const> body) {
        int const rank = from.rank;
        if (h.rank != static_cast<std::uint32_t>(rank) || h.version != protocol_version)
            return nonsense(from, "a message in the name of another rank or version");
        switch (h.type) {
        case message::barrier:
        case message::give:
            if (stage_ != stage::joined || h.sequence != done_ + 1 || tally_.has(rank))
                return nonsense(from, "a collective out of turn");
            return arrive(rank, h.type, body);
        case message::late:
            if (h.sequence == done_ + 1 && !tally_.empty()) {
                reader in{body};
                report_late(rank, std::chrono::milliseconds(in.number<std::uint64_t>() & 0xFFFFFFFFFFu));
            }
            return;
        case message::fail:
            return heard_failure(from, body);
        case message::goodbye:
            left(from, rank);
            if (!tally_.empty() && !tally_.has(rank)) set_failure(gone(rank, doing()));
            return;
        case message::alive:
            return;
        case message::accuse: {
            failure why;
            if (!read_failure(body, why) || why.peer >= is_.size)
                return nonsense(from, "a suspicion that cannot be read");
            why.reporter = rank;
            return accuse(why, h.sequence == 1);
        }
        case message::stands: {
            blocked_report report;
            if (!read_report(body, report)) return nonsense(from, "a report that cannot be read");
            reports()[at(rank)] = report;
            return;
        }
        case message::answer:
            if (!judging_ || h.sequence != question_.load(std::memory_order_relaxed) ||
                !read_answer(body, is_.size, answers_[at(rank)]))
                return nonsense(from, "an answer to nothing that was asked");
            return;
        default:
            return nonsense(from, "a message that a member never sends");
        }
    }

    /// `rank` is at the collective that is open.
    HERRING_SETUP void arrive(int rank, message kind, std::span<std::byte const> given) {
        // Or who comes late would complete what the others are told has failed.
        if (failed() || judging_) return;
        if (int const other = tally_.at_odds_with(kind); other >= 0) {
            char const* const theirs = name(tally_.of(other));
            return set_failure(
                failure::make(errc::mismatch, other, rank, theirs,
                              {"it called ", name(kind), " where rank ", other, " called ", theirs,
                               "; let every rank make the same calls in the same order"}));
        }
        tally_.add(rank, kind, given);
        for (int r = 0; r < is_.size; ++r)
            if (left_[at(r)] && !tally_.has(r)) return set_failure(gone(r, name(kind)));
        if (!tally_.complete()) return;
        byte_buffer body = tally_.take();
        if (body.size() > body_limit)
            return set_failure(failure::make(errc::no_resources, 0, -1, name(kind),
                                             {body.size(), " bytes in all; give less to each all_gather"}));
        ++done_;
        links_.send_all(message::done, done_, body);
        result_ = std::move(body);
        lock_.notify_all();
    }

    /// The deadline of `by` has passed.
    HERRING_SETUP void report_late(int by, clock::duration waited) {
        std::vector<int> const missing = tally_.absent();
        if (!judging_) missing_ = true;
        accuse(failure::make(errc::timeout, by, missing.empty() ? -1 : missing[0], name(tally_.kind()),
                             late_text(missing, waited)),
               false);
    }

    // ---- judgement ----------------------------------------------------------------------------------------

    fixed_array<blocked_report>& reports() {
        if (reports_.size() == 0) reports_ = fixed_array<blocked_report>(at(is_.size));
        unread_ = true;
        return reports_;
    }

    /// With a beat: what has come in since the last one proves a deadlock, or not.
    HERRING_SETUP void stands(blocked_report const& mine) { reports()[0] = mine; }
    HERRING_SETUP void look_for_deadlock() {
        unread_ = false;
        deadlock const found = find_deadlock({reports_.data(), reports_.size()}, false);
        if (found.rank >= 0) set_failure(describe(found));
    }

    /// The first suspicion_report ends the world, in the name of whoever is to blame; only that is still open. All ranks are
    /// asked at once whom they wait for; the thread judges, before it sleeps again.
    HERRING_SETUP void accuse(failure const& why, bool certain) {
        if (failed() || judging_) return;
        judging_ = true;
        accused_ = why;
        certain_ = certain;
        answers_ = fixed_array<wait_report>(at(is_.size));
        verdict_at_ = clock::now() + is_.times.answer;
        std::uint32_t const question = question_.fetch_add(1) + 1;
        links_.send_all(message::ask, question, {});
    }

    /// The verdict, if what is known by now allows one. In the thread only, which has read what has come in, and knows
    /// whether it was away itself.
    HERRING_SETUP void judge(time_point now) {
        if (!judging_ || failed()) return;
        auto const of = [&](int r) noexcept {
            link const* const place = links_.places()[at(r)];
            wait_report heard = r == 0 ? own_wait_report() : answers_[at(r)];
            if (left_[at(r)]) return wait_report{rank_state::left, -1};
            if (heard.how != rank_state::unheard) return heard;
            bool const hopeless = r != 0 && (place == nullptr || silent(*place, now) >= is_.times.suspected);
            if (hopeless || now >= verdict_at_) heard.how = rank_state::silent;
            return heard;
        };
        if (accused_.peer < 0) return set_failure(accused_);
        if (certain_) {
            // What it had to say of a failure elsewhere it has said before it answers.
            if (of(accused_.peer).how != rank_state::unheard) set_failure(accused_);
            return;
        }
        std::vector<int> const missing = missing_ ? tally_.absent() : std::vector<int>();
        std::span<int const> const whom = missing_ ? missing : std::span<int const>(&accused_.peer, 1);
        root_cause const found = detail::find_root_cause(accused_.reporter, whom, is_.size, of);
        if (found.reached()) set_failure(describe(accused_, found));
    }

    admission door_;
    tally tally_;
    time_point tick_at_{}; // when those who have joined are told next who is missing
    time_point resume_at_{};
    bool paused_ = false;

    fixed_array<blocked_report> reports_; // rank → its last; of no size until there is one
    bool unread_ = false;
    time_point look_at_{};

    bool judging_ = false;
    failure accused_{};
    bool certain_ = false; // the accused is lost
    bool missing_ = false; // accused are all that are missing in the collective that is open
    fixed_array<wait_report> answers_;
    time_point verdict_at_{}; // who has not answered by then is silent
};

} // namespace HERRING_NAMESPACE::detail::star

#endif // HERRING_CONTROL_RENDEZVOUS_COORDINATOR_HPP

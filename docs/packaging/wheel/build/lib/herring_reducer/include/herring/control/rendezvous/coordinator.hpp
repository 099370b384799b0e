// herring: rank 0's end: completes collectives, announces every failure, finds root causes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_COORDINATOR_HPP
#define HERRING_CONTROL_RENDEZVOUS_COORDINATOR_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/acceptor.hpp"
#include "herring/control/rendezvous/carried_world.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/pending_collective.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/split.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/control/wire/messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// Rank 0. Every other rank is connected to it.
class coordinator final : public acceptor {
  public:
    HERRING_SETUP explicit coordinator(settings&& from)
        : acceptor(std::move(from)), vouched_(at(settings_.size)) {}
    ~coordinator() { stop(); }

  private:
    friend class control_endpoint<coordinator>;

    /// Does the work that is due at `now`; returns when more is due.
    HERRING_SETUP time_point run_due(time_point now) {
        time_point next = time_point::max();
        for (carried_world& w : worlds_) {
            if (!w.probes.active() || w.failed()) continue;
            look_for_root_cause(w, now);
            next = now + std::chrono::milliseconds(10); // the caller of rank 0 replies by a word in memory
        }
        if (unread_ && !failed()) {
            if (now >= look_at_) {
                unread_ = false;
                std::span<blocked_report> const reports(reports_.data(), reports_.size());
                drop_ended_waits(reports, [this](std::uint64_t number) {
                    carried_world const* const w = world_with(number);
                    return w != nullptr && !w->failed();
                });
                deadlock_search const all(reports, false);
                for (carried_world& w : worlds_)
                    if (!w.probes.active() && !w.failed()) look_for_deadlock(w, all);
                look_at_ = now + std::chrono::milliseconds(250); // one look for the reports of many ranks
            } else {
                next = std::min(next, look_at_);
            }
        }
        return std::min(next, look_after_joins(now));
    }

    void on_own_stall(clock::duration late) noexcept {
        for (carried_world& w : worlds_) w.probes.postpone(late);
    }

    /// True if the event was at a listener.
    HERRING_SETUP bool on_event(std::uint64_t key) {
        return on_listener(key, [this](connection& c) { receive(c); });
    }

    void on_message(connection& from, head const& h, std::span<std::byte const> body) {
        if (from.rank < 0) return on_newcomer(from, h, body);
        connections_.is_candidate(from) ? on_candidate(from, h, body) : on_participant(from, h, body);
    }

    // ---- collectives and failures -------------------------------------------------------------------------

    HERRING_SETUP void run_collective(carried_world& w, message_kind kind, std::uint64_t number,
                                      std::span<std::byte const> mine, time_point deadline) {
        time_point const started = clock::now();
        arrive(w, w.rank, kind, mine);
        if (wait_until_done(w, number, deadline)) return;
        on_deadline_passed(w, w.rank, clock::now() - started);
        thread_.wake();
        if (!wait_for_verdict(w, number)) set_failure(w, w.probes.suspicion());
    }

    HERRING_SETUP void on_participant(connection& from, head const& h, std::span<std::byte const> body) {
        int const rank = from.rank;
        if (stage_ == stage::joining)
            return on_unidentified(from); // a rank waits for the welcome: its place is free again
        if (h.rank != static_cast<std::uint32_t>(rank) || h.version != protocol_version)
            return protocol_error(from, "a message in the name of another rank or version");
        switch (h.type) {
        case message_kind::barrier:
        case message_kind::contribute:
        case message_kind::split:
        case message_kind::deadline_passed:
        case message_kind::fail:
        case message_kind::suspicion:
        case message_kind::probe_reply: {
            carried_world* const w = world_with(world_of(h.sequence));
            int const there = w == nullptr ? -1 : w->rank_of(rank);
            if (there >= 0) return on_message_of(*w, there, from, h.type, number_of(h.sequence), body);
            // A rank that was given up may go on, and does not know which worlds are gone.
            return gone_[at(rank)] ? void() : protocol_error(from, "a message of a world that it is not in");
        }
        case message_kind::leave:
            if (number_of(h.sequence) != 0) has_left(from, rank);
            for (carried_world& w : worlds_)
                if (int const there = w.rank_of(rank);
                    there >= 0 && (gone_[at(rank)] || w.number == world_of(h.sequence)))
                    mark_left(w, there);
            return drop_deserted();
        case message_kind::heartbeat: {
            signs_of_life said;
            if (!said.read(body, at(settings_.size)))
                return protocol_error(from, "signs of life that cannot be read");
            on_acknowledgement(from, h);
            return on_signs(rank, said);
        }
        case message_kind::blocked: {
            blocked_report report;
            if (!read_report(body, report)) return protocol_error(from, "a report that cannot be read");
            reports()[at(rank)] = report;
            return;
        }
        default:
            return protocol_error(from, "a message that a participant never sends");
        }
    }

    /// Handles a message of `rank` about a world that it is in.
    HERRING_SETUP void on_message_of(carried_world& w, int rank, connection& from, message_kind type,
                                     std::uint64_t number, std::span<std::byte const> body) {
        switch (type) {
        case message_kind::deadline_passed:
            if (std::chrono::milliseconds waited{}; !read_wait(body, waited))
                protocol_error(from, "a time that cannot be read");
            else if (number == w.done + 1 && !w.pending.empty())
                on_deadline_passed(w, rank, waited);
            return;
        case message_kind::fail:
            return on_failure_message(from, w, body);
        case message_kind::suspicion: {
            failure why;
            if (number > 1 || !read_failure(body, at(w.size), why))
                return protocol_error(from, "a suspicion that cannot be read");
            why.reporter = rank;
            return suspect(w, why, number == 1);
        }
        case message_kind::probe_reply:
            if (!w.probes.active() || number != w.probe.load(std::memory_order_relaxed) ||
                !read_answer(body, w.size, w.probes.reply(rank)))
                protocol_error(from, "an answer to nothing that was asked");
            return;
        default: // a collective
            if (stage_ != stage::joined || number != w.done + 1 || w.pending.has(rank))
                return protocol_error(from, "a collective out of turn");
            if (split_choice said; type == message_kind::split && !said.read(body))
                return protocol_error(from, "a colour and a key that cannot be read");
            return arrive(w, rank, type, body);
        }
    }

    /// Enters `rank` in the pending collective.
    HERRING_SETUP void arrive(carried_world& w, int rank, message_kind kind,
                              std::span<std::byte const> given) {
        // A late arrival must not complete a collective that others are told has failed.
        if (w.failed() || w.probes.active()) return;
        if (int const other = w.pending.first_conflict(kind); other >= 0) {
            char const* const theirs = name(w.pending.of(other));
            return set_failure(
                w, failure::make(errc::mismatch, other, rank, theirs,
                                 {"it called ", name(kind), " where rank ", other, " called ", theirs,
                                  "; let every rank make the same calls in the same order"}));
        }
        w.pending.add(rank, kind, given);
        for (int r = 0; w.any_left && r < w.size; ++r)
            if (w.has_left(r) && !w.pending.has(r))
                return set_failure(w, departure(w.rank, r, name(kind), "its world was destroyed"));
        if (!w.pending.complete()) return;
        if (kind == message_kind::split && !make_groups(w))
            return set_failure(w, failure::make(errc::no_resources, w.rank, -1, name(kind),
                                                {"there were ", most_world, " groups before; join anew"}));
        byte_buffer body = w.pending.take();
        if (body.size() > body_limit)
            return set_failure(w,
                               failure::make(errc::no_resources, w.rank, -1, name(kind),
                                             {body.size(), " bytes in all; give less to each all_gather"}));
        ++w.done;
        send(w, message_kind::collective_result, w.done, body);
        w.result = std::move(body);
        lock_.notify_all();
    }

    /// All ranks have given colour and key: adds the groups, and puts their numbers into the result. False:
    /// numbers have run out.
    HERRING_SETUP bool make_groups(carried_world& w) {
        fixed_array<split_choice> choices(at(w.size));
        for (int r = 0; r < w.size; ++r) (void)choices[at(r)].read(w.pending.given(r));
        for (std::vector<int>& each : groups_of({choices.data(), choices.size()})) {
            if (groups_made_ == most_world) return false;
            ++groups_made_;
            for (int const r : each) choices[at(r)].group = groups_made_;
            bool const own = place_in(each, w.rank) >= 0;
            carried_world& made = add_group(w, groups_made_, std::move(each));
            if (own) w.group = &made;
        }
        for (int r = 0; r < w.size; ++r) w.pending.given(r) = choices[at(r)].write_result();
        return true;
    }

    /// Handles the passed deadline of `rank` in the pending collective.
    HERRING_SETUP void on_deadline_passed(carried_world& w, int rank, clock::duration waited) {
        std::vector<int> const missing = w.pending.absent();
        if (!w.probes.active()) w.blames_missing = true;
        suspect(w,
                failure::make(errc::timeout, rank, missing.empty() ? -1 : missing[0], name(w.pending.kind()),
                              late_text(missing, waited)),
                false);
    }

    // ---- the failure detector -----------------------------------------------------------------------------

    fixed_array<blocked_report>& reports() {
        if (reports_.size() == 0) reports_ = fixed_array<blocked_report>(at(settings_.size));
        unread_ = true;
        return reports_;
    }

    HERRING_SETUP void send_heartbeat(signs_of_life const& signs) {
        connections_.send_heartbeats({});
        if (signs.cut_off >= 0) on_cut(0, signs.cut_off);
    }

    /// Takes ranks whose data has come to `by` since its last heartbeat as alive then.
    HERRING_SETUP void on_signs(int by, signs_of_life const& said) {
        if (stage_ != stage::joined || failed()) return;
        clock::duration const beat = settings_.times.detector.heartbeat;
        time_point const then = clock::now() - beat;
        said.for_each([&](int r) {
            // Many may hear one rank: most of them say what is known.
            if (r == 0 || r == by || then - vouched_[at(r)] < beat / 8) return;
            vouched_[at(r)] = then;
            vouch(r, then);
        });
        if (said.cut_off >= 0) on_cut(by, said.cut_off);
    }

    /// Handles that `by` hears nothing of `rank` over their data connection. The network between the two is
    /// cut if both have long sent messages here without a pause: where one of them is lost, or a link is
    /// slow, there is a pause.
    HERRING_SETUP void on_cut(int by, int rank) {
        using namespace std::chrono_literals;
        time_point const now = clock::now();
        failure_detector_options const& times = settings_.times.detector;
        for (int const r : {by, rank}) {
            connection const* const place = connections_.places()[at(r)];
            if (r == 0) continue;
            if (gone_[at(r)] || place == nullptr || now - place->spoke >= hopeless_after(times) / 2 ||
                now - place->regular < times.peer_timeout)
                return;
            if (socket_report found; !found.read(place->socket) || found.queueing >= 250ms) return;
            if (now - place->lossy_at < 2 * times.peer_timeout) return; // packets are lost, but not all
        }
        for (carried_world& w : worlds_) {
            int const reporter = w.rank_of(by), peer = w.rank_of(rank);
            if (reporter < 0 || peer < 0) continue;
            set_failure(w,
                        failure::make(
                            errc::unreachable, reporter, peer, "control",
                            {"nothing comes from it to rank ", reporter, " over their data connection, for ",
                             duration_text(times.peer_timeout + times.reply_timeout),
                             " and more, though both give signs of life to rank 0: the network between "
                             "these two drops their packets: "
                             "see firewalls, routes and the MTU between their hosts"}));
        }
    }

    /// Enters what this rank waits for, with a heartbeat.
    HERRING_SETUP void report_blocked(blocked_report const& mine) { reports()[0] = mine; }

    /// Asks all ranks at once whom they wait for; the thread looks at the replies before it sleeps again.
    HERRING_SETUP void suspect(carried_world& w, failure const& why, bool certain) {
        if (w.failed() || w.probes.active()) return;
        w.probes.begin(why, certain, w.size, clock::now() + settings_.times.detector.reply_timeout);
        std::uint32_t const probe = w.probe.fetch_add(1) + 1;
        send(w, message_kind::probe, probe, {});
    }

    /// Ends a world one of whose ranks waits there as part of a deadlock.
    HERRING_SETUP void look_for_deadlock(carried_world& w, deadlock_search const& all) {
        deadlock found = all.in(w.number);
        if (found.rank < 0) return;
        found.rank = w.rank_of(found.rank);
        found.other = w.rank_of(found.other);
        if (found.rank >= 0 && found.other >= 0) set_failure(w, describe(found));
    }

    /// Decides on the root cause, if the replies allow it by now. Only in the thread, which has read all that
    /// has come in, and knows whether it was stopped itself.
    HERRING_SETUP void look_for_root_cause(carried_world& w, time_point now) {
        auto const state = [&](int r) noexcept {
            connection* const place = connections_.places()[at(w.joined(r))];
            wait_report reply = r == w.rank ? w.own_wait_report() : w.probes.reply(r);
            if (w.has_left(r)) return wait_report{rank_state::left, -1};
            if (reply.state != rank_state::unknown) return reply;
            bool const hopeless =
                r != w.rank &&
                (place == nullptr || silence(*place, now) >= hopeless_after(settings_.times.detector));
            if (!hopeless && !w.probes.expired(now)) return reply;
            if (place == nullptr || w.probes.expired(now, longest_hold_up(settings_.times.detector)) ||
                !held_up(*place, now))
                reply.state = rank_state::silent;
            return reply;
        };
        std::vector<int> const missing = w.blames_missing ? w.pending.absent() : std::vector<int>();
        failure const found = w.probes.verdict({missing.data(), missing.size()}, state);
        if (found.what != errc::ok) set_failure(w, found);
    }

    fixed_array<time_point> vouched_;     // rank → when its data last counted as a sign of its life
    fixed_array<blocked_report> reports_; // rank → its last report; of no size until there is one
    bool unread_ = false;
    time_point look_at_{};

    std::uint64_t groups_made_ = 0; // the number of the last one
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_COORDINATOR_HPP

// herring: rank 0's end: completes collectives, announces every failure, finds root causes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_COORDINATOR_HPP
#define HERRING_CONTROL_RENDEZVOUS_COORDINATOR_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/failure/probe_round.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/acceptor.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/pending_collective.hpp"
#include "herring/control/rendezvous/settings.hpp"
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
        : acceptor(std::move(from)), pending_(settings_.size) {}
    ~coordinator() { stop(); }

  private:
    friend class control_endpoint<coordinator>;

    /// Does the work that is due at `now`; returns when more is due.
    HERRING_SETUP time_point run_due(time_point now) {
        time_point next = time_point::max();
        if (probes_.active() && !failed()) {
            look_for_root_cause(now);
            next = now + std::chrono::milliseconds(10); // the caller of rank 0 replies by a word in memory
        }
        if (unread_ && !probes_.active() && !failed()) {
            if (now >= look_at_) {
                unread_ = false;
                deadlock const found = find_deadlock({reports_.data(), reports_.size()}, false);
                if (found.rank >= 0) set_failure(describe(found));
                look_at_ = now + std::chrono::milliseconds(250); // one look for the reports of many ranks
            } else {
                next = std::min(next, look_at_);
            }
        }
        return std::min(next, look_after_joins(now));
    }

    void on_own_stall(clock::duration late) noexcept { probes_.postpone(late); }

    /// True if the event was at a listener.
    HERRING_SETUP bool on_event(std::uint64_t key) {
        return on_listener(key, [this](connection& c) { receive(c); });
    }

    void on_message(connection& from, head const& h, std::span<std::byte const> body) {
        if (from.rank < 0) return on_newcomer(from, h, body);
        connections_.is_candidate(from) ? on_candidate(from, h, body) : on_participant(from, h, body);
    }

    // ---- collectives and failures -------------------------------------------------------------------------

    HERRING_SETUP void run_collective(message_kind kind, std::uint64_t sequence,
                                      std::span<std::byte const> mine, time_point deadline) {
        time_point const started = clock::now();
        arrive(0, kind, mine);
        if (wait_until_done(sequence, deadline)) return;
        on_deadline_passed(0, clock::now() - started);
        thread_.wake();
        if (!wait_for_verdict(sequence)) set_failure(probes_.suspicion());
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
            if (stage_ != stage::joined || h.sequence != done_ + 1 || pending_.has(rank))
                return protocol_error(from, "a collective out of turn");
            return arrive(rank, h.type, body);
        case message_kind::deadline_passed:
            if (std::chrono::milliseconds waited{}; !read_wait(body, waited))
                protocol_error(from, "a time that cannot be read");
            else if (h.sequence == done_ + 1 && !pending_.empty())
                on_deadline_passed(rank, waited);
            return;
        case message_kind::fail:
            return on_failure_message(from, body);
        case message_kind::leave:
            has_left(from, rank);
            if (!pending_.empty() && !pending_.has(rank))
                set_failure(departure(0, rank, operation_or_control(), "its world was destroyed"));
            return;
        case message_kind::heartbeat: {
            signs_of_life said;
            if (!said.read(body, at(settings_.size)))
                return protocol_error(from, "signs of life that cannot be read");
            on_acknowledgement(from, h);
            return on_signs(rank, said);
        }
        case message_kind::suspicion: {
            failure why;
            if (h.sequence > 1 || !read_failure(body, at(settings_.size), why))
                return protocol_error(from, "a suspicion that cannot be read");
            why.reporter = rank;
            return suspect(why, h.sequence == 1);
        }
        case message_kind::blocked: {
            blocked_report report;
            if (!read_report(body, report)) return protocol_error(from, "a report that cannot be read");
            reports()[at(rank)] = report;
            return;
        }
        case message_kind::probe_reply:
            if (!probes_.active() || h.sequence != probe_.load(std::memory_order_relaxed) ||
                !read_answer(body, settings_.size, probes_.reply(rank)))
                return protocol_error(from, "an answer to nothing that was asked");
            return;
        default:
            return protocol_error(from, "a message that a participant never sends");
        }
    }

    /// Enters `rank` in the pending collective.
    HERRING_SETUP void arrive(int rank, message_kind kind, std::span<std::byte const> given) {
        // A late arrival must not complete a collective that others are told has failed.
        if (failed() || probes_.active()) return;
        if (int const other = pending_.first_conflict(kind); other >= 0) {
            char const* const theirs = name(pending_.of(other));
            return set_failure(
                failure::make(errc::mismatch, other, rank, theirs,
                              {"it called ", name(kind), " where rank ", other, " called ", theirs,
                               "; let every rank make the same calls in the same order"}));
        }
        pending_.add(rank, kind, given);
        for (int r = 0; r < settings_.size; ++r)
            if (left_[at(r)] && !pending_.has(r))
                return set_failure(departure(0, r, name(kind), "its world was destroyed"));
        if (!pending_.complete()) return;
        byte_buffer body = pending_.take();
        if (body.size() > body_limit)
            return set_failure(failure::make(errc::no_resources, 0, -1, name(kind),
                                             {body.size(), " bytes in all; give less to each all_gather"}));
        ++done_;
        connections_.send_all(message_kind::collective_result, done_, body);
        result_ = std::move(body);
        lock_.notify_all();
    }

    /// Handles the passed deadline of `rank` in the pending collective.
    HERRING_SETUP void on_deadline_passed(int rank, clock::duration waited) {
        std::vector<int> const missing = pending_.absent();
        if (!probes_.active()) blames_missing_ = true;
        suspect(failure::make(errc::timeout, rank, missing.empty() ? -1 : missing[0], name(pending_.kind()),
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
        time_point const then = clock::now() - settings_.times.detector.heartbeat;
        for (int r = 1; r < settings_.size; ++r)
            if (r != by && said.has(at(r))) vouch(r, then);
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
            if (left_[at(r)] || place == nullptr || now - place->spoke >= hopeless_after(times) / 2 ||
                now - place->regular < times.peer_timeout)
                return;
            if (socket_report found; !found.read(place->socket) || found.queueing >= 250ms) return;
            if (now - place->lossy_at < 2 * times.peer_timeout) return; // packets are lost, but not all
        }
        set_failure(failure::make(errc::unreachable, by, rank, "control",
                                  {"nothing comes from it to rank ", by, " over their data connection, for ",
                                   duration_text(times.peer_timeout + times.reply_timeout),
                                   " and more, though both give signs of life to rank 0: the network between "
                                   "these two drops their packets: "
                                   "see firewalls, routes and the MTU between their hosts"}));
    }

    /// Enters what this rank waits for, with a heartbeat.
    HERRING_SETUP void report_blocked(blocked_report const& mine) { reports()[0] = mine; }

    /// Asks all ranks at once whom they wait for; the thread looks at the replies before it sleeps again.
    HERRING_SETUP void suspect(failure const& why, bool certain) {
        if (failed() || probes_.active()) return;
        probes_.begin(why, certain, settings_.size, clock::now() + settings_.times.detector.reply_timeout);
        std::uint32_t const probe = probe_.fetch_add(1) + 1;
        connections_.send_all(message_kind::probe, probe, {});
    }

    /// Decides on the root cause, if the replies allow it by now. Only in the thread, which has read all that
    /// has come in, and knows whether it was stopped itself.
    HERRING_SETUP void look_for_root_cause(time_point now) {
        auto const state = [&](int r) noexcept {
            connection* const place = connections_.places()[at(r)];
            wait_report reply = r == 0 ? own_wait_report() : probes_.reply(r);
            if (left_[at(r)]) return wait_report{rank_state::left, -1};
            if (reply.state != rank_state::unknown) return reply;
            bool const hopeless =
                r != 0 &&
                (place == nullptr || silence(*place, now) >= hopeless_after(settings_.times.detector));
            if (!hopeless && !probes_.expired(now)) return reply;
            if (place == nullptr || probes_.expired(now, longest_hold_up(settings_.times.detector)) ||
                !held_up(*place, now))
                reply.state = rank_state::silent;
            return reply;
        };
        std::vector<int> const missing = blames_missing_ ? pending_.absent() : std::vector<int>();
        failure const found = probes_.verdict({missing.data(), missing.size()}, state);
        if (found.what != errc::ok) set_failure(found);
    }

    pending_collective pending_;

    fixed_array<blocked_report> reports_; // rank → its last report; of no size until there is one
    bool unread_ = false;
    time_point look_at_{};

    probe_round probes_;
    bool blames_missing_ = false; // the suspects are all ranks missing in the pending collective
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_COORDINATOR_HPP

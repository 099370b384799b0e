// herring: a rank other than 0: takes part in rank 0's collectives, and holds rank 0 to the detector's times.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP
#define HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/carried_world.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/link_to_rank_0.hpp"
#include "herring/control/rendezvous/pending_collective.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/split.hpp"
#include "herring/control/wire/messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// A rank other than 0.
class participant final : public link_to_rank_0 {
  public:
    HERRING_SETUP explicit participant(settings&& from) : link_to_rank_0(std::move(from)) {}
    ~participant() { stop(); }

  private:
    friend class control_endpoint<participant>;

    /// Does the work that is due at `now`; returns when more is due.
    HERRING_SETUP time_point run_due(time_point now) {
        if (stage_ != stage::joined) return connect_when_due(now);
        return failed() ? time_point::max() : std::min(look_after_probes(now), look_after_connection(now));
    }

    void on_own_stall(clock::duration late) noexcept {
        for (carried_world& w : worlds_)
            if (w.suspected_at != time_point{}) w.suspected_at += late;
    }

    // ---- messages of rank 0 ----------------------------------------------------------------------------

    HERRING_SETUP void on_message(connection& from, head const& h, std::span<std::byte const> body) {
        if (h.version != protocol_version && h.type != message_kind::refuse)
            return protocol_error(from, text({"version ", h.version, " of the protocol"}));
        if (h.rank != 0) return protocol_error(from, "a message in the name of another rank");
        if (stage_ == stage::joined && &from != rank_0()) return on_candidate(from, h, body);
        if (stage_ == stage::refused) return; // it says goodbye
        if (stage_ == stage::joining) return on_message_while_joining(from, h, body);
        std::uint64_t const number = number_of(h.sequence);
        carried_world* const w = world_with(world_of(h.sequence));
        switch (h.type) {
        case message_kind::collective_result:
        case message_kind::fail:
        case message_kind::probe:
            return w == nullptr ? void() : on_message_of(*w, from, h.type, number, body); // left meanwhile
        case message_kind::leave:
            has_left(from, 0);
            for (carried_world& each : worlds_) {
                int const there = each.rank_of(0);
                if (there < 0)
                    set_failure(each, failure::make(errc::peer_lost, -1, -1, each.operation_or_control(),
                                                    without_rank_0));
                else if (each.in_collective)
                    set_failure(each, departure(each.rank, there, each.operation_or_control(),
                                                "its world was destroyed"));
                if (each.suspected_at != time_point{})
                    set_failure(each, without_decision(each, each.suspected));
            }
            return;
        case message_kind::heartbeat:
            return on_acknowledgement(from, h);
        default:
            return protocol_error(from, "a message that rank 0 never sends");
        }
    }

    HERRING_SETUP void on_message_of(carried_world& w, connection& from, message_kind type,
                                     std::uint64_t number, std::span<std::byte const> body) {
        switch (type) {
        case message_kind::collective_result: {
            bool const late = w.failed() || !w.here;
            if (!late && (!w.in_collective || number != w.done + 1))
                return protocol_error(from, "the end of a collective that this rank did not begin");
            if (std::exchange(w.splits, false) && !take_group(w, body, late))
                return protocol_error(from, "the result of a split that cannot be read");
            if (late) return drop_deserted();
            w.result.clear();
            w.result.append(body);
            w.done = number;
            w.in_collective = false;
            lock_.notify_all();
            return;
        }
        case message_kind::fail:
            return on_failure_message(from, w, body);
        default: // probe
            if (number > std::numeric_limits<std::uint32_t>::max())
                return protocol_error(from, "a probe with a number that none has");
            w.probe.store(static_cast<std::uint32_t>(number), std::memory_order_release);
            w.probed = true;
            answer(w);
        }
    }

    // ---- collectives --------------------------------------------------------------------------------------

    static constexpr char const* without_rank_0 = "rank 0 of the joined world, which is not in this group "
                                                  "and carries its control messages, has left; let "
                                                  "it keep its world until all groups have ended";

    HERRING_SETUP void run_collective(carried_world& w, message_kind kind, std::uint64_t number,
                                      std::span<std::byte const> mine, time_point deadline) {
        int const there = w.rank_of(0);
        if (gone_[0])
            return set_failure(w,
                               departure(w.rank, there, w.operation_or_control(), "its world was destroyed"));
        time_point const started = clock::now();
        w.in_collective = true;
        w.splits = kind == message_kind::split;
        send(w, kind, number, mine); // so to rank 0
        if (!wait_until_done(w, number, deadline)) {
            auto const late = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - started);
            send(w, message_kind::deadline_passed, number, write_wait(late));
            failure const silence = failure::make(errc::timeout, w.rank, there, w.operation_or_control(),
                                                  {"rank 0", there == 0 ? "" : " of the joined world",
                                                   ", which leads collectives, did not answer within ",
                                                   duration_text(clock::now() - started)});
            expect_verdict(w, silence);
            thread_.wake();
            if (!wait_for_verdict(w, number)) set_failure(w, silence);
            if (!w.failed()) w.suspected_at = {}; // the result came just in time
        }
        w.in_collective = false;
    }

    /// Adds the group of this rank that the result of a split has. `late`: this rank is out of the split, and
    /// so leaves the group. False: the bytes are no such result.
    HERRING_SETUP bool take_group(carried_world& w, std::span<std::byte const> body, bool late) {
        gather_result all;
        if (!unpack(body, at(w.size), all)) return false;
        fixed_array<split_choice> choices(at(w.size));
        for (std::size_t r = 0; r < choices.size(); ++r)
            if (!choices[r].read(std::as_const(all)[r]) || choices[r].group > most_world) return false;
        std::uint64_t const number = choices[at(w.rank)].group;
        for (std::vector<int>& each : groups_of({choices.data(), choices.size()})) {
            if (place_in(each, w.rank) < 0) continue;
            if (number == 0 || world_with(number) != nullptr) return false;
            carried_world& made = add_group(w, number, std::move(each));
            late ? abandon(made) : void(w.group = &made);
            return true;
        }
        return number == 0;
    }

    // ---- the failure detector -----------------------------------------------------------------------------

    HERRING_SETUP void suspect(carried_world& w, failure const& why, bool certain) {
        if (rank_0() == nullptr || gone_[0] || why.peer < 0)
            return set_failure(w, without_decision(w, why)); // no rank could say more
        send(w, message_kind::suspicion, certain ? 1 : 0, write_failure(why));
        expect_verdict(w, why);
    }

    /// Returns the failure of a suspicion on which rank 0 does not decide any more. Once rank 0 has left, no
    /// rank tells another of its failure: one that is lost then may have waited for rank 0, which left first.
    HERRING_SETUP failure without_decision(carried_world const& w, failure const& why) const {
        int const there = w.rank_of(0);
        if (!gone_[0] || there < 0 || why.peer == there || why.what != errc::peer_lost) return why;
        return departure(w.rank, there, why.operation,
                         text({"its world was destroyed, and then rank ", why.peer, " was lost"}));
    }

    HERRING_SETUP void send_heartbeat(signs_of_life const& signs) {
        connections_.send_heartbeats(signs.write());
    }

    HERRING_SETUP void report_blocked(blocked_report const& mine) {
        connections_.send_all(message_kind::blocked, 0, write_report(mine));
    }

    /// Rank 0 replies at once, with a question to every rank; if it does not, rank 0 is the root cause.
    void expect_verdict(carried_world& w, failure const& why) noexcept {
        if (w.suspected_at != time_point{}) return;
        w.suspected = why;
        w.suspected_at = clock::now();
    }

    /// Replies to probes, and looks whether rank 0 decides. Returns when to do so again.
    time_point look_after_probes(time_point now) {
        time_point next = time_point::max();
        for (carried_world& w : worlds_)
            if (!w.failed()) next = std::min(next, look_after_probe(w, now));
        return next;
    }
    time_point look_after_probe(carried_world& w, time_point now) {
        time_point next = time_point::max();
        if (w.probed) answer(w);
        if (w.probed) next = now + std::chrono::milliseconds(10); // the caller replies by a word in memory
        if (w.suspected_at == time_point{} || rank_0() == nullptr) return next;
        failure_detector_options const& times = settings_.times.detector;
        clock::duration const nothing = silence(*rank_0(), now);
        clock::duration const more = held_up(*rank_0(), now) ? longest_hold_up(times) : clock::duration(0);
        if (nothing >= hopeless_after(times) + more ||
            std::min(nothing, now - w.suspected_at) >= times.reply_timeout + more) {
            int const there = w.rank_of(0);
            set_failure(w, there >= 0
                               ? describe(w.suspected, {.rank = there,
                                                        .state = rank_state::silent,
                                                        .before = w.suspected.peer == there ? -1 : w.rank,
                                                        .cycle = false})
                               : failure::make(w.suspected.what, w.rank, -1, w.suspected.operation,
                                               "rank 0 of the joined world, which carries this group's "
                                               "control messages, does not answer: is its process "
                                               "stopped or starved, or its host unreachable?"));
            return next;
        }
        return std::min<time_point>(next, now + times.reply_timeout / 10);
    }

    void answer(carried_world& w) {
        wait_report const said = w.own_wait_report();
        if (said.state == rank_state::unknown) return; // the caller looks around within 50 ms
        w.probed = false;
        send(w, message_kind::probe_reply, w.probe.load(std::memory_order_relaxed), write_answer(said));
    }
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP

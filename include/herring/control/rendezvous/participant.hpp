// herring: a rank other than 0: takes part in rank 0's collectives, and holds rank 0 to the detector's times.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP
#define HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/link_to_rank_0.hpp"
#include "herring/control/rendezvous/settings.hpp"
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
        if (suspected_at_ != time_point{}) suspected_at_ += late;
    }

    // ---- messages of rank 0 ----------------------------------------------------------------------------

    HERRING_SETUP void on_message(connection& from, head const& h, std::span<std::byte const> body) {
        if (h.version != protocol_version && h.type != message_kind::refuse)
            return protocol_error(from, text({"version ", h.version, " of the protocol"}));
        if (h.rank != 0) return protocol_error(from, "a message in the name of another rank");
        if (stage_ == stage::joined && &from != rank_0()) return on_candidate(from, h, body);
        if (stage_ == stage::refused) return; // it says goodbye
        if (stage_ == stage::joining) return on_message_while_joining(from, h, body);
        switch (h.type) {
        case message_kind::collective_result:
            if (failed()) return;
            if (!in_collective_ || h.sequence != done_ + 1)
                return protocol_error(from, "the end of a collective that this rank did not begin");
            result_.clear();
            result_.append(body);
            done_ = h.sequence;
            in_collective_ = false;
            lock_.notify_all();
            return;
        case message_kind::fail:
            return on_failure_message(from, body);
        case message_kind::leave:
            has_left(from, 0);
            if (in_collective_)
                set_failure(departure(settings_.rank, 0, operation_or_control(), "its world was destroyed"));
            if (suspected_at_ != time_point{}) set_failure(suspected_); // there will be no decision
            return;
        case message_kind::heartbeat:
            return on_acknowledgement(from, h);
        case message_kind::probe:
            if (h.sequence > std::numeric_limits<std::uint32_t>::max())
                return protocol_error(from, "a probe with a number that none has");
            probe_.store(static_cast<std::uint32_t>(h.sequence), std::memory_order_release);
            probed_ = true;
            answer();
            return;
        default:
            return protocol_error(from, "a message that rank 0 never sends");
        }
    }

    // ---- collectives --------------------------------------------------------------------------------------

    HERRING_SETUP void run_collective(message_kind kind, std::uint64_t sequence,
                                      std::span<std::byte const> mine, time_point deadline) {
        if (left_[0])
            return set_failure(
                departure(settings_.rank, 0, operation_or_control(), "its world was destroyed"));
        time_point const started = clock::now();
        in_collective_ = true;
        connections_.send_all(kind, sequence, mine); // so to rank 0
        if (!wait_until_done(sequence, deadline)) {
            auto const late = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - started);
            connections_.send_all(message_kind::deadline_passed, sequence, write_wait(late));
            failure const silence = failure::make(errc::timeout, settings_.rank, 0, operation_or_control(),
                                                  {"rank 0, which leads collectives, did not answer within ",
                                                   duration_text(clock::now() - started)});
            expect_verdict(silence);
            thread_.wake();
            if (!wait_for_verdict(sequence)) set_failure(silence);
            if (!failed()) suspected_at_ = {}; // the result came just in time
        }
        in_collective_ = false;
    }

    // ---- the failure detector -----------------------------------------------------------------------------

    HERRING_SETUP void suspect(failure const& why, bool certain) {
        if (rank_0() == nullptr || left_[0] || why.peer < 0)
            return set_failure(why); // no rank could say more
        connections_.send_all(message_kind::suspicion, certain ? 1 : 0, write_failure(why));
        expect_verdict(why);
    }

    HERRING_SETUP void send_heartbeat(signs_of_life const& signs) {
        connections_.send_heartbeats(signs.write());
    }

    HERRING_SETUP void report_blocked(blocked_report const& mine) {
        connections_.send_all(message_kind::blocked, 0, write_report(mine));
    }

    /// Rank 0 replies at once, with a question to every rank; if it does not, rank 0 is the root cause.
    void expect_verdict(failure const& why) noexcept {
        if (suspected_at_ != time_point{}) return;
        suspected_ = why;
        suspected_at_ = clock::now();
    }

    /// Replies to a probe, and looks whether rank 0 decides. Returns when to do so again.
    time_point look_after_probes(time_point now) {
        time_point next = time_point::max();
        if (probed_) answer();
        if (probed_) next = now + std::chrono::milliseconds(10); // the caller replies by a word in memory
        if (suspected_at_ == time_point{} || rank_0() == nullptr) return next;
        failure_detector_options const& times = settings_.times.detector;
        clock::duration const nothing = silence(*rank_0(), now);
        clock::duration const more = held_up(*rank_0(), now) ? longest_hold_up(times) : clock::duration(0);
        if (nothing >= hopeless_after(times) + more ||
            std::min(nothing, now - suspected_at_) >= times.reply_timeout + more) {
            set_failure(describe(suspected_, {.rank = 0,
                                              .state = rank_state::silent,
                                              .before = suspected_.peer == 0 ? -1 : settings_.rank,
                                              .cycle = false}));
            return next;
        }
        return std::min<time_point>(next, now + times.reply_timeout / 10);
    }

    void answer() {
        wait_report const said = own_wait_report();
        if (said.state == rank_state::unknown) return; // the caller looks around within 50 ms
        probed_ = false;
        connections_.send_all(message_kind::probe_reply, probe_.load(std::memory_order_relaxed),
                              write_answer(said));
    }

    bool in_collective_ = false; // and its result has not come
    bool probed_ = false;        // and it has not replied
    failure suspected_{};
    time_point suspected_at_{}; // since then the decision of rank 0 is awaited
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP

// herring: one process's end of the control connections: collectives for callers, and the thread of its role.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_ENDPOINT_HPP
#define HERRING_CONTROL_RENDEZVOUS_ENDPOINT_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/carried_world.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/endpoint_base.hpp"
#include "herring/control/rendezvous/pending_collective.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/split.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/control/survival/silence_bound.hpp"
#include "herring/control/world_state.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/net/life_signs.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <sys/epoll.h>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// The backend of one world that the connections carry.
template <class Role> class carried_backend {
  public:
    static control_handle make(Role& by, carried_world& w) {
        return control_handle::of(*new carried_backend(by, w));
    }

    gather_result all_gather(std::string_view operation, std::span<std::byte const> mine,
                             time_point deadline) {
        return by_.all_gather(w_, operation, mine, deadline);
    }
    void barrier(std::string_view operation, time_point deadline) { by_.barrier(w_, operation, deadline); }
    split_group split(std::string_view operation, int colour, int key, time_point deadline) {
        return by_.split(w_, operation, {colour, key}, deadline);
    }
    void fail(failure const& why) noexcept { by_.fail(w_, why); }
    void report_suspicion(suspicion_report& of) noexcept { by_.report_suspicion(w_, of); }
    void attach(world_state& state) noexcept { by_.attach(w_, state); }
    void check_deadlock() noexcept {} // the thread looks, with each heartbeat
    void leave() noexcept { by_.leave(w_); }
    void destroy() noexcept {
        by_.leave(w_);
        if (by_.give_back(w_)) delete &by_;
        delete this;
    }
    control_board board() noexcept { return w_.board(); }

  private:
    carried_backend(Role& by, carried_world& w) : by_(by), w_(w) {}

    Role& by_;
    carried_world& w_;
};

/// One process's end of the control connections. `Role` derives from it: `coordinator` is rank 0,
/// `participant` every other rank.
///
/// Role:     has on_start, on_join_timeout, run_collective, suspect, report_blocked, run_due, on_own_stall,
///           on_event, send_heartbeat, on_connected, on_message, on_unidentified, on_expired and on_closed,
///           called with the lock held (on_start: before there is a thread). Its destructor calls `stop`, so
///           that the thread does not outlive its state.
/// Threads:  the calling thread tries to send, so that a collective costs rank 0 no wake-up of its thread.
/// Cost:     a collective is one message from each rank to rank 0 and one back to each.
template <class Role> class control_endpoint : public endpoint_base {
  public:
    /// Joins, or throws why not; the membership owns the endpoint.
    HERRING_SETUP static membership join(settings&& from) {
        Role* const own = new Role(std::move(from));
        try {
            own->wait_for_everyone();
            membership world = own->joined_membership();
            world.control = carried_backend<Role>::make(*own, own->joined());
            return world;
        } catch (...) {
            delete own;
            throw;
        }
    }

    HERRING_SETUP void barrier(carried_world& w, std::string_view operation, time_point deadline) {
        monitor::guard const held(lock_);
        collective(w, message_kind::barrier, operation, {}, deadline);
    }

    HERRING_SETUP gather_result all_gather(carried_world& w, std::string_view operation,
                                           std::span<std::byte const> mine, time_point deadline) {
        monitor::guard const held(lock_);
        collective(w, message_kind::contribute, operation, mine, deadline);
        gather_result all;
        if (!unpack(std::exchange(w.result, {}), at(w.size), all)) {
            set_failure(w,
                        failure::make(errc::protocol, w.rank, w.rank_of(0), operation,
                                      "its answer cannot be read; see that every rank runs the same build"));
            w.throw_if_failed(operation);
        }
        return all;
    }

    /// The carried world of the group is there as soon as the split is complete: a message of the group that
    /// comes before this rank's caller wakes up finds it.
    HERRING_SETUP split_group split(carried_world& w, std::string_view operation, split_choice const& mine,
                                    time_point deadline) {
        monitor::guard const held(lock_);
        collective(w, message_kind::split, operation, mine.write(), deadline);
        carried_world* const made = std::exchange(w.group, nullptr);
        if (made == nullptr) return {};
        try {
            split_group found{{}, made->number};
            for (int r = 0; r < made->size; ++r) found.ranks.push_back(w.rank_of(made->joined(r)));
            found.control = carried_backend<Role>::make(role(), *made);
            return found;
        } catch (...) {
            catching([&] { abandon(*made); });
            throw;
        }
    }

    /// Reports the first suspicion to rank 0; the decision comes as a failure. Later calls say whether the
    /// network may hold it up.
    HERRING_SETUP void report_suspicion(carried_world& w, suspicion_report& of) noexcept {
        bool const reported = of.probe != 0;
        of.probe = 1;
        if (reported) {
            clock::duration const late = of.waited - settings_.times.detector.verdict_timeout;
            if (late <= clock::duration(0)) return;
            monitor::guard const held(lock_);
            of.held_up = late < longest_hold_up(settings_.times.detector) && any_held_up(clock::now());
            return;
        }
        try {
            monitor::guard const held(lock_);
            if (w.failed()) return;
            role().suspect(w, of.why, of.certain);
            thread_.wake(); // it has something to wait for now
        } catch (...) {
            of.probe = 0; // no memory for the message: again
        }
    }

  protected:
    using endpoint_base::endpoint_base;
    ~control_endpoint() = default;

    /// Ends the thread.
    HERRING_SETUP void stop() noexcept {
        {
            monitor::guard const held(lock_);
            stop_ = true;
        }
        thread_.join();
    }

    /// Reads the bytes that have come in, and hands every whole message to the role.
    HERRING_SETUP void receive(connection& c) {
        std::byte buffer[16 * 1024];
        std::uint64_t const serial = c.serial;
        for (int turn = 0; turn < 64; ++turn) {
            std::size_t const room = c.room(sizeof buffer);
            ssize_t const n = c.read({buffer, room});
            if (n < 0) return;
            c.heard = clock::now();
            if (c.heard - c.spoke >= hopeless_after(settings_.times.detector) / 2) c.regular = c.heard;
            c.spoke = c.heard;
            if (n == 0) {
                role().on_closed(c, c.error);
                return;
            }
            if (c.refused) continue; // bytes behind a refusal are dropped
            c.in.append({buffer, static_cast<std::size_t>(n)});
            take_messages(c);
            if (!c.still(serial)) return;
            if (static_cast<std::size_t>(n) < room && !c.refused) return; // epoll reports an end
        }
    }

    /// Returns how long a sign of life over `c` may wait in queues.
    HERRING_SETUP clock::duration queueing(connection const& c, socket_report const& found) const noexcept {
        return silence_bound(settings_.times.detector).queueing(found, c.shortest, queue_.delay(c.heard));
    }

  private:
    Role& role() noexcept { return static_cast<Role&>(*this); }

    /// Waits until all ranks are here. Throws what kept them away.
    HERRING_SETUP void wait_for_everyone() {
        thread_.open("join", settings_.rank);
        role().on_start();
        auto const body = +[](void* self) -> void* {
            static_cast<control_endpoint*>(self)->run();
            return nullptr;
        };
        thread_.start(body, this, settings_.rank);
        monitor::guard const held(lock_);
        wait_while_joining(settings_.deadline);
        if (stage_ == stage::joining) role().on_join_timeout();
        if (stage_ == stage::joined) return;
        say_goodbye(reply_time);
        throw error(why_refused_);
    }

    /// Runs a collective; returns once it has ended well. `kind`: barrier, contribute or split.
    HERRING_SETUP void collective(carried_world& w, message_kind kind, std::string_view operation,
                                  std::span<std::byte const> mine, time_point deadline) {
        w.throw_if_failed(operation);
        std::uint64_t const number = w.done + 1;
        w.operation = operation;
        if (mine.size() > blob_limit)
            set_failure(w, failure::make(errc::bad_argument, w.rank, -1, operation,
                                         {mine.size(), " bytes given; the limit is ", blob_limit,
                                          " a rank: this is for set-up, not for data"}));
        else
            role().run_collective(w, kind, number, mine, deadline);
        w.operation = {};
        if (w.done < number) w.throw_if_failed(operation);
    }

    // ---- the thread ---------------------------------------------------------------------------------------

    HERRING_SETUP void run() noexcept {
        while (true) {
            int timeout_ms = -1;
            bool stops = false, calls = false;
            {
                monitor::guard const held(lock_);
                stops = stop_;
                calls = must_call_handler();
                if (!stops && !calls) catching([&] { timeout_ms = until_next(); });
                if (timeout_ms >= 0) stall_.expect(clock::now(), std::chrono::milliseconds(timeout_ms));
            }
            // Without the lock: the failure changes no more.
            if (calls) {
                settings_.on_failure(as_seen_by(joined().failure_, settings_.rank));
                monitor::guard const held(lock_);
                handler_called_ = true;
                lock_.notify_all();
            }
            if (stops) return;
            if (calls) continue;
            std::span<epoll_event const> const events = thread_.sleep(timeout_ms);
            monitor::guard const held(lock_);
            if (stop_) continue;
            detect_own_stall();
            for (epoll_event const& event : events) catching([&] { on_epoll(event.data.u64, event.events); });
        }
    }

    /// Finds out whether this thread slept much longer than it meant to, so was stopped or starved with its
    /// process. Then every rank gets fresh time, and no rank is blamed for the silence. Returns now.
    HERRING_SETUP time_point detect_own_stall() noexcept {
        time_point const now = clock::now();
        clock::duration const late = stall_.late(now);
        stall_.expect(now, {}); // until it sleeps again
        if (late != clock::duration(0)) {
            for (connection& c : connections_.all()) c.heard = c.answered = c.delivered = now;
            role().on_own_stall(late);
        }
        return now;
    }

    /// Does the work that is due; returns how long the thread may sleep, in milliseconds.
    HERRING_SETUP int until_next() {
        time_point const now = detect_own_stall();
        time_point next = connections_.expire(now, [this](connection& c) { role().on_expired(c); });
        if (stage_ == stage::joined && !failed() && !leaving_) next = std::min(next, heartbeat(now));
        return poll_timeout(std::min(next, role().run_due(now)));
    }

    /// Sends a sign of life, and looks which ranks are overdue. Returns when to do so again.
    HERRING_SETUP time_point heartbeat(time_point now) {
        if (now < heartbeat_at_ && now < check_at_) return std::min(heartbeat_at_, check_at_);
        bool const beats = now >= heartbeat_at_;
        look_at_data(now, beats);
        if (beats) {
            heartbeat_at_ = now + settings_.times.detector.heartbeat;
            role().send_heartbeat(signs_);
            signs_ = {};
            signs_since_ = now;
            for (carried_world const& w : worlds_) { // a report is of all worlds of this rank
                blocked_report mine;
                if (w.state == nullptr) continue;
                if (!w.state->blocked(mine) || mine == last_report_) break;
                last_report_ = mine;
                role().report_blocked(mine);
                break;
            }
        }
        check_at_ = heartbeat_at_;
        for (connection* const place : connections_.places()) {
            if (place == nullptr || gone_[at(place->rank)]) continue;
            if (beats) note_progress(*place, now);
            clock::duration const nothing = silence(*place, now);
            clock::duration bound = settings_.times.detector.peer_timeout;
            if (nothing >= bound / 4) bound = bound_of(*place, now);
            if (nothing < bound) {
                check_at_ = std::min(check_at_, now + (bound - nothing));
                continue;
            }
            bool const resumable = connections_.with(*place).log.has_all();
            lose(place->rank, errc::peer_lost, -1,
                 text({"it has given no sign of life for ", bound_text(bound),
                       ": its process is stopped or starved, or its host cannot be reached",
                       resumable
                           ? ""
                           : "; over a MiB that it was sent has no answer, too much for a new connection"}));
            break;
        }
        return std::min(heartbeat_at_, check_at_);
    }

    /// Returns how long that rank may be silent.
    HERRING_SETUP clock::duration bound_of(connection& c, time_point now) const noexcept {
        silence_bound const bound(settings_.times.detector);
        socket_report found;
        if (!found.read(c.socket)) return bound.patience();
        if (found.unanswered != 0) c.unanswered = now;
        return bound.after(queueing(c, found), c.unanswered >= c.heard);
    }

    HERRING_SETUP std::string bound_text(clock::duration bound) const {
        std::chrono::milliseconds const patience = settings_.times.detector.peer_timeout;
        if (bound == patience) return duration_text(bound);
        return text({duration_text(bound), " (peer_timeout, ", duration_text(patience), ", and ",
                     duration_text(bound - patience), " that the network takes)"});
    }

    /// Takes data that has come in from a rank as a sign of its life.
    HERRING_SETUP void look_at_data(time_point now, bool at_heartbeat) {
        failure_detector_options const& times = settings_.times.detector;
        for (carried_world const& w : worlds_) {
            if (w.state == nullptr || w.state->data == nullptr) continue;
            w.state->data->look(now, at_heartbeat, [&](socket_report const& found) {
                time_point const heard = now - found.since_data;
                int const rank = w.joined(found.rank);
                vouch(rank, heard);
                if (at_heartbeat) queue_.add(found);
                if (heard > signs_since_) signs_.add(rank, at(settings_.size));
                // Where signs of life of that rank come by other ways, the network between these two ranks
                // is cut.
                if (found.unanswered >= 5 && found.since_packet >= times.peer_timeout + times.reply_timeout)
                    signs_.cut_off = rank;
            });
        }
        if (at_heartbeat) queue_.end_look(now, silence_bound(times).longest_delay());
    }

    HERRING_SETUP void on_epoll(std::uint64_t key, std::uint32_t what) {
        if (role().on_event(key)) return;
        connection* const c = connections_.of_key(key);
        if (c == nullptr) return;
        if (c->connecting) {
            role().on_connected(*c);
            return;
        }
        if ((what & EPOLLOUT) != 0) connections_.flush(*c);
        if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) receive(*c);
    }

    HERRING_SETUP void take_messages(connection& c) {
        std::size_t begin = 0;
        std::uint64_t const serial = c.serial;
        while (true) {
            bool const candidate = connections_.is_candidate(c);
            parsed_message const next =
                c.parse(begin, sender{at(settings_.size), settings_.rank != 0,
                                      stage_ == stage::joined && !candidate, c.rank >= 0});
            if (next.is == parsed_message::state::incomplete) break;
            if (next.is != parsed_message::state::whole) {
                // Before the welcome, the process at rank 0's address need not be rank 0, nor a process that
                // said hello a rank.
                bool const unknown = c.rank < 0 || candidate || stage_ == stage::joining;
                unknown ? role().on_unidentified(c) : protocol_error(c, words_for(next));
                return;
            }
            begin += next.bytes;
            if (is_numbered(next.front.type) && stage_ == stage::joined && c.rank >= 0 && !candidate &&
                !connections_.with(c).log.take(++c.came))
                continue; // it came over the earlier connection, too
            role().on_message(c, next.front, next.body);
            if (!c.still(serial)) return;
            if (c.refused) return c.in.clear(); // no later message of it counts
        }
        if (begin > 0) c.in.drop(begin);
    }

    blocked_report last_report_{};
    bool stop_ = false;
    time_point heartbeat_at_{}, check_at_{};
    signs_of_life signs_{}; // since the last heartbeat
    time_point signs_since_{};
    queue_estimate queue_;
    stall_detector stall_;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_ENDPOINT_HPP

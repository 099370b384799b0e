// herring: the part of an endpoint without a role: settings, connections, failures, waiting callers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_ENDPOINT_BASE_HPP
#define HERRING_CONTROL_RENDEZVOUS_ENDPOINT_BASE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/rendezvous/carried_world.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/connection_set.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/control/world_state.hpp"
#include "herring/control/world_times.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/model/topology.hpp"
#include "herring/net/event_thread.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::rendezvous {

inline constexpr std::chrono::seconds leave_time{5};
inline constexpr std::chrono::milliseconds leave_time_after_failure{500};
/// How much longer than its deadline a rank waits for rank 0's reply.
inline constexpr std::chrono::seconds reply_time{1};

/// The state of one process's end of the control connections, and the functions that need no role.
///
/// The connections carry the joined world and the groups that splits have made of it, each with collectives,
/// failures and probes of its own. One for all of them are heartbeats, the detector of stalls, a connection
/// that is opened anew, and the end of a rank.
/// Threads:  callers and the event thread touch all members below `lock_`; the thread holds the lock except
///           while it sleeps. Functions are called with the lock held, unless their comment says otherwise.
class endpoint_base {
  public:
    endpoint_base(endpoint_base const&) = delete;
    endpoint_base& operator=(endpoint_base const&) = delete;

    /// Leaves a world; once. With the last world of this process it says goodbye, and waits until the others
    /// have closed, at most `leave_time`. Rank 0 goes on for at most `default_timeout` before, while groups
    /// live that it carries for others. Takes the lock.
    HERRING_SETUP void leave(carried_world& w) noexcept {
        monitor::guard const held(lock_);
        // The handler of the joined world is not called after that world's destructor.
        while (w.number == 0 && must_call_handler()) lock_.wait_until(clock::now() + std::chrono::seconds(1));
        if (!std::exchange(w.here, false)) return;
        bool last = true, any_failed = false;
        for (carried_world const& each : worlds_) {
            last = last && !each.here;
            any_failed = any_failed || each.failed();
        }
        bool const stays = !last || carries_for_others();
        if (stays || w.number != 0) catching([&] { say_left(w); });
        if (!last) return;
        if (stays) {
            time_point const most = deadline_in(settings_.times.call);
            while (carries_for_others() && lock_.wait_until(most)) {
            }
        }
        say_goodbye(any_failed ? clock::duration(leave_time_after_failure) : clock::duration(leave_time));
    }

    /// Announces a failure; of a world that this rank has left only to itself. Takes the lock.
    HERRING_SETUP void fail(carried_world& w, failure const& why) noexcept {
        monitor::guard const held(lock_);
        // Without memory for the message the end of the connection tells the others.
        if (w.here)
            catching([&] { set_failure(w, why); });
        else if (!w.failed())
            keep_failure(w, why);
    }

    /// Takes the lock.
    HERRING_SETUP void attach(carried_world& w, world_state& state) noexcept {
        monitor::guard const held(lock_);
        w.state = &state;
    }

    /// Ends the backend of a world that has been left. True: it was the last of this process.
    HERRING_SETUP bool give_back(carried_world& w) noexcept {
        {
            monitor::guard const held(lock_);
            w.held = false;
            w.state = nullptr;
            drop_deserted();
        }
        return holders_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

  protected:
    enum class stage { joining, joined, refused };

    HERRING_SETUP explicit endpoint_base(settings&& from)
        : settings_(std::move(from)), connections_(thread_, settings_.rank, settings_.size),
          gone_(at(settings_.size)) {
        worlds_.emplace_back(0, std::vector<int>(), settings_.size, settings_.rank);
    }
    HERRING_SETUP ~endpoint_base() { close_listeners(); } // the role has stopped the thread

    static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }
    /// The joined world.
    carried_world& joined() noexcept { return worlds_.front(); }
    /// True if the thread has to call the program's `on_failure`.
    bool must_call_handler() noexcept {
        return settings_.on_failure && stage_ == stage::joined && joined().here && joined().failed() &&
               !handler_called_;
    }
    /// True if all worlds have failed.
    HERRING_SETUP bool failed() const noexcept {
        for (carried_world const& w : worlds_)
            if (!w.failed()) return false;
        return true;
    }
    /// nullptr: there is none of that number, any more.
    HERRING_SETUP carried_world* world_with(std::uint64_t number) noexcept {
        for (carried_world& w : worlds_)
            if (w.number == number) return &w;
        return nullptr;
    }
    /// True if rank 0, which is in none of them, carries groups that others have not left.
    HERRING_SETUP bool carries_for_others() const noexcept {
        for (carried_world const& w : worlds_)
            if (w.rank < 0 && !w.failed() && !w.is_deserted()) return true;
        return false;
    }
    /// Adds a group of a world: `members` in that world, by rank.
    HERRING_SETUP carried_world& add_group(carried_world const& of, std::uint64_t number,
                                           std::vector<int> members) {
        for (int& r : members) r = of.joined(r);
        int const size = static_cast<int>(members.size());
        carried_world& made = worlds_.emplace_back(number, std::move(members), size, settings_.rank);
        if (made.held) holders_.fetch_add(1, std::memory_order_relaxed);
        for (int r = 0; settings_.rank == 0 && r < size; ++r)
            if (gone_[at(made.joined(r))]) made.leaves(r);
        return made;
    }
    /// Forgets groups of which no message is due any more.
    HERRING_SETUP void drop_deserted() noexcept {
        worlds_.remove_if([&](carried_world const& w) {
            return w.number != 0 && !w.held && !w.splits && (settings_.rank != 0 || w.is_deserted());
        });
        lock_.notify_all();
    }

    HERRING_SETUP hello own_hello() const {
        hello mine;
        mine.has_secret = settings_.secret.has_value();
        mine.seals = settings_.seals != nullptr;
        mine.size = static_cast<std::uint32_t>(settings_.size);
        mine.rank = static_cast<std::uint32_t>(settings_.rank);
        mine.incarnation = incarnation_;
        mine.node = settings_.node;
        mine.boot = settings_.boot;
        mine.role = settings_.role;
        mine.rate = settings_.rate;
        mine.rack = settings_.rack;
        world_times const& times = settings_.rank == 0 ? settings_.times : settings_.asked;
        for (std::size_t i = 0; i < world_times::count; ++i)
            mine.times[i] = times[i] == not_given ? 0 : static_cast<std::uint64_t>(times[i].count());
        return mine;
    }

    /// Returns the membership that rank 0 told everyone, after joining.
    HERRING_SETUP membership joined_membership() {
        membership world;
        world.rank = settings_.rank;
        world.map = topology(node_ids_, {roles_.data(), roles_.size()}, rates_, rack_ids_);
        world.job = job_;
        world.key = secret_key(world_key_.bytes());
        world.has_secret = settings_.secret.has_value();
        world.local_address = local_address_;
        world.times = settings_.times;
        world.links = settings_.links;
        world.ranks_on_this_machine = 0;
        for (int const id : machine_ids_)
            if (id == machine_ids_[at(settings_.rank)]) ++world.ranks_on_this_machine;
        node_ids_ = std::vector<int>(); // the world has its topology
        machine_ids_ = std::vector<int>();
        rack_ids_ = std::vector<int>();
        rates_ = std::vector<int>();
        roles_ = {};
        return world;
    }

    // ---- waiting, by callers ------------------------------------------------------------------------------

    HERRING_SETUP void wait_while_joining(time_point deadline) noexcept {
        while (stage_ == stage::joining && lock_.wait_until(deadline)) {
        }
    }

    /// Waits for the end of collective `number`, well or not; false: `deadline` has passed before.
    HERRING_SETUP bool wait_until_done(carried_world& w, std::uint64_t number, time_point deadline) noexcept {
        while (w.done < number && !w.failed() && lock_.wait_until(deadline)) {
        }
        return w.done >= number || w.failed();
    }

    // ---- connections --------------------------------------------------------------------------------------

    void close_connection(connection& c) noexcept {
        connections_.close(c);
        lock_.notify_all();
    }

    HERRING_SETUP void close_listeners() noexcept {
        for (descriptor const& listener : settings_.listeners) thread_.forget(listener.get());
        settings_.listeners.clear();
    }

    /// Notes that the rank has said goodbye; nothing more comes from there.
    void has_left(connection& c, int rank) noexcept {
        gone_[at(rank)] = true;
        connections_.finish(c);
    }

    /// Sends to every rank of a world that is connected: from rank 0 to all, from others to rank 0, which may
    /// have forgotten a world that this rank has left.
    HERRING_SETUP void send(carried_world const& w, message_kind type, std::uint64_t number,
                            std::span<std::byte const> body) {
        bool const is_last = type == message_kind::leave;
        if (settings_.rank != 0 && !w.here && !is_last) return;
        connections_.send_all(type, sequence_in(w.number, number), body,
                              settings_.rank == 0 ? std::span<int const>(w.members) : std::span<int const>());
    }
    /// Tells rank 0 that this rank has left a world, while it is in others. Rank 0 knows it by itself.
    HERRING_SETUP void say_left(carried_world& w) {
        if (settings_.rank == 0)
            mark_left(w, w.rank);
        else if (stage_ == stage::joined)
            send(w, message_kind::leave, 0, {});
    }
    /// Leaves a group to which no backend of this process will refer.
    HERRING_SETUP void abandon(carried_world& w) {
        w.here = w.held = false;
        holders_.fetch_sub(1, std::memory_order_relaxed); // not the last one
        say_left(w);
    }
    /// At rank 0: notes that a rank takes part in nothing of this world any more.
    HERRING_SETUP void mark_left(carried_world& w, int rank) {
        w.leaves(rank);
        if (!w.pending.empty() && !w.pending.has(rank))
            set_failure(w, departure(w.rank, rank, w.operation_or_control(), "its world was destroyed"));
    }

    /// Handles the end of a rank's connection: the other end has closed it, or the network gave it up.
    HERRING_SETUP void lost(connection& c, int why) {
        bool const expected = gone_[at(c.rank)] || c.finish || leaving_ || stage_ == stage::refused;
        int const rank = c.rank;
        std::string const words =
            expected ? std::string()
                     : text({"its control connection (", c.from, ") closed without a goodbye", reason(why),
                             ": its process died or its host cannot be reached",
                             rank < settings_.workers || settings_.lent.service.empty()
                                 ? ""
                                 : "; lent by the service at ",
                             rank < settings_.workers ? std::string_view()
                                                      : std::string_view(settings_.lent.service)});
        close_connection(c);
        if (!expected) lose(rank, errc::peer_lost, -1, words);
    }

    /// Ends every world that has this rank, in its numbers there; without rank 0, which carries all
    /// worlds, all. `by`: of the joined world, the rank that reports it; −1: none.
    HERRING_SETUP void lose(int rank, errc what, int by, std::string_view words) {
        gone_[at(rank)] = true;
        for (carried_world& w : worlds_) {
            int const peer = w.rank_of(rank), reporter = by < 0 ? -1 : w.rank_of(by);
            std::string_view const operation = by < 0 ? "control" : w.operation_or_control();
            if (peer >= 0) {
                w.leaves(peer);
                set_failure(w, failure::make(what, reporter, peer, operation, words));
            } else if (rank == 0) {
                set_failure(
                    w, failure::make(what, reporter, -1, operation,
                                     {"the process that carries this group's control messages, rank 0 of "
                                      "the joined world, is lost: ",
                                      words}));
            }
        }
        drop_deserted();
    }

    HERRING_SETUP static std::string reason(int why) {
        return why == 0 ? std::string() : text({" (", std::strerror(why), ")"});
    }

    /// Fails the world: a rank has sent bytes that no rank of this build sends.
    HERRING_SETUP void protocol_error(connection& c, std::string_view what) {
        lose(c.rank, errc::protocol, settings_.rank,
             text({"it sent ", what, "; see that every rank runs the same build"}));
        close_connection(c);
    }

    /// Says goodbye to every rank, then waits until all have closed, at most so long.
    HERRING_SETUP void say_goodbye(clock::duration most) noexcept {
        time_point const deadline = clock::now() + most;
        leaving_ = true;
        close_listeners();
        for (connection& c : connections_.all()) {
            if (!c.open() || c.offered) continue; // rank 0 may have put it in this rank's place
            bool const hopeless = c.broken && connections_.offered() == 0;
            if (c.connecting || (c.pending() && !c.refused) || hopeless || connections_.is_candidate(c)) {
                close_connection(c);
                continue;
            }
            try {
                if (stage_ == stage::joined && c.rank >= 0) connections_.send(c, message_kind::leave, 1, {});
            } catch (...) {
                // No memory for a goodbye: the others will say that this rank was lost.
            }
            if (!c.finish) connections_.finish(c);
        }
        // A rank that is to hear of a failure may have to wait until the message is sent again.
        time_point const last =
            most > leave_time_after_failure
                ? deadline
                : std::max(deadline, clock::now() + longest_hold_up(settings_.times.detector));
        for (time_point until = deadline; connections_.any_open();) {
            if (lock_.wait_until(until)) continue;
            time_point const now = clock::now();
            if (now >= last || !any_undelivered()) break;
            until = std::min(last, now + std::chrono::milliseconds(20));
        }
    }

    /// True if some bytes of this rank have not reached another host.
    HERRING_SETUP bool any_undelivered() noexcept {
        socket_report found;
        for (connection const& c : connections_.all())
            if (c.open() && (c.sent < c.out.size() || (found.read(c.socket) && found.on_its_way)))
                return true;
        return false;
    }

    // ---- failures -----------------------------------------------------------------------------------------

    /// Returns for how long nothing has come from there.
    static clock::duration silence(connection const& c, time_point now) noexcept { return now - c.heard; }

    /// Notes that `rank` was alive at that time.
    HERRING_SETUP void vouch(int rank, time_point heard) noexcept {
        if (at(rank) >= connections_.places().size()) return; // no connection leads there
        connection* const place = connections_.places()[at(rank)];
        if (place != nullptr) place->heard = std::max(place->heard, heard);
    }

    /// Notes whether packets had to be sent again, and which bytes have got through. To be called with each
    /// heartbeat.
    HERRING_SETUP static void note_progress(connection& c, time_point now) noexcept {
        socket_report found;
        if (!found.read(c.socket)) return;
        c.answered = std::max<time_point>(c.answered, now - found.since_packet);
        if (found.acknowledged != c.acknowledged || !found.on_its_way) c.delivered = now;
        c.acknowledged = found.acknowledged;
        if (found.lost > c.lost || found.unanswered != 0) c.lossy_at = now;
        c.lost = std::max(c.lost, found.lost);
    }
    /// True if the network may hold up messages between this rank and that one: packets were lost lately.
    HERRING_SETUP bool held_up(connection& c, time_point now) const noexcept {
        note_progress(c, now);
        return c.lossy_at != time_point{} && now - c.lossy_at < longest_hold_up(settings_.times.detector);
    }
    HERRING_SETUP bool any_held_up(time_point now) noexcept {
        bool any = false;
        for (connection* const place : connections_.places())
            any = (place != nullptr && held_up(*place, now)) || any;
        return any;
    }

    /// Waits for the decision on a collective whose deadline has passed, for longer where the network may
    /// hold it up. False: there is none.
    HERRING_SETUP bool wait_for_verdict(carried_world& w, std::uint64_t number) noexcept {
        failure_detector_options const& times = settings_.times.detector;
        time_point const until = clock::now() + times.verdict_timeout;
        return wait_until_done(w, number, until) ||
               (any_held_up(clock::now()) && wait_until_done(w, number, until + longest_hold_up(times)));
    }

    /// Keeps the first failure, and sends it to every rank of the world that is connected to this one.
    HERRING_SETUP void set_failure(carried_world& w, failure const& why) {
        if (w.failed()) return;
        keep_failure(w, why);
        if (stage_ == stage::joined) send(w, message_kind::fail, 0, write_failure(why));
    }

    HERRING_SETUP void keep_failure(carried_world& w, failure const& why) noexcept {
        w.failure_ = why;
        w.first_failure.store(1, std::memory_order_release);
        lock_.notify_all();
        if (w.number == 0 && settings_.on_failure) thread_.wake(); // the thread calls the handler
    }

    /// Without memory for a control message all worlds of this rank have failed.
    template <class Work> void catching(Work&& work) noexcept {
        try {
            work();
        } catch (...) {
            for (carried_world& w : worlds_)
                if (!w.failed())
                    keep_failure(w, failure::make(errc::no_resources, w.rank, -1, "control",
                                                  "no memory for a control message"));
        }
    }

    HERRING_SETUP void on_acknowledgement(connection& from, head const& h) {
        if (!connections_.with(from).log.acknowledge(h.sequence))
            protocol_error(from, "an acknowledgement of more messages than there are");
    }

    HERRING_SETUP void on_failure_message(connection& from, carried_world& w,
                                          std::span<std::byte const> body) {
        failure why;
        if (read_failure(body, at(w.size), why))
            set_failure(w, why);
        else
            protocol_error(from, "a failure that cannot be read");
    }

    // ---- state --------------------------------------------------------------------------------------------

    settings settings_;
    std::uint64_t const incarnation_ = random_bits();
    event_thread thread_;

    monitor lock_;
    connection_set connections_;
    stage stage_ = stage::joining;
    bool leaving_ = false;
    bool handler_called_ = false; // `on_failure`, which has returned
    fixed_array<bool> gone_;      // rank → it has said goodbye, or is lost
    failure why_refused_{};
    std::string last_trouble_;
    std::list<carried_world> worlds_;       // the first is the joined one; their places stay
    std::atomic<std::uint32_t> holders_{1}; // backends of this process

    // The same on every rank.
    std::uint64_t job_ = 0;
    secret_key world_key_;
    std::vector<int> node_ids_, machine_ids_, rack_ids_, rates_; // by rank
    fixed_array<role> roles_;
    std::string local_address_;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_ENDPOINT_BASE_HPP

// herring: the part of an endpoint without a role: settings, connections, failures, waiting callers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_ENDPOINT_BASE_HPP
#define HERRING_CONTROL_RENDEZVOUS_ENDPOINT_BASE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/connection_set.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/control/world_state.hpp"
#include "herring/control/world_times.hpp"
#include "herring/crypto/secret_key.hpp"
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
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace HERRING_NAMESPACE::detail::rendezvous {

inline constexpr std::chrono::seconds leave_time{5};
inline constexpr std::chrono::milliseconds leave_time_after_failure{500};
/// How much longer than its deadline a rank waits for rank 0's reply.
inline constexpr std::chrono::seconds reply_time{1};

/// The state of one process's end of the control connections, and the functions that need no role.
///
/// Threads:  callers and the event thread touch all members below `lock_`; the thread holds the lock except
///           while it sleeps. Functions are called with the lock held, unless their comment says otherwise.
class endpoint_base {
  public:
    endpoint_base(endpoint_base const&) = delete;
    endpoint_base& operator=(endpoint_base const&) = delete;

    /// Says goodbye, waits until the others have closed, at most `leave_time`; once. Takes the lock.
    HERRING_SETUP void leave() noexcept {
        monitor::guard const held(lock_);
        if (leaving_) return;
        say_goodbye(failed() ? clock::duration(leave_time_after_failure) : clock::duration(leave_time));
    }

    /// Announces a failure. Takes the lock.
    HERRING_SETUP void fail(failure const& why) noexcept {
        try {
            monitor::guard const held(lock_);
            set_failure(why);
        } catch (...) {
            // No memory for the message: the end of the connection tells the others.
        }
    }

    /// Takes the lock.
    HERRING_SETUP void attach(world_state& state) noexcept {
        monitor::guard const held(lock_);
        world_ = &state;
    }

    void check_deadlock() noexcept {} // the thread looks, with each heartbeat

    control_board board() noexcept { return {&first_failure_, &failure_, &probe_, &waits_}; }

  protected:
    enum class stage { joining, joined, refused };

    HERRING_SETUP explicit endpoint_base(settings&& from)
        : settings_(std::move(from)), connections_(thread_, settings_.rank, settings_.size),
          left_(at(settings_.size)) {}
    HERRING_SETUP ~endpoint_base() { close_listeners(); } // the role has stopped the thread

    static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }
    bool failed() const noexcept { return first_failure_.load(std::memory_order_relaxed) != 0; }

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
        world_times const& times = settings_.rank == 0 ? settings_.times : settings_.asked;
        for (std::size_t i = 0; i < world_times::count; ++i)
            mine.times[i] = times[i] == not_given ? 0 : static_cast<std::uint64_t>(times[i].count());
        return mine;
    }

    /// Returns the membership that rank 0 told everyone, after joining.
    HERRING_SETUP membership joined_membership() const {
        membership world;
        world.rank = settings_.rank;
        world.map = topology(node_ids_, {roles_.data(), roles_.size()}, rates_);
        world.job = job_;
        world.key = secret_key(world_key_.bytes());
        world.has_secret = settings_.secret.has_value();
        world.local_address = local_address_;
        world.times = settings_.times;
        world.ranks_on_this_machine = 0;
        for (int const id : machine_ids_)
            if (id == machine_ids_[at(settings_.rank)]) ++world.ranks_on_this_machine;
        return world;
    }

    // ---- waiting, by callers ------------------------------------------------------------------------------

    HERRING_SETUP void wait_while_joining(time_point deadline) noexcept {
        while (stage_ == stage::joining && lock_.wait_until(deadline)) {
        }
    }

    /// Waits for the end of collective `sequence`, well or not; false: `deadline` has passed before.
    HERRING_SETUP bool wait_until_done(std::uint64_t sequence, time_point deadline) noexcept {
        while (done_ < sequence && !failed() && lock_.wait_until(deadline)) {
        }
        return done_ >= sequence || failed();
    }

    // ---- connections --------------------------------------------------------------------------------------

    void close_connection(connection& c) noexcept {
        connections_.close(c);
        lock_.notify_all();
    }

    HERRING_SETUP void close_listeners() noexcept {
        for (int const listener : settings_.listeners) {
            thread_.forget(listener);
            ::close(listener);
        }
        settings_.listeners.clear();
    }

    /// Notes that the rank has said goodbye; nothing more comes from there.
    void has_left(connection& c, int rank) noexcept {
        left_[at(rank)] = true;
        connections_.finish(c);
    }

    /// Handles the end of a rank's connection: the other end has closed it, or the network gave it up.
    HERRING_SETUP void lost(connection& c, int why) {
        bool const expected = left_[at(c.rank)] || c.finish || leaving_ || stage_ == stage::refused;
        close_connection(c);
        if (expected) return;
        set_failure(failure::make(errc::peer_lost, -1, c.rank, "control",
                                  {"its control connection (", c.from, ") closed without a goodbye",
                                   reason(why), ": its process died or its host cannot be reached"}));
    }

    HERRING_SETUP static std::string reason(int why) {
        return why == 0 ? std::string() : text({" (", std::strerror(why), ")"});
    }

    /// Fails the world: a rank has sent bytes that no rank of this build sends.
    HERRING_SETUP void protocol_error(connection& c, std::string_view what) {
        set_failure(failure::make(errc::protocol, settings_.rank, c.rank, operation_or_control(),
                                  {"it sent ", what, "; see that every rank runs the same build"}));
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
                if (stage_ == stage::joined && c.rank >= 0) connections_.send(c, message_kind::leave, 0, {});
            } catch (...) {
                // No memory for a goodbye: the others will say that this rank was lost.
            }
            if (!c.finish) connections_.finish(c);
        }
        // A rank that is to hear of a failure may have to wait until the message is sent again.
        time_point const last =
            !failed() ? deadline
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

    /// The reply of this rank's own caller to the last probe.
    wait_report own_wait_report() const noexcept {
        return wait_report::read(waits_.load(std::memory_order_acquire),
                                 probe_.load(std::memory_order_relaxed));
    }

    /// Returns for how long nothing has come from there.
    static clock::duration silence(connection const& c, time_point now) noexcept { return now - c.heard; }

    /// Notes that `rank` was alive at that time.
    HERRING_SETUP void vouch(int rank, time_point heard) noexcept {
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

    std::string_view operation_or_control() const noexcept {
        return operation_.empty() ? std::string_view("control") : operation_;
    }

    /// Waits for the decision on a collective whose deadline has passed, for longer where the network may
    /// hold it up. False: there is none.
    HERRING_SETUP bool wait_for_verdict(std::uint64_t sequence) noexcept {
        failure_detector_options const& times = settings_.times.detector;
        time_point const until = clock::now() + times.verdict_timeout;
        return wait_until_done(sequence, until) ||
               (any_held_up(clock::now()) && wait_until_done(sequence, until + longest_hold_up(times)));
    }

    /// Keeps the first failure, and sends it to every rank that is connected to this one.
    HERRING_SETUP void set_failure(failure const& why) {
        if (failed()) return;
        keep_failure(why);
        if (stage_ == stage::joined) connections_.send_all(message_kind::fail, 0, write_failure(why));
    }

    HERRING_SETUP void keep_failure(failure const& why) noexcept {
        failure_ = why;
        first_failure_.store(1, std::memory_order_release);
        lock_.notify_all();
        if (settings_.on_failure) thread_.wake(); // the thread calls the handler
    }

    HERRING_SETUP void throw_if_failed(std::string_view operation) const {
        if (failed()) throw error(as_seen_by(failure_, settings_.rank, operation));
    }

    HERRING_SETUP void on_acknowledgement(connection& from, head const& h) {
        if (!connections_.with(from).log.acknowledge(h.sequence))
            protocol_error(from, "an acknowledgement of more messages than there are");
    }

    HERRING_SETUP void on_failure_message(connection& from, std::span<std::byte const> body) {
        failure why;
        if (read_failure(body, at(settings_.size), why))
            set_failure(why);
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
    fixed_array<bool> left_; // rank → it has said goodbye
    failure why_refused_{};
    std::string last_trouble_;
    world_state* world_ = nullptr;

    // The same on every rank.
    std::uint64_t job_ = 0;
    secret_key world_key_;
    std::vector<int> node_ids_, machine_ids_, rates_; // by rank
    fixed_array<role> roles_;
    std::string local_address_;

    std::atomic<std::uint32_t> probe_{0}; // number of the last probe
    std::atomic<std::uint64_t> waits_{wait_report::not_waiting};
    std::atomic<std::uint32_t> first_failure_{0};
    failure failure_{};

    // Collectives.
    std::string_view operation_; // of the caller's call
    std::uint64_t done_ = 0;     // number of the last one that is complete
    byte_buffer result_;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_ENDPOINT_BASE_HPP

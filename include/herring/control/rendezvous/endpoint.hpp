// herring: what both ends of a star share: their connections, their thread, the board of failures, waiting.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_ENDPOINT_HPP
#define HERRING_CONTROL_RENDEZVOUS_ENDPOINT_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/identity.hpp"
#include "herring/base/monitor.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/liveness.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/connections.hpp"
#include "herring/control/rendezvous/event_thread.hpp"
#include "herring/control/rendezvous/link.hpp"
#include "herring/control/rendezvous/pending_collective.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/control/world_state.hpp"
#include "herring/error.hpp"
#include "herring/plan/topology.hpp"

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

#include <sys/epoll.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::star {

class hub;
class member;

inline constexpr std::chrono::seconds leave_time{5};
inline constexpr std::chrono::milliseconds leave_time_after_failure{500};
/// How much longer than its deadline a rank waits for rank 0's word.
inline constexpr std::chrono::seconds answer_time{1};

/// One process's end of the star. A role derives from it and is the rest: `hub` is rank 0, `member` the
/// others. Neither is virtual: the rank tells which it is.
///
/// Role:     has begin, give_up, take_part, accuse, before_sleep, overslept, occurred, connected, heard, stranger,
///           expired and ended, called with the lock held (begin: before there is a thread). Its destructor calls `stop`,
///           so that the thread does not outlive what it works on.
/// Threads:  everything below `lock_` is touched by the thread and by callers alike; the thread holds it but
///           while it sleeps. Sends are tried where they are made, so that a collective costs rank 0 no
///           wake-up of its own.
/// Cost:     a collective is one message from each rank to rank 0 and one back to each.
class star_end {
  public:
    struct ending { // deletes what it is
        void operator()(star_end* end) const noexcept;
    };
    star_end(star_end const&) = delete;
    star_end& operator=(star_end const&) = delete;

    /// Waits until all ranks are here. Throws what kept them away.
    HERRING_SETUP void join() {
        thread_.open(is_.rank);
        begin();
        auto const body = +[](void* self) -> void* {
            static_cast<star_end*>(self)->run();
            return nullptr;
        };
        thread_.start(body, this, is_.rank);
        monitor::guard const held(lock_);
        wait_while_joining(is_.deadline);
        if (stage_ == stage::joining) give_up();
        if (stage_ == stage::joined) return;
        part(answer_time);
        throw error(why_not_);
    }

    /// Says goodbye, waits until the others have closed, at most `leave_time`.
    HERRING_SETUP void leave() noexcept {
        monitor::guard const held(lock_);
        part(failed() ? clock::duration(leave_time_after_failure) : clock::duration(leave_time));
    }

    void destroy() noexcept;

    HERRING_SETUP void barrier(std::string_view operation, time_point deadline) {
        monitor::guard const held(lock_);
        collective(message::barrier, operation, {}, deadline);
    }

    HERRING_SETUP gather_result all_gather(std::string_view operation, std::span<std::byte const> mine,
                                           time_point deadline) {
        monitor::guard const held(lock_);
        collective(message::give, operation, mine, deadline);
        gather_result all;
        if (!unpack(std::exchange(result_, {}), at(is_.size), all)) {
            set_failure(failure::make(errc::protocol, is_.rank, 0, operation,
                                      "its answer cannot be read; see that every rank runs the same build"));
            throw_if_failed(operation);
        }
        return all;
    }

    HERRING_SETUP void fail(failure const& why) noexcept {
        try {
            monitor::guard const held(lock_);
            set_failure(why);
        } catch (...) {
            // No memory to say it; the connection's end will say it.
        }
    }

    /// The first suspicion_report is brought before rank 0; the verdict comes as a failure.
    HERRING_SETUP void report_suspicion(suspicion_report& of) noexcept {
        bool const brought = of.probe != 0;
        of.probe = 1;
        if (brought) return;
        try {
            monitor::guard const held(lock_);
            if (failed()) return;
            accuse(of.why, of.certain);
            thread_.wake(); // it has something to wait for now
        } catch (...) {
            of.probe = 0; // no memory to say it: again
        }
    }

    HERRING_SETUP void attach(world_state& state) noexcept {
        monitor::guard const held(lock_);
        state_ = &state;
    }

    void check_deadlock() noexcept {} // the thread looks, with each heartbeat

    control_board board() noexcept { return {&first_, &cell_, &question_, &says_}; }

    /// After `join`: what rank 0 told everyone.
    HERRING_SETUP membership joined() const {
        membership made;
        made.rank = is_.rank;
        made.map = topology(node_ids_);
        made.job = job_;
        made.local_address = local_address_;
        made.times = is_.times;
        made.default_timeout = is_.asked.call;
        made.ranks_on_this_machine = 0;
        for (int const id : machine_ids_)
            if (id == machine_ids_[at(is_.rank)]) ++made.ranks_on_this_machine;
        return made;
    }

  protected:
    enum class stage { joining, joined, refused };

    HERRING_SETUP explicit star_end(settings&& from)
        : is_(std::move(from)), links_(thread_, is_.rank, is_.size), left_(at(is_.size)) {}
    HERRING_SETUP ~star_end() { close_listeners(); } // as a hub or a member

    /// Ends the thread.
    HERRING_SETUP void stop() noexcept {
        {
            monitor::guard const held(lock_);
            stop_ = true;
        }
        thread_.join();
    }

    bool is_hub() const noexcept { return is_.rank == 0; }
    hub& as_hub() noexcept;
    member& as_member() noexcept;

    // What a role does; they go to the hub at rank 0, else to the member (control_star.hpp).
    void begin();
    void give_up();
    void take_part(message kind, std::uint64_t sequence, std::span<std::byte const> mine,
                   time_point deadline);
    void accuse(failure const& why, bool certain);
    void stands(blocked_report const& mine);
    time_point before_sleep(time_point now);
    void overslept(clock::duration late);
    bool occurred(std::uint64_t key);
    void connected(link& l);
    void heard(link& from, head const& h, std::span<std::byte const> body);
    void stranger(link& l);
    void expired(link& l);
    void ended(link& l, int why);

    static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }
    bool failed() const noexcept { return first_.load(std::memory_order_relaxed) != 0; }

    HERRING_SETUP hello own_hello() const {
        auto const said = [&](std::chrono::milliseconds time, bool given) {
            return given || is_.rank == 0 ? static_cast<std::uint64_t>(time.count()) : 0;
        };
        return {static_cast<std::uint32_t>(is_.size),
                static_cast<std::uint32_t>(is_.rank),
                incarnation_,
                is_.secret,
                said(is_.asked.peer, is_.asked.peer_given),
                said(is_.asked.call, is_.asked.call_given),
                is_.node,
                is_.boot};
    }

    // ---- collectives ---------------------------------------------------------------------------------------

    /// Returns when it has ended well. `kind`: barrier or give.
    HERRING_SETUP void collective(message kind, std::string_view operation, std::span<std::byte const> mine,
                                  time_point deadline) {
        throw_if_failed(operation);
        std::uint64_t const sequence = done_ + 1;
        operation_ = operation;
        if (mine.size() > blob_limit)
            set_failure(failure::make(errc::bad_argument, is_.rank, -1, operation,
                                      {mine.size(), " bytes given; the limit is ", blob_limit,
                                       " a rank: this is for set-up, not for data"}));
        else
            take_part(kind, sequence, mine, deadline);
        operation_ = {};
        if (done_ < sequence) throw_if_failed(operation);
    }

    // ---- waiting, by callers ------------------------------------------------------------------------------

    HERRING_SETUP void wait_while_joining(time_point deadline) noexcept {
        while (stage_ == stage::joining && lock_.wait_until(deadline)) {
        }
    }

    /// Whether collective `sequence` has ended by `deadline`, well or not.
    HERRING_SETUP bool wait_until_done(std::uint64_t sequence, time_point deadline) noexcept {
        while (done_ < sequence && !failed() && lock_.wait_until(deadline)) {
        }
        return done_ >= sequence || failed();
    }

    // ---- connections --------------------------------------------------------------------------------------

    void close_link(link& l) noexcept {
        links_.close(l);
        lock_.notify_all();
    }

    HERRING_SETUP void close_listeners() noexcept {
        for (int const l : is_.listeners) {
            thread_.forget(l);
            ::close(l);
        }
        is_.listeners.clear();
    }

    HERRING_SETUP void receive(link& l) {
        std::byte room_for[16 * 1024];
        std::uint64_t const serial = l.serial;
        for (int turn = 0; turn < 64; ++turn) {
            std::size_t const room = l.room(sizeof room_for);
            ssize_t const n = l.read({room_for, room});
            if (n < 0) return;
            l.heard = clock::now();
            if (n == 0) {
                ended(l, l.error);
                return;
            }
            if (l.refused) continue; // it has been told; what else it says is not heard
            l.in.append({room_for, static_cast<std::size_t>(n)});
            messages(l);
            if (!l.still(serial)) return;
            if (static_cast<std::size_t>(n) < room && !l.refused) return; // an end is told by epoll
        }
    }

    /// Its last message was a goodbye.
    void left(link& l, int rank) noexcept {
        left_[at(rank)] = true;
        links_.finish(l);
    }

    /// The other end has closed, or the network gave it up. `l` is a rank's.
    HERRING_SETUP void lost(link& l, int why) {
        bool const expected = left_[at(l.rank)] || l.finish || leaving_ || stage_ == stage::refused;
        close_link(l);
        if (expected) return;
        set_failure(failure::make(errc::peer_lost, -1, l.rank, "control",
                                  {"its control connection (", l.from, ") closed without a goodbye",
                                   reason(why), ": its process died or its host cannot be reached"}));
    }

    HERRING_SETUP static std::string reason(int why) {
        return why == 0 ? std::string() : text({" (", std::strerror(why), ")"});
    }

    /// What comes from a rank, and no rank of this build would send.
    HERRING_SETUP void nonsense(link& l, std::string_view what) {
        set_failure(failure::make(errc::protocol, is_.rank, l.rank, doing(),
                                  {"it sent ", what, "; see that every rank runs the same build"}));
        close_link(l);
    }

    // ---- liveness -----------------------------------------------------------------------------------------

    /// What this rank's own caller says to the question that was put last.
    wait_report own_wait_report() const noexcept {
        return wait_report::read(says_.load(std::memory_order_acquire),
                                 question_.load(std::memory_order_relaxed));
    }

    /// For how long nothing has come from there.
    static clock::duration silent(link const& l, time_point now) noexcept { return now - l.heard; }

    // ---- failures -----------------------------------------------------------------------------------------

    std::string_view doing() const noexcept {
        return operation_.empty() ? std::string_view("control") : operation_;
    }

    /// The first one stays, and is told to whoever this rank is connected to.
    HERRING_SETUP void set_failure(failure const& why) {
        if (failed()) return;
        keep_failure(why);
        if (stage_ == stage::joined) links_.send_all(message::fail, 0, write_failure(why));
    }

    HERRING_SETUP void heard_failure(link& from, std::span<std::byte const> body) {
        failure why;
        if (read_failure(body, why))
            set_failure(why);
        else
            nonsense(from, "a failure that cannot be read");
    }

    HERRING_SETUP failure gone(int rank, std::string_view operation) const noexcept {
        return failure::make(errc::peer_lost, is_.rank, rank, operation,
                             "it left (its world was destroyed) while others still wait for it; let every "
                             "rank make the same calls");
    }

    // ---- state --------------------------------------------------------------------------------------------

    settings is_;
    std::uint64_t const incarnation_ = random_bits();
    control_thread thread_;

    monitor lock_;
    connections links_;
    stage stage_ = stage::joining;
    fixed_array<bool> left_; // rank → it has said goodbye
    failure why_not_{};      // refused: the reason
    std::string last_trouble_;

    // What everyone was told.
    std::uint64_t job_ = 0;
    std::vector<int> node_ids_, machine_ids_;
    std::string local_address_;

    std::atomic<std::uint32_t> question_{0}; // whom do you wait for? Its number
    std::atomic<std::uint64_t> says_{wait_report::not_waiting};

    // Collectives.
    std::uint64_t done_ = 0; // number of the last one that is complete
    byte_buffer result_;

  private:
    // ---- the thread ---------------------------------------------------------------------------------------

    HERRING_SETUP void run() noexcept {
        while (true) {
            int timeout_ms = -1;
            bool stops = false, tells = false;
            {
                monitor::guard const held(lock_);
                stops = stop_;
                tells = failed() && stage_ == stage::joined && !std::exchange(told_, failed());
                if (!stops && !tells) quietly([&] { timeout_ms = until_next(); });
                if (timeout_ms >= 0) own_.expect(clock::now(), std::chrono::milliseconds(timeout_ms));
            }
            if (tells)
                is_.on_failure(as_seen_by(cell_, is_.rank)); // without the lock; the cell changes no more
            if (stops) return;
            if (tells) continue;
            std::span<epoll_event const> const events = thread_.sleep(timeout_ms);
            monitor::guard const held(lock_);
            if (stop_) continue;
            mind_own_sleep();
            for (epoll_event const& event : events) quietly([&] { take(event.data.u64, event.events); });
        }
    }

    template <class Work> void quietly(Work&& work) noexcept {
        try {
            work();
        } catch (...) {
            if (!failed())
                keep_failure(failure::make(errc::no_resources, is_.rank, -1, "control",
                                           "no memory for a control message"));
        }
    }

    /// If this thread slept much longer than it meant to, because its process was stopped or starved, everyone has
    /// fresh time: nobody is accused of this rank's silence. Returns the time to reckon with.
    HERRING_SETUP time_point mind_own_sleep() noexcept {
        time_point const now = clock::now();
        clock::duration const late = own_.late(now);
        own_.expect(now, {}); // until it sleeps again
        if (late != clock::duration(0)) {
            for (link& l : links_.all()) l.heard = now;
            overslept(late);
        }
        return now;
    }

    /// Does what is due; how long the thread may sleep, in milliseconds.
    HERRING_SETUP int until_next() {
        time_point const now = mind_own_sleep();
        time_point next = time_point::max();
        for (link& l : links_.all()) {
            if (!l.open()) continue;
            if (now >= l.until)
                expired(l);
            else
                next = std::min(next, l.until);
        }
        if (stage_ == stage::joined && !failed() && !leaving_) next = std::min(next, beat(now));
        next = std::min(next, before_sleep(now));
        if (next == time_point::max()) return -1;
        auto const ms =
            std::chrono::duration_cast<std::chrono::milliseconds>(next - clock::now()).count() + 1;
        return static_cast<int>(std::clamp<long long>(ms, 0, 60'000));
    }

    /// Says that this rank is alive, and looks who else is. When to do so again.
    HERRING_SETUP time_point beat(time_point now) {
        if (now < beat_at_) return beat_at_;
        beat_at_ = now + is_.times.beat;
        links_.send_all(message::alive, 0, {});
        if (blocked_report mine; state_ != nullptr && state_->blocked(mine) && !(mine == reported_)) {
            reported_ = mine;
            stands(mine);
        }
        for (link const* const place : links_.places()) {
            if (place == nullptr || left_[at(place->rank)] || silent(*place, now) < is_.times.dead) continue;
            set_failure(
                failure::make(errc::peer_lost, -1, place->rank, "control",
                              {"it has given no sign of life for ", duration_text(is_.times.dead),
                               ": its process is stopped or starved, or its host cannot be reached"}));
            break;
        }
        return beat_at_;
    }

    HERRING_SETUP void take(std::uint64_t key, std::uint32_t what) {
        if (occurred(key)) return;
        link* const l = links_.of_key(key);
        if (l == nullptr) return;
        if (l->connecting) {
            connected(*l);
            return;
        }
        if ((what & EPOLLOUT) != 0) links_.flush(*l);
        if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) receive(*l);
    }

    /// Takes every whole message out of what has come in.
    HERRING_SETUP void messages(link& l) {
        std::size_t begin = 0;
        std::uint64_t const serial = l.serial;
        while (true) {
            arrival const next = l.look(begin, at(is_.size));
            if (!next.wrong.empty()) {
                // Before it has let us in, what answers at rank 0's address need not be rank 0.
                bool const unknown = l.rank < 0 || (is_.rank != 0 && stage_ == stage::joining);
                unknown ? stranger(l) : nonsense(l, next.wrong);
                return;
            }
            if (!next.whole) break;
            begin += head_bytes + next.body.size();
            heard(l, next.front, next.body);
            if (!l.still(serial)) return;
        }
        if (begin > 0) l.in.drop(begin);
    }

    // ---- the end ------------------------------------------------------------------------------------------

    HERRING_SETUP void keep_failure(failure const& why) noexcept {
        cell_ = why;
        first_.store(1, std::memory_order_release);
        lock_.notify_all();
        if (is_.on_failure) thread_.wake(); // which calls it
    }

    HERRING_SETUP void throw_if_failed(std::string_view operation) const {
        if (failed()) throw error(as_seen_by(cell_, is_.rank, operation));
    }

    /// Goodbye to everyone, then waits until they have closed.
    HERRING_SETUP void part(clock::duration most) noexcept {
        time_point const deadline = clock::now() + most;
        leaving_ = true;
        close_listeners();
        for (link& l : links_.all()) {
            if (!l.open()) continue;
            if (l.connecting || (l.pending() && !l.refused)) {
                close_link(l);
                continue;
            }
            try {
                if (stage_ == stage::joined) links_.send(l, message::goodbye, 0, {});
            } catch (...) {
                // No memory for a goodbye: the others will say that this rank was lost.
            }
            if (!l.finish) links_.finish(l);
        }
        while (links_.any_open() && lock_.wait_until(deadline)) {
        }
    }

    world_state* state_ = nullptr;
    blocked_report reported_{}; // last
    bool stop_ = false;
    bool leaving_ = false;
    bool told_ = false; // the program, of the failure
    time_point beat_at_{};
    punctuality own_;
    std::string_view operation_; // the collective that a caller is in
    std::atomic<std::uint32_t> first_{0};
    failure cell_{};
};

} // namespace HERRING_NAMESPACE::detail::star

#endif // HERRING_CONTROL_RENDEZVOUS_ENDPOINT_HPP

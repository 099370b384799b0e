// herring: the rules and lanes of a frontend joined: sends requests, and executes what the rules decide.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_ENGINE_HPP
#define HERRING_ENSEMBLE_FRONTEND_ENGINE_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/frontend_driver.hpp"
#include "herring/ensemble/frontend_state.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/options.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/request_answers.hpp"
#include "herring/ensemble/request_table.hpp"
#include "herring/ensemble/wait_set.hpp"
#include "herring/machine/futex.hpp"
#include "herring/machine/time.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The state that every call of a frontend works on, for microseconds. It never waits; a thread that drives
/// it sets the three flags at the end of the public members.
///
/// `Format`:  rows (`row_format`). The driving thread checks them without the lock.
/// `Lanes`:   the kinds of lanes.
/// `Control`: the acceptor: is told of lanes that broke, peers that owe nothing more, and changes of
///            probation.
///
/// Threads:   one at a time, under `lock`.
/// Cost:      no allocation for a request.
template <class Format, class Lanes, class Control> class frontend_engine {
  public:
    using link_type = link<typename Lanes::tcp, typename Lanes::shared>;
    static constexpr int most_rounds = 64; // rounds of polling before the lock is released

    HERRING_SETUP frontend_engine(frontend_options const& o, table_options const& rules,
                                  std::size_t result_bytes)
        : table(rules), slots({o.in_flight, o.most_members, result_bytes}),
          requests(o.in_flight, o.request_bytes, o.most_members * o.replicas, o.credits, o.lanes),
          links(o.most_members * o.replicas, ready), elements_(o.elements),
          tells_verdicts_(static_cast<bool>(o.on_change)) {}
    frontend_engine(frontend_engine const&) = delete;
    frontend_engine& operator=(frontend_engine const&) = delete;

    static std::int64_t now_ns() noexcept {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(herring::clock::now().time_since_epoch())
            .count();
    }

    // ---- a request

    struct accepted {
        outcome refused = outcome::full; ///< full: accepted
        slot_index slot = 0;
        std::uint64_t id = 0;
    };
    struct intent {
        bool is_async = false;
        std::uint64_t cookie = 0;
        bool expect = false;
        std::uint64_t id = 0; ///< of an expected request
    };
    /// Takes a request that was checked, and sends it.
    ///
    /// Errors: `bad_argument` if another request in flight has the expected id.
    accepted begin(std::int64_t entered, std::span<std::byte const> input, std::chrono::nanoseconds within,
                   ask_options const& how, intent const& what) {
        if (!driving) take_what_is_here();
        std::int64_t const deadline = entered + within.count();
        request_table::begun const b = table.begin({.entered = entered,
                                                    .deadline = deadline,
                                                    .k = how.k,
                                                    .among = how.among ? &*how.among : nullptr,
                                                    .expected_id = what.id,
                                                    .expect = what.expect},
                                                   now_ns());
        if (b.refused != outcome::full) {
            changed();
            if (b.refused == outcome::failed) ask_check::id_in_flight(what.id);
            return {b.refused, 0, 0};
        }
        in_flight& r = slots[b.slot];
        r.word.store(in_flight::asleep, std::memory_order_relaxed);
        r.decided = r.waits = false;
        r.is_async = what.is_async;
        r.cookie = what.cookie;
        r.id = b.id;
        r.deadline = deadline;
        r.rows = 0;
        r.weighted = !how.weights.empty();
        std::copy(how.weights.begin(), how.weights.end(), slots.weights(b.slot).begin());
        std::span<peer_index const> const peers = table.asked(b.slot);
        if (!what.expect && !table.is_decided(b.slot)) { // also if all wait for credits
            std::span<std::byte> const bytes = requests.slot(b.slot).first(input.size());
            if (!input.empty()) std::memcpy(bytes.data(), input.data(), input.size());
            r.bytes = bytes;
            for (peer_index const p : peers) send(p, b.slot);
            drop_broken();
        }
        changed();
        return {outcome::full, b.slot, b.id};
    }
    /// Executes what the rules have decided. To be called after every call of the rules.
    void changed() noexcept {
        slot_index at = 0;
        peer_index to = 0;
        while (table.next_hedge(at, to)) {
            slots[at].hedged = true;
            send(to, at);
        }
        while (table.next_ask(at, to)) send(to, at);
        while (table.next_decided(at)) decided(at);
        give_back_returned();
        std::size_t member = 0;
        bool slow = false;
        while (table.next_probation(member, slow)) verdict(member, slow);
        if (sleeping || (has_loop && !driving)) ready.arm(table.next_event());
    }
    /// Wakes the thread that waits for the request: it is decided, or no thread drives.
    static void call(in_flight& r) noexcept {
        r.word.store(in_flight::called, std::memory_order_release);
        futex_wake(r.word, false);
    }

    // ---- lanes

    /// The thread that calls: the driving one releases the lock while it checks rows.
    enum class caller : std::uint8_t { driver, other };
    /// Polls all lanes once. `look`: asks the kernel which lanes are ready. False: no lane had anything.
    bool turn(std::int64_t now, bool look, caller who = caller::other) noexcept {
        bool any = false;
        if (look) {
            ready.wait(found, 0);
            any = take(found, now);
        }
        for (std::size_t i = 0; i < links.shared().size(); ++i) any |= poll_link(*links.shared()[i], now);
        finish(now, who);
        return any;
    }
    /// Polls the lanes that a sleep found ready.
    void take_found(wait_set::found const& events, std::int64_t now) noexcept {
        (void)take(events, now);
        finish(now, caller::driver);
    }
    void take_what_is_here() noexcept { (void)turn(now_ns(), links.any_sockets()); }
    /// Leaves the lanes to a loop of the program that sleeps on the descriptor. No thread drives.
    void settle() noexcept {
        if (!has_loop) return;
        for (int rounds = 0; !links.announce_sleep(); ++rounds) {
            if (rounds == most_rounds) {
                ready.show();
                break;
            }
            (void)turn(now_ns(), false);
        }
        ready.arm(table.next_event());
    }
    /// Tells the acceptor that a leaving peer owes nothing any more.
    void let_go(link_type& l) noexcept {
        if (!l.draining || l.drained || table.unanswered_by(l.peer()) != 0) return;
        l.drained = true;
        if (control != nullptr) control->drained(l.peer(), l.incarnation());
    }

    frontend_lock lock;
    request_table table;
    wait_set ready;
    requests_in_flight slots;
    typename Lanes::requests requests;
    frontend_links<link_type> links;
    request_list done; ///< asynchronous requests that are decided
    wait_set::found found;
    Control* control = nullptr;           ///< nullptr after the acceptor has ended
    member_set slow_since, fast_since;    ///< changes of probation that were not reported yet
    std::atomic<bool> has_verdict{false}; ///< there are any; read without the lock

    // Set by the driving thread.
    slot_index driver = 0;                  ///< slot of its request
    bool driving = false, sleeping = false; ///< a thread polls; it sleeps
    bool has_loop = false;                  ///< an event loop of the program sleeps on `ready`

  private:
    /// Takes what a lane reports.
    struct lane_sink {
        frontend_engine& engine;
        link_type& from;
        std::int64_t now;
        bool any = false;

        void row(std::uint64_t id, place_index place, std::span<std::byte const> bytes) noexcept {
            any = true;
            from.hold();
            if (!engine.landed_.push(from, id, place, bytes))
                engine.take_row(from, id, place, Format::check(bytes, engine.elements_), now);
        }
        void declined(std::uint64_t id, decline why) noexcept {
            any = true;
            engine.table.declined(from.peer(), from.serial(), id, why, now);
        }
    };

    void take_row(link_type& from, std::uint64_t id, place_index place, row_check check,
                  std::int64_t now) noexcept {
        auto const is = table.row(from.peer(), from.serial(), id, place, check, now);
        if (is == arrival::early)
            from.keep(place);
        else if (is != arrival::counted)
            from.give_back(place);
        give_back_returned();
    }
    // Checks the values of rows that have landed; without the lock where this thread drives. A row counts as
    // come when its check ends. Returns that time.
    std::int64_t check_landed(std::int64_t now, bool may_unlock) noexcept {
        if (!landed_.any()) return now;
        auto const check = [this](std::span<std::byte const> bytes) noexcept {
            return Format::check(bytes, elements_);
        };
        if (may_unlock) {
            landed_.begin_check();
            lock.unlock();
            landed_.check(check);
            lock.lock();
            now = now_ns();
        } else {
            landed_.check(check);
        }
        landed_.end_check([&](auto const& row) noexcept {
            take_row(*row.from, row.id, row.place, row.is, now);
            if (links[row.from->peer()] == row.from) let_go(*row.from);
        });
        return now;
    }
    // Gives back the places of early rows that are kept no longer.
    void give_back_returned() noexcept {
        for (early_row row; table.next_returned(row);)
            if (link_type* const from = links.of_admission(row.peer, row.incarnation))
                from->give_back(row.place);
    }
    void send(peer_index peer, slot_index at) noexcept {
        link_type* const l = links[peer];
        if (l == nullptr) return; // lost since
        in_flight const& r = slots[at];
        std::int64_t const now = now_ns(), left = r.deadline - now;
        if (l->ask(at, r.id, static_cast<std::uint64_t>(left > 0 ? left / 1000 : 0), r.bytes)) {
            links.watch_writes(*l);
            return;
        }
        if (l->error()
                .empty()) // answers hold the places of rows, or the member has fewer credits than others
            table.unsent(peer, l->serial(), r.id, now);
        else
            links.broken(peer);
    }
    void decided(slot_index at) noexcept {
        in_flight& r = slots[at];
        r.how = table.result(at);
        r.contributors = table.contributors(at);
        r.rows = 0;
        r.shared = false;
        for (auto const& row : table.contributions(at)) {
            link_type* const from = links.of_admission(row.peer, row.incarnation);
            r.shared |= from->is_shared();
            slots.rows(at)[r.rows] = from->row(row.place);
            slots.chosen(at)[r.rows] = slots.weights(at)[row.member];
            ++r.rows;
        }
        if (r.hedged) {
            for (link_type* const l : links.all())
                if (l != nullptr) l->detach(at);
            r.hedged = false;
        } else {
            for (peer_index const p : table.asked(at))
                if (links[p] != nullptr) links[p]->detach(at);
        }
        r.decided = true;
        if (r.is_async) {
            done.append(slots.records(), at);
            if (has_loop) ready.show();
        } else if (r.waits) {
            call(r);
        } else if (sleeping && driver == at) {
            ready.wake();
        }
    }
    // Wakes the acceptor's thread, which reports the change of probation to the program.
    HERRING_SETUP void verdict(std::size_t member, bool slow) noexcept {
        (slow ? slow_since : fast_since).insert(member);
        (slow ? fast_since : slow_since).erase(member);
        if (!tells_verdicts_ || control == nullptr) return;
        has_verdict.store(true, std::memory_order_release);
        if constexpr (requires(Control & acceptor) { acceptor.nudge(); }) control->nudge();
    }

    bool take(wait_set::found const& events, std::int64_t now) noexcept {
        bool any = false;
        for (int i = 0; i < events.count; ++i) {
            std::uint64_t const key = events.key(i);
            if (key == wait_set::timer_key) {
                ready.timer_has_fired();
            } else if (key == wait_set::wake_key) {
                ready.woken();
            } else if (key < links.size() && links[key] != nullptr) {
                links[key]->rung();
                any |= poll_link(*links[key], now);
            }
        }
        return any;
    }
    void finish(std::int64_t now, caller who) noexcept {
        now = check_landed(now, who == caller::driver);
        drop_broken();
        table.advance(now);
        changed();
    }
    bool poll_link(link_type& l, std::int64_t now) noexcept {
        lane_sink sink{*this, l, now};
        if (!l.poll(sink)) {
            links.broken(l.peer());
            return true;
        }
        links.watch_writes(l);
        let_go(l);
        return sink.any;
    }
    void drop_broken() noexcept {
        while (link_type* const l = links.next_broken()) drop(*l);
    }
    HERRING_SETUP void drop(link_type& l) noexcept {
        std::string why(l.error());
        std::uint64_t const incarnation = l.incarnation();
        peer_index const peer = l.peer();
        table.lost(peer, now_ns());
        links.retire(peer);
        if (control != nullptr) control->drop(peer, incarnation, std::move(why));
    }

    std::size_t elements_;
    bool tells_verdicts_;
    landed_rows<link_type> landed_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_ENGINE_HPP

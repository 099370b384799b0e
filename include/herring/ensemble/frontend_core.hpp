// herring: the engine of a frontend: joins rules, lanes and door under one lock, and drives them by who waits.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_CORE_HPP
#define HERRING_ENSEMBLE_FRONTEND_CORE_HPP

#include "herring/base/config.hpp"
#include "herring/base/cpu_pause.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/futex.hpp"
#include "herring/base/identity.hpp"
#include "herring/base/time.hpp"

#include "herring/ensemble/admission_refusal.hpp"
#include "herring/ensemble/change.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/frontend_lock.hpp"
#include "herring/ensemble/link.hpp"
#include "herring/ensemble/options.hpp"
#include "herring/ensemble/request_table.hpp"
#include "herring/ensemble/requests_in_flight.hpp"
#include "herring/ensemble/shape.hpp"
#include "herring/ensemble/wait_set.hpp"
#include "herring/error.hpp"
#include "herring/waiting/waiting.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The engine of a frontend. Whoever waits for an answer drives: the first who asks polls lanes and rules, or sleeps on all of
/// them, until his request is decided; the others sleep on their own requests, and one of them takes over. A frontend that
/// nobody asks has no thread but the door's.
///
/// `Format`:  rows (`row_format`). `Waiting`: a model of the axis. `Door`: the control plane, which calls `admitted`, `draining`, `lost`,
///            `refused`, `local_memory`. `Lanes`: kinds of lanes, and how they are opened; for tests others than in use.
///
/// Threads:   any. One lock for rules and lanes, held for microseconds; rows are folded without it, by who takes the answer.
/// Cost:      nothing is allocated for a request. A request: a copy of its bytes, one ask a member; asleep two system calls.
template <class Format, class Waiting, template <class> class Door, class Lanes> class frontend_core {
  public:
    using format = Format;
    using link_type = link<typename Lanes::tcp, typename Lanes::shared>;

    /// What the door's thread calls.
    struct door_calls {
        frontend_core* core;

        void admitted(peer_index peer, std::uint64_t incarnation, std::uint32_t credits,
                      lane_ends&& ends) noexcept {
            core->admitted(peer, incarnation, credits, std::move(ends));
        }
        void draining(peer_index peer, std::uint64_t incarnation) noexcept {
            core->draining(peer, incarnation);
        }
        void lost(peer_index peer, std::uint64_t incarnation, std::string_view why) noexcept {
            core->lost(peer, incarnation, why);
        }
        void refused(admission_refusal, std::string_view) noexcept { core->refused(); }
        void nudged() noexcept { core->nudged(); }
        int local_memory() const noexcept { return core->requests_.descriptor(); }
    };

    struct settings {
        frontend_options options; ///< checked
        shape agreed;
        quorum_tuning quorum{};
        hedging_tuning hedging{};
        std::size_t result_bytes = 0;
        /// For a frontend without k of its own: that of the quorum policy, by the size of the roster.
        std::size_t (*least)(std::size_t roster) noexcept = nullptr;
    };

    HERRING_SETUP explicit frontend_core(settings s)
        : options_(std::move(s.options)), least_(s.least), row_bytes_(s.agreed.row_bytes),
          cores_(usable_cores()), table_(table_of(options_, s)),
          slots_({options_.in_flight, options_.most_members, s.result_bytes}),
          requests_(options_.in_flight, options_.request_bytes, options_.most_members * options_.replicas,
                    options_.credits, options_.lanes),
          links_(options_.most_members * options_.replicas), seen_(links_.size()) {
        names_.reserve(options_.most_members);
        names_.assign(options_.members.begin(), options_.members.end());
        shared_.reserve(links_.size());
        broken_.reserve(links_.size());
        retired_.reserve(4 * links_.size());
        door_options d;
        d.address = options_.listen;
        d.secret = options_.secret;
        d.secret_file = options_.secret_file;
        d.require_secret = options_.require_secret;
        d.lanes = options_.lanes;
        d.replicas = static_cast<std::uint32_t>(options_.replicas);
        d.credits = static_cast<std::uint32_t>(options_.credits);
        d.in_flight = static_cast<std::uint32_t>(options_.in_flight);
        d.heartbeat = options_.heartbeat;
        d.peer_timeout = options_.peer_timeout;
        frontend_lock::guard const held(lock_); // the door's thread finds the door
        door_ = std::make_unique<Door<door_calls>>(d, s.agreed, options_.members, calls_);
    }
    frontend_core(frontend_core const&) = delete;
    frontend_core& operator=(frontend_core const&) = delete;
    ~frontend_core() {
        for (link_type* const each : links_) delete each;
        for (link_type* const each : retired_) delete each;
    }

    // ---- the end

    /// Whether this thread is the one that calls the program's handler.
    bool is_in_handler() const noexcept {
        return handling_.load(std::memory_order_acquire) &&
               ::pthread_equal(handler_thread_, ::pthread_self());
    }
    /// Ends all requests as closed; those to come are refused.
    HERRING_SETUP void close() noexcept {
        frontend_lock::guard const held(lock_);
        table_.close(now_ns());
        changed();
    }
    /// The frontend goes; answers may still exist. True: none does, and this is to be destroyed.
    HERRING_SETUP bool shut() noexcept {
        close();
        {
            std::unique_ptr<Door<door_calls>> gone;
            {
                frontend_lock::guard const held(lock_);
                gone.swap(door_);
            }
        } // joins its thread
        lock_.lock();
        while (inside_ != 0) lock_.let_others_in(); // who waited is on the way out
        shut_ = true;
        bool const last = table_.in_flight() == 0;
        lock_.unlock();
        return last;
    }

    // ---- requests

    struct accepted {
        outcome refused = outcome::full; ///< full: it is accepted
        slot_index slot = 0;
        std::uint64_t id = 0;
    };

    /// Takes a request, and sends it. `expected`: its id, if members have their input elsewhere.
    ///
    /// Errors: `bad_argument`.
    accepted submit(std::span<std::byte const> input, std::chrono::nanoseconds within, ask_options const& how,
                    std::uint64_t cookie) {
        std::int64_t const entered = now_ns();
        check(input.size(), within, how);
        frontend_lock::guard const held(lock_);
        return leave_to_loop(begin(entered, input, within, how, {.is_async = true, .cookie = cookie}));
    }
    /// The same, and waits until it is decided. The slot is the caller's until `release`.
    accepted ask(std::span<std::byte const> input, std::chrono::nanoseconds within, ask_options const& how) {
        std::int64_t const entered = now_ns();
        check(input.size(), within, how);
        frontend_lock::guard const held(lock_);
        return await(begin(entered, input, within, how, {}));
    }
    accepted expect(std::uint64_t id, std::chrono::nanoseconds within, ask_options const& how) {
        std::int64_t const entered = now_ns();
        check_expected(id);
        check(0, within, how);
        frontend_lock::guard const held(lock_);
        return await(begin(entered, {}, within, how, {.expect = true, .id = id}));
    }
    accepted submit_expected(std::uint64_t id, std::chrono::nanoseconds within, ask_options const& how,
                             std::uint64_t cookie) {
        std::int64_t const entered = now_ns();
        check_expected(id);
        check(0, within, how);
        frontend_lock::guard const held(lock_);
        return leave_to_loop(
            begin(entered, {}, within, how, {.is_async = true, .cookie = cookie, .expect = true, .id = id}));
    }

    /// Ends a request that is undecided. False: there is none with this id.
    bool cancel(std::uint64_t id) noexcept {
        frontend_lock::guard const held(lock_);
        for (slot_index at = 0; at < slots_.size(); ++at)
            if (table_.cancel(at, id)) {
                changed();
                return true;
            }
        return false;
    }

    // ---- an event loop of the program's

    /// Readable when `poll` has something to do or `next_done` something to give.
    int descriptor() noexcept {
        frontend_lock::guard const held(lock_);
        has_loop_ = true;
        if (!driving_) settle();
        return ready_.descriptor();
    }
    /// Does what can be done now. Does not block.
    void poll() noexcept {
        frontend_lock::guard const held(lock_);
        ready_.fetched();
        if (!driving_) {
            for (int rounds = 0; rounds < most_rounds && turn(now_ns(), true); ++rounds) {
            }
            settle();
        }
        if (!done_.empty()) ready_.show();
    }
    /// The next asynchronous request that is decided; its slot is the caller's until `release`. False: none.
    bool next_done(slot_index& at) noexcept {
        frontend_lock::guard const held(lock_);
        if (done_.empty()) return false;
        at = done_.first();
        done_.remove(slots_.records(), at);
        if (done_.empty() && has_loop_) ready_.fetched();
        return true;
    }

    // ---- a decided request

    in_flight const& request(slot_index at) const noexcept { return slots_[at]; }
    std::span<std::span<std::byte const> const> rows(slot_index at) noexcept {
        return slots_.rows(at).first(slots_[at].rows);
    }
    std::span<float const> row_weights(slot_index at) noexcept {
        return slots_[at].weighted ? slots_.chosen(at).first(slots_[at].rows) : std::span<float>();
    }
    std::span<std::byte> result(slot_index at) noexcept { return slots_.result(at); }
    /// The member whose row is the i-th; the row's place among those that counted, −1 if it did not.
    std::ptrdiff_t row_of(slot_index at, std::size_t member) const noexcept {
        member_set const& came = slots_[at].contributors;
        if (!came.contains(member)) return -1;
        std::ptrdiff_t before = 0;
        for (std::size_t m = 0; m < member; ++m) before += came.contains(m);
        return before;
    }
    miss why(slot_index at, std::size_t member) noexcept {
        frontend_lock::guard const held(lock_);
        return table_.why(at, member);
    }
    std::int64_t latency_ns(slot_index at, std::size_t member) noexcept {
        frontend_lock::guard const held(lock_);
        return table_.latency_ns(at, member);
    }
    std::int64_t decided_ns(slot_index at) noexcept {
        frontend_lock::guard const held(lock_);
        return table_.decided_ns(at);
    }
    /// The replica whose row counted; 0 where none did.
    std::uint32_t replica(slot_index at, std::size_t member) noexcept {
        frontend_lock::guard const held(lock_);
        for (auto const& row : table_.contributions(at))
            if (row.member == member) return static_cast<std::uint32_t>(row.peer % options_.replicas);
        return 0;
    }
    member_set late(slot_index at) noexcept {
        member_set all;
        frontend_lock::guard const held(lock_);
        for (std::size_t m = 0; m < names_.size(); ++m)
            if (miss const why = table_.why(at, m);
                why == miss::late || why == miss::probation || why == miss::expired)
                all.insert(m);
        return all;
    }

    /// The answer goes. True: the frontend has gone before, this was its last answer, and this is to be destroyed.
    bool release(slot_index at) noexcept {
        frontend_lock::guard const held(lock_);
        for (auto const& row : table_.contributions(at))
            if (link_type* const from = link_of(row.peer, row.incarnation)) from->give_back(row.place);
        table_.release(at, [](peer_index, place_index) noexcept {});
        slots_[at].decided = false;
        return shut_ && table_.in_flight() == 0;
    }

    // ---- members

    std::string address() const { return door_->address(); }
    bool ready() noexcept {
        frontend_lock::guard const held(lock_);
        return table_.admitted_members() >= k();
    }
    std::size_t admitted() noexcept {
        frontend_lock::guard const held(lock_);
        return table_.admitted_members();
    }
    std::size_t roster() noexcept {
        frontend_lock::guard const held(lock_);
        return names_.size();
    }
    /// Calls `give(member, replica, name, state)` for each replica that may be.
    struct replica_state {
        bool admitted = false, draining = false, slow = false, shared = false;
    };
    template <class Give> void each_replica(Give&& give) {
        frontend_lock::guard const held(lock_);
        for (std::size_t p = 0; p < names_.size() * options_.replicas; ++p) {
            link_type const* const l = links_[p];
            std::size_t const member = p / options_.replicas;
            give(member, static_cast<std::uint32_t>(p % options_.replicas), std::string_view(names_[member]),
                 replica_state{.admitted = l != nullptr,
                               .draining = l != nullptr && l->draining,
                               .slow = table_.on_probation(member),
                               .shared = l != nullptr && l->is_shared()});
        }
    }
    HERRING_SETUP void add_member(std::string name) {
        option_check const check{"frontend"};
        check.name("a member's name", name);
        {
            frontend_lock::guard const held(lock_);
            for (std::size_t m = 0; m < names_.size(); ++m)
                if (names_[m] == name) check.refuse({"the roster has '", name, "' already, as member ", m});
            if (names_.size() == options_.most_members)
                check.refuse({"the roster has ", names_.size(),
                              " members, which is most_members; give the frontend a larger one"});
            names_.push_back(name);
            table_.add_member();
            table_.set_k(k());
        }
        door_->add_member(std::move(name));
    }
    /// Calls `give(rules, names, k)` under the lock. Names do not move as long as the frontend is there.
    template <class Give> void look(Give&& give) {
        frontend_lock::guard const held(lock_);
        give(std::as_const(table_), std::as_const(names_), k());
    }
    std::string_view name() const noexcept { return options_.name; }
    std::size_t slots() const noexcept { return slots_.size(); }
    std::size_t elements() const noexcept { return options_.elements; }
    std::size_t most_members() const noexcept { return options_.most_members; }

    // ---- what the door's thread calls

    HERRING_SETUP void admitted(peer_index peer, std::uint64_t incarnation, std::uint32_t credits,
                                lane_ends&& ends) noexcept {
        auto fresh = std::make_unique<link_type>(peer, incarnation, ++serials_);
        std::string fault;
        try {
            Lanes::open(*fresh, std::move(ends), requests_, peer, credits, options_.request_bytes,
                        row_bytes_);
        } catch (error const& e) {
            fault = e.why().text;
            if (fault.empty()) fault = to_string(e.code());
        }
        change_kind what = change_kind::joined;
        {
            frontend_lock::guard const held(lock_);
            sweep();
            if (peer < links_.size() && fault.empty()) {
                if (!ready_.watch(fresh->descriptor(), peer)) fault = "no room to watch its lane";
            }
            if (fault.empty()) {
                if (links_[peer] != nullptr) retire(peer);
                if (seen_[peer]) what = change_kind::returned;
                seen_[peer] = true;
                links_[peer] = fresh.release();
                if (links_[peer]->is_shared())
                    shared_.push_back(links_[peer]);
                else
                    ++tcp_links_;
                table_.admitted(peer, links_[peer]->serial(), now_ns());
                if (sleeping_) ready_.wake(); // the new lane has to know that this end sleeps
                if (!driving_) settle();
                changed();
            }
        }
        if (!fault.empty()) {
            if (door_ != nullptr) door_->drop(peer, incarnation, std::move(fault));
            return;
        }
        tell(what, peer, {});
    }
    HERRING_SETUP void draining(peer_index peer, std::uint64_t incarnation) noexcept {
        {
            frontend_lock::guard const held(lock_);
            link_type* const l = current(peer, incarnation);
            if (l == nullptr) return;
            l->draining = true;
            table_.draining(peer);
            changed();
            let_go(*l);
        }
        tell(change_kind::leaving, peer, {});
    }
    HERRING_SETUP void lost(peer_index peer, std::uint64_t incarnation, std::string_view why) noexcept {
        {
            frontend_lock::guard const held(lock_);
            if (current(peer, incarnation) != nullptr) {
                table_.lost(peer, now_ns());
                retire(peer);
                changed();
            }
            sweep();
        }
        tell(change_kind::lost, peer, why);
    }
    HERRING_SETUP void nudged() noexcept {
        if (!untold_.exchange(false, std::memory_order_acq_rel)) return;
        member_set slow, recovered;
        {
            frontend_lock::guard const held(lock_);
            std::swap(slow, slow_);
            std::swap(recovered, recovered_);
        }
        auto const tell_of = [&](change_kind what) {
            return [this, what](std::size_t m) {
                tell(what, static_cast<peer_index>(m * options_.replicas), {});
            };
        };
        slow.for_each(tell_of(change_kind::slow));
        recovered.for_each(tell_of(change_kind::recovered));
    }
    HERRING_SETUP void refused() noexcept {
        frontend_lock::guard const held(lock_);
        sweep();
    }

  private:
    using table = request_table;
    static constexpr int most_rounds = 64; // of polling without letting go of the lock
    static constexpr std::int64_t no_time = wait_set::no_time;

    struct intent {
        bool is_async = false;
        std::uint64_t cookie = 0;
        bool expect = false;
        std::uint64_t id = 0;
    };

    /// What lanes report.
    struct lane_sink {
        frontend_core& core;
        link_type& from;
        std::int64_t now;
        bool any = false;

        void row(std::uint64_t id, place_index place, std::span<std::byte const> bytes) noexcept {
            any = true;
            auto const is = core.table_.row(from.peer(), from.serial(), id, place,
                                            Format::check(bytes, core.options_.elements), now);
            if (is == table::arrival::counted)
                from.hold();
            else
                from.release(place);
        }
        void declined(std::uint64_t id, decline why) noexcept {
            any = true;
            core.table_.declined(from.peer(), from.serial(), id, why, now);
        }
    };

    static std::int64_t now_ns() noexcept {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(herring::clock::now().time_since_epoch())
            .count();
    }
    HERRING_SETUP static table_options table_of(frontend_options const& o, settings const& s) {
        return {.members = o.members.size(),
                .replicas = o.replicas,
                .in_flight = o.in_flight,
                .credits = o.credits,
                .k = o.k > 0 ? o.k : s.least(o.members.size()),
                .quorum = s.quorum,
                .hedging = s.hedging};
    }
    std::size_t k() const noexcept {
        return options_.k > 0 ? options_.k : least_(names_.size());
    } // with the lock

    // ---- a request

    [[noreturn]] HERRING_SETUP static void refuse(std::initializer_list<text_part> text) {
        throw error(errc::bad_argument, -1, -1, "ask", text);
    }
    HERRING_SETUP static void check_expected(std::uint64_t id) {
        if (id == 0 || id >> 63 != 0)
            refuse({"the id of an expected request is ", id, "; it has to be from 1 to 2^63 - 1"});
    }
    void check(std::size_t bytes, std::chrono::nanoseconds within, ask_options const& how) const {
        if (bytes > options_.request_bytes)
            refuse({"the request has ", bytes, " bytes, and request_bytes is ", options_.request_bytes,
                    "; give frontend and members a larger one"});
        if (within.count() < 0 || within > most_time)
            refuse({"the deadline is ", within.count(), " ns away; it has to be from 0 to a day"});
        if (!how.weights.empty())
            if (char const* const fault = Format::fault_of_weights(how.weights)) refuse({fault});
        if (how.among && how.among->empty()) refuse({"among has no member"});
    }
    // With the lock.
    void check_roster(ask_options const& how) const {
        std::size_t const all = names_.size();
        std::size_t candidates = all;
        if (how.among) {
            candidates = how.among->count();
            if ((*how.among - member_set::first(all)).count() != 0)
                refuse({"among has members beyond the roster, which has ", all});
        }
        std::size_t const least = how.k > 0 ? how.k : k();
        if (least > candidates)
            refuse({"k is ", least, ", and ", candidates,
                    how.among ? " members of among" : " members of the roster", " could answer"});
        if (!how.weights.empty() && how.weights.size() != all)
            refuse({how.weights.size(), " weights are given, and the roster has ", all, " members"});
    }

    // Everything below is called with the lock held.

    accepted begin(std::int64_t entered, std::span<std::byte const> input, std::chrono::nanoseconds within,
                   ask_options const& how, intent const& what) {
        check_roster(how);
        if (!driving_) take_what_is_here();
        std::int64_t const deadline = entered + within.count();
        table::begun const b = table_.begin({.entered = entered,
                                             .deadline = deadline,
                                             .k = how.k,
                                             .among = how.among ? &*how.among : nullptr,
                                             .expected_id = what.id,
                                             .expect = what.expect},
                                            now_ns());
        if (b.refused != outcome::full) {
            changed();
            if (b.refused == outcome::failed)
                refuse(
                    {"the id of an expected request, ", what.id, ", is that of another request in flight"});
            return {b.refused, 0, 0};
        }
        in_flight& r = slots_[b.slot];
        r.word.store(in_flight::asleep, std::memory_order_relaxed);
        r.decided = r.waits = false;
        r.is_async = what.is_async;
        r.cookie = what.cookie;
        r.id = b.id;
        r.deadline = deadline;
        r.rows = 0;
        r.weighted = !how.weights.empty();
        std::copy(how.weights.begin(), how.weights.end(), slots_.weights(b.slot).begin());
        std::span<peer_index const> const peers = table_.asked(b.slot);
        if (!peers.empty()) {
            std::span<std::byte> const bytes = requests_.slot(b.slot).first(input.size());
            if (!input.empty()) std::memcpy(bytes.data(), input.data(), input.size());
            r.bytes = bytes;
            for (peer_index const p : peers) send(p, b.slot);
            drop_broken();
        }
        changed();
        return {outcome::full, b.slot, b.id};
    }
    void send(peer_index peer, slot_index at) noexcept {
        link_type* const l = links_[peer];
        if (l == nullptr) return; // lost since
        in_flight const& r = slots_[at];
        std::int64_t const now = now_ns(), left = r.deadline - now;
        if (l->ask(at, r.id, static_cast<std::uint64_t>(left > 0 ? left / 1000 : 0), r.bytes)) {
            watch_writes(*l);
            return;
        }
        if (l->error().empty()) // no place is left for its row: answers hold them
            table_.declined(peer, l->serial(), r.id, decline::overloaded, now);
        else
            broken_.push_back(peer);
    }
    void watch_writes(link_type& l) noexcept {
        if (l.wants_write() == l.watched_for_write) return;
        l.watched_for_write = !l.watched_for_write;
        ready_.rewatch(l.descriptor(), l.peer(), l.watched_for_write);
    }

    // What the rules have decided since, and all that follows from it. After every call of theirs.
    void changed() noexcept {
        slot_index at = 0;
        peer_index to = 0;
        while (table_.next_hedge(at, to)) {
            slots_[at].hedged = true;
            send(to, at);
        }
        while (table_.next_decided(at)) decided(at);
        std::size_t member = 0;
        bool slow = false;
        while (table_.next_probation(member, slow)) verdict(member, slow);
        if (sleeping_ || (has_loop_ && !driving_)) ready_.arm(table_.next_event());
    }
    void decided(slot_index at) noexcept {
        in_flight& r = slots_[at];
        r.how = table_.result(at);
        r.contributors = table_.contributors(at);
        r.rows = 0;
        for (auto const& row : table_.contributions(at)) {
            link_type* const from = link_of(row.peer, row.incarnation);
            slots_.rows(at)[r.rows] = from->row(row.place);
            slots_.chosen(at)[r.rows] = slots_.weights(at)[row.member];
            ++r.rows;
        }
        if (r.hedged) {
            for (link_type* const l : links_)
                if (l != nullptr) l->detach(at);
            r.hedged = false;
        } else {
            for (peer_index const p : table_.asked(at))
                if (links_[p] != nullptr) links_[p]->detach(at);
        }
        r.decided = true;
        if (r.is_async) {
            done_.append(slots_.records(), at);
            if (has_loop_) ready_.show();
        } else if (r.waits) {
            call(r);
        } else if (sleeping_ && driver_ == at) {
            ready_.wake();
        }
    }
    static void call(in_flight& r) noexcept {
        r.word.store(in_flight::called, std::memory_order_release);
        futex_wake(r.word, false);
    }

    // The door's thread tells the program.
    HERRING_SETUP void verdict(std::size_t member, bool slow) noexcept {
        (slow ? slow_ : recovered_).insert(member);
        (slow ? recovered_ : slow_).erase(member);
        if (!options_.on_change || door_ == nullptr) return;
        untold_.store(true, std::memory_order_release);
        if constexpr (requires(Door<door_calls> & door) { door.nudge(); }) door_->nudge();
    }

    // ---- lanes

    link_type* current(peer_index peer, std::uint64_t incarnation) noexcept {
        link_type* const l = peer < links_.size() ? links_[peer] : nullptr;
        return l != nullptr && l->incarnation() == incarnation ? l : nullptr;
    }
    // The rules know admissions, not processes: a row in a lane that broke is not in the next one of the same process.
    link_type* link_of(peer_index peer, std::uint64_t serial) noexcept {
        if (link_type* const l = links_[peer]; l != nullptr && l->serial() == serial) return l;
        for (link_type* const l : retired_)
            if (l->serial() == serial) return l;
        return nullptr;
    }
    // The link stays as long as one of its rows is held.
    HERRING_SETUP void retire(peer_index peer) noexcept {
        link_type* const l = std::exchange(links_[peer], nullptr);
        ready_.forget(l->descriptor());
        if (l->is_shared())
            shared_.erase(std::find(shared_.begin(), shared_.end(), l));
        else
            --tcp_links_;
        retired_.push_back(l);
    }
    // Called by the door's thread: nothing is unmapped or closed while a request waits for it.
    HERRING_SETUP void sweep() noexcept {
        for (std::size_t i = 0; i < retired_.size();)
            if (retired_[i]->is_held()) {
                ++i;
            } else {
                delete retired_[i];
                retired_[i] = retired_.back();
                retired_.pop_back();
            }
    }
    bool poll_link(link_type& l, std::int64_t now) noexcept {
        lane_sink sink{*this, l, now};
        if (!l.poll(sink)) {
            broken_.push_back(l.peer());
            return true;
        }
        watch_writes(l);
        let_go(l);
        return sink.any;
    }
    void drop_broken() noexcept {
        while (!broken_.empty()) {
            peer_index const peer = broken_.back();
            broken_.pop_back();
            if (link_type* const l = links_[peer]) drop(*l);
        }
    }
    HERRING_SETUP void drop(link_type& l) noexcept {
        std::string why(l.error());
        std::uint64_t const incarnation = l.incarnation();
        peer_index const peer = l.peer();
        table_.lost(peer, now_ns());
        retire(peer);
        if (door_ != nullptr) door_->drop(peer, incarnation, std::move(why));
    }
    void let_go(link_type& l) noexcept {
        if (!l.draining || l.drained || table_.unanswered_by(l.peer()) != 0) return;
        l.drained = true;
        if (door_ != nullptr) door_->drained(l.peer(), l.incarnation());
    }

    // ---- driving

    // Polls everything once. `look`: asks the kernel which lanes have something. False: nothing had.
    bool turn(std::int64_t now, bool look) noexcept {
        bool any = false;
        if (look) {
            ready_.wait(found_, 0);
            any = take(found_, now);
        }
        for (std::size_t i = 0; i < shared_.size(); ++i) any |= poll_link(*shared_[i], now);
        drop_broken();
        table_.advance(now);
        changed();
        return any;
    }
    bool take(wait_set::found const& found, std::int64_t now) noexcept {
        bool any = false;
        for (int i = 0; i < found.count; ++i) {
            std::uint32_t const key = found.key(i);
            if (key == wait_set::timer_key) {
                ready_.timer_has_fired();
            } else if (key == wait_set::wake_key) {
                ready_.woken();
            } else if (key < links_.size() && links_[key] != nullptr) {
                any |= poll_link(*links_[key], now);
            }
        }
        return any;
    }
    void take_what_is_here() noexcept { (void)turn(now_ns(), tcp_links_ > 0); }
    // Tells all lanes that this end sleeps. False: one has something.
    bool announce() noexcept {
        for (link_type* const l : shared_)
            if (!l->try_sleep()) {
                for (link_type* const each : shared_) each->awake();
                return false;
            }
        return true;
    }
    // Nobody drives, and a loop of the program's sleeps on the descriptor.
    void settle() noexcept {
        if (!has_loop_) return;
        for (int rounds = 0; !announce(); ++rounds) {
            if (rounds == most_rounds) {
                ready_.show();
                break;
            }
            (void)turn(now_ns(), false);
        }
        ready_.arm(table_.next_event());
    }

    // Asynchronous requests have nobody who drives, and `begin` has looked at lanes, which take this end for awake since.
    accepted leave_to_loop(accepted const& a) noexcept {
        if (!driving_) settle();
        return a;
    }
    accepted await(accepted const& a) noexcept {
        if (a.refused != outcome::full) return a;
        in_flight& r = slots_[a.slot];
        ++inside_;
        while (!r.decided) {
            if (driving_)
                follow(r, a.slot);
            else
                drive(r, a.slot);
        }
        --inside_;
        // Also where another one drove: this thread may have been called to drive, and leaves.
        if (!driving_) hand_over();
        return a;
    }
    void drive(in_flight& r, slot_index at) noexcept {
        driving_ = true;
        driver_ = at;
        Waiting const waiting{};
        std::uint32_t rounds = 0;
        std::int64_t idle_since = now_ns();
        for (;;) {
            std::int64_t const now = now_ns();
            bool const any = turn(now, tcp_links_ > 0 || (rounds & 15) == 15);
            if (r.decided) break;
            if (any) {
                rounds = 0;
                idle_since = now;
                if (lock_.is_wanted()) lock_.let_others_in();
                continue;
            }
            wait_action const action = waiting.next(rounds++, now - idle_since, is_oversubscribed());
            if (action == wait_action::sleep) {
                sleep();
                if (r.decided) break;
                rounds = 0;
                idle_since = now_ns();
            } else {
                if (lock_.is_wanted()) {
                    lock_.let_others_in();
                    continue;
                }
                lock_.unlock();
                if (action == wait_action::yield)
                    ::sched_yield();
                else if (action == wait_action::pause)
                    cpu_pause();
                lock_.lock();
            }
        }
        driving_ = false;
    }
    // Nobody drives: one of those who wait is called to, or a loop of the program's waits.
    void hand_over() noexcept {
        if (!waiting_.empty())
            call(slots_[waiting_.first()]);
        else
            settle();
    }
    void sleep() noexcept {
        if (!announce()) return;
        ready_.arm(table_.next_event());
        sleeping_ = true;
        lock_.unlock();
        wait_set::found found;
        ready_.wait(found, longest_sleep_ms);
        lock_.lock();
        sleeping_ = false;
        for (link_type* const l : shared_) l->awake();
        std::int64_t const now = now_ns();
        (void)take(found, now);
        drop_broken();
        table_.advance(now);
        changed();
    }
    // Waits until the request is decided, or this thread is to drive.
    void follow(in_flight& r, slot_index at) noexcept {
        r.word.store(in_flight::asleep, std::memory_order_relaxed);
        r.waits = true;
        waiting_.append(slots_.records(), at);
        std::int64_t const until = r.deadline + overtime_ns;
        lock_.unlock();
        Waiting const waiting{};
        std::int64_t const begin = now_ns();
        std::uint32_t rounds = 0;
        bool called = false;
        for (;;) {
            called = r.word.load(std::memory_order_acquire) == in_flight::called;
            std::int64_t const now = now_ns();
            if (called || now >= until) break;
            wait_action const action = waiting.next(rounds++, now - begin, true);
            if (action == wait_action::sleep)
                futex_wait(r.word, in_flight::asleep, std::chrono::nanoseconds(until - now), false);
            else if (action == wait_action::yield)
                ::sched_yield();
            else if (action == wait_action::pause)
                cpu_pause();
        }
        lock_.lock();
        waiting_.remove(slots_.records(), at);
        r.waits = false;
        if (!called && !r.decided) (void)turn(now_ns(), true); // who drives is late: has no core
    }
    bool is_oversubscribed() const noexcept {
        return static_cast<std::size_t>(cores_) < shared_.size() + inside_;
    }

    // ---- the program's handler

    HERRING_SETUP void tell(change_kind what, peer_index peer, std::string_view why) noexcept {
        std::size_t const member = peer / options_.replicas;
        if (!options_.on_change) return;
        change c{.what = what,
                 .member = member,
                 .replica = static_cast<std::uint32_t>(peer % options_.replicas),
                 .why = why};
        {
            frontend_lock::guard const held(lock_);
            if (member >= names_.size()) return;
            c.name = names_[member]; // does not move: the list has its room
            c.admitted = table_.admitted_members();
        }
        handler_thread_ = ::pthread_self();
        handling_.store(true, std::memory_order_release);
        options_.on_change(c);
        handling_.store(false, std::memory_order_release);
    }

    static constexpr int longest_sleep_ms = 1000;
    static constexpr std::int64_t overtime_ns = 1'000'000;

    frontend_options options_;
    std::size_t (*least_)(std::size_t) noexcept;
    std::size_t row_bytes_;
    int cores_;
    frontend_lock lock_;
    request_table table_;
    wait_set ready_;
    requests_in_flight slots_;
    typename Lanes::requests requests_;
    fixed_array<link_type*> links_; // by peer
    fixed_array<bool> seen_;        // peers that were admitted once
    std::vector<link_type*> shared_, retired_;
    std::vector<peer_index> broken_;
    std::vector<std::string> names_;
    std::uint64_t serials_ = 0; // of admissions; the door's thread counts them
    std::size_t tcp_links_ = 0;
    request_list waiting_, done_;
    wait_set::found found_;
    slot_index driver_ = 0;
    std::size_t inside_ = 0;                  // threads that wait for an answer
    bool driving_ = false, sleeping_ = false; // one of them polls, and sleeps
    bool has_loop_ = false;                   // descriptor() was called
    bool shut_ = false;
    member_set slow_, recovered_; // to be told
    std::atomic<bool> untold_{false};
    std::atomic<bool> handling_{false};
    pthread_t handler_thread_{};
    door_calls calls_{this};
    std::unique_ptr<Door<door_calls>> door_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_CORE_HPP

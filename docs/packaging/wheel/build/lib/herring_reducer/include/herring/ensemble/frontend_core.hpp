// herring: a frontend without its element type: requests, members and the acceptor, under one lock.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_CORE_HPP
#define HERRING_ENSEMBLE_FRONTEND_CORE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/frontend_driver.hpp"
#include "herring/ensemble/frontend_engine.hpp"
#include "herring/ensemble/frontend_members.hpp"
#include "herring/ensemble/frontend_state.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/options.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/quorum.hpp"
#include "herring/machine/forks.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The state of a frontend: an engine (`frontend_engine`: rules and lanes), the threads that wait for answers
/// (`frontend_driver`), the members and the acceptor of control connections. An idle frontend has one thread,
/// the acceptor's.
///
/// `Format`:   rows (`row_format`).
/// `Waiting`:  a model of the axis `waiting`.
/// `Acceptor`: the acceptor, whose `acceptor_sink` is the `frontend_members`.
/// `Lanes`:    the kinds of lanes and how they are opened; tests have their own.
///
/// Threads:   any. One lock for rules and lanes, held for microseconds; the thread that takes an answer folds
///            its rows without it.
/// Cost:      no allocation for a request. A request: one copy of its bytes, one message a member; two system
///            calls where the caller sleeps.
template <class Format, class Waiting, class Acceptor, class Lanes> class frontend_core {
  public:
    using format = Format;

    using engine = frontend_engine<Format, Lanes, Acceptor>;
    using link_type = typename engine::link_type;
    using accepted = typename engine::accepted;

    struct settings {
        frontend_options options; ///< checked
        shape agreed;
        quorum_tuning quorum{};
        hedging_tuning hedging{};
        std::size_t result_bytes = 0;
        /// Returns the quorum policy's k for a roster of this size; for a frontend whose options have no k.
        std::size_t (*least)(std::size_t roster) noexcept = nullptr;
    };

    HERRING_SETUP explicit frontend_core(settings s)
        : options_(std::move(s.options)), engine_(options_, table_of(options_, s), s.result_bytes),
          driver_(engine_), members_(engine_, options_, s.agreed.row_bytes, s.least) {
        acceptor_options d;
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
        guard const held(engine_.lock); // the acceptor's thread reads `engine_.control` under the lock
        acceptor_ = std::make_unique<Acceptor>(d, s.agreed, options_.members, members_);
        engine_.control = acceptor_.get();
        if (options_.secret) detail::erase(*options_.secret);
    }
    frontend_core(frontend_core const&) = delete;
    frontend_core& operator=(frontend_core const&) = delete;

    // ---- end of life

    /// True if this process was forked off after the frontend was constructed. Calls that may throw then do,
    /// the others do nothing.
    bool forked_off() const noexcept { return !engine_.lock.owner().is_this(); }
    void usable(char const* operation) const {
        if (forked_off()) [[unlikely]]
            throw engine_.lock.owner().refusal(-1, operation, "frontend");
    }
    /// True if this thread is running the program's handler of changes.
    bool is_in_handler() const noexcept { return members_.is_in_handler(); }
    /// Ends all requests as closed; later ones are refused.
    HERRING_SETUP void close() noexcept {
        if (forked_off()) return;
        guard const held(engine_.lock);
        engine_.table.close(engine::now_ns());
        engine_.changed();
    }
    /// Ends the frontend; answers may still exist. Returns true if none does: then the caller destroys this
    /// object. Decided requests that were not fetched are dropped.
    HERRING_SETUP bool shut() noexcept {
        close();
        {
            std::unique_ptr<Acceptor> gone;
            {
                guard const held(engine_.lock);
                gone.swap(acceptor_);
                engine_.control = nullptr;
            }
        } // joins its thread
        engine_.lock.lock();
        while (driver_.inside() != 0) engine_.lock.let_others_in(); // waiting threads are on their way out
        for (slot_index at = 0; !engine_.done.empty();) {
            at = engine_.done.first();
            engine_.done.remove(engine_.slots.records(), at);
            forget(at);
        }
        shut_ = true;
        bool const last = engine_.table.in_flight() == 0;
        engine_.lock.unlock();
        return last;
    }

    // ---- requests

    using intent = typename engine::intent;
    /// Takes a request and sends it. Waits until it is decided, unless it is asynchronous. The slot is the
    /// caller's until `release`.
    ///
    /// Blocks: `within` at most; an asynchronous request does not.
    /// Errors: `bad_argument`.
    accepted ask(std::span<std::byte const> input, std::chrono::nanoseconds within, ask_options const& how,
                 intent const& what) {
        std::int64_t const entered = engine::now_ns();
        if (what.expect) ask_check::expected_id(what.id);
        check(input.size(), within, how);
        guard const held(engine_.lock);
        ask_check::roster(how, members_.size(), k());
        accepted const a = engine_.begin(entered, input, within, how, what);
        if (what.is_async) {
            // No thread drives, and `begin` has polled the lanes, which take this end for awake since.
            if (!engine_.driving) engine_.settle();
        } else if (a.refused == outcome::full) {
            driver_.await(a.slot);
        }
        return a;
    }

    /// Throws what `ask` would throw, for callers that must know it before the request begins.
    ///
    /// Errors: `bad_argument`.
    void check_submit(std::size_t bytes, std::chrono::nanoseconds within, ask_options const& how) {
        check(bytes, within, how);
        guard const held(engine_.lock);
        ask_check::roster(how, members_.size(), k());
    }
    void check_submit_expected(std::uint64_t id, std::chrono::nanoseconds within, ask_options const& how) {
        ask_check::expected_id(id);
        check_submit(0, within, how);
        guard const held(engine_.lock);
        if (engine_.table.is_in_flight(id)) ask_check::id_in_flight(id);
    }

    /// Ends an undecided request. False: none has this id.
    bool cancel(std::uint64_t id) noexcept {
        if (forked_off()) return false;
        guard const held(engine_.lock);
        for (slot_index at = 0; at < engine_.slots.size(); ++at)
            if (engine_.table.cancel(at, id)) {
                engine_.changed();
                return true;
            }
        return false;
    }

    // ---- an event loop of the program

    /// Returns a descriptor that is readable when `poll` has work or `next_done` has a request.
    int descriptor() noexcept {
        if (forked_off()) return -1;
        guard const held(engine_.lock);
        engine_.has_loop = true;
        if (!engine_.driving) engine_.settle();
        return engine_.ready.descriptor();
    }
    /// Does what can be done now. Does not block.
    void poll() noexcept {
        if (forked_off()) return;
        guard const held(engine_.lock);
        engine_.ready.fetched();
        if (!engine_.driving) {
            for (int rounds = 0; rounds < engine::most_rounds && engine_.turn(engine::now_ns(), true);
                 ++rounds) {
            }
            engine_.settle();
        }
        if (!engine_.done.empty()) engine_.ready.show();
    }
    /// Gives the next asynchronous request that is decided; its slot is the caller's until `release`. False:
    /// there is none.
    bool next_done(slot_index& at) noexcept {
        if (forked_off()) return false;
        guard const held(engine_.lock);
        if (engine_.done.empty()) return false;
        at = engine_.done.first();
        engine_.done.remove(engine_.slots.records(), at);
        if (engine_.done.empty() && engine_.has_loop) engine_.ready.fetched();
        return true;
    }

    // ---- a decided request

    in_flight const& request(slot_index at) const noexcept { return engine_.slots[at]; }
    std::span<std::span<std::byte const> const> rows(slot_index at) noexcept {
        return engine_.slots.rows(at).first(engine_.slots[at].rows);
    }
    std::span<float const> row_weights(slot_index at) noexcept {
        return engine_.slots[at].weighted ? engine_.slots.chosen(at).first(engine_.slots[at].rows)
                                          : std::span<float>();
    }
    std::span<std::byte> result(slot_index at) noexcept { return engine_.slots.result(at); }
    /// Drops the rows of `whose`: they have changed since they counted. Returns how the request ended without
    /// them.
    HERRING_SETUP outcome refuse(slot_index at, member_set const& whose) noexcept {
        guard const held(engine_.lock);
        in_flight& r = engine_.slots[at];
        std::size_t i = 0;
        r.rows = 0;
        r.contributors.for_each([&](std::size_t member) {
            if (whose.contains(member)) {
                engine_.table.refuse(at, member);
            } else {
                engine_.slots.rows(at)[r.rows] = engine_.slots.rows(at)[i];
                engine_.slots.chosen(at)[r.rows++] = engine_.slots.chosen(at)[i];
            }
            ++i;
        });
        r.contributors = r.contributors - whose;
        if (!whose.empty()) r.how = r.rows >= engine_.table.k(at) ? outcome::partial : outcome::failed;
        return r.how;
    }
    miss why(slot_index at, std::size_t member) noexcept {
        guard const held(engine_.lock);
        return engine_.table.why(at, member);
    }
    std::int64_t latency_ns(slot_index at, std::size_t member) noexcept {
        guard const held(engine_.lock);
        return engine_.table.latency_ns(at, member);
    }
    std::int64_t decided_ns(slot_index at) noexcept {
        guard const held(engine_.lock);
        return engine_.table.decided_ns(at);
    }
    /// Returns the replica whose row counted; 0 if none did.
    std::uint32_t replica(slot_index at, std::size_t member) noexcept {
        guard const held(engine_.lock);
        for (auto const& row : engine_.table.contributions(at))
            if (row.member == member) return static_cast<std::uint32_t>(row.peer % options_.replicas);
        return 0;
    }
    member_set late(slot_index at) noexcept {
        member_set all;
        guard const held(engine_.lock);
        for (std::size_t m = 0; m < members_.size(); ++m)
            if (miss const why = engine_.table.why(at, m);
                why == miss::late || why == miss::probation || why == miss::expired)
                all.insert(m);
        return all;
    }

    /// Releases the slot of an answer. Returns true if the frontend has ended and this was its last answer:
    /// then the caller destroys this object.
    bool release(slot_index at) noexcept {
        if (forked_off()) return false;
        guard const held(engine_.lock);
        forget(at);
        if (engine_.table.any_waiting()) { // a member whose places are free again may be asked from now on
            engine_.table.advance(engine::now_ns());
            engine_.changed();
        }
        return shut_ && engine_.table.in_flight() == 0;
    }

    // ---- members

    std::string address() const { return acceptor_->address(); }
    bool ready() noexcept {
        if (forked_off()) return false;
        guard const held(engine_.lock);
        return engine_.table.admitted_members() >= k();
    }
    std::size_t roster() noexcept {
        guard const held(engine_.lock);
        return members_.size();
    }
    /// Calls `give(member, replica, name, state)` for each replica of each member.
    template <class Give> void each_replica(Give&& give) {
        usable("members");
        guard const held(engine_.lock);
        members_.each_replica(give);
    }
    HERRING_SETUP void add_member(std::string name) {
        usable("add_member");
        members_.add(name);
        acceptor_->add_member(std::move(name));
    }
    /// Calls `give(rules, names, k)` under the lock. The names do not move while the frontend lives.
    template <class Give> void look(Give&& give) {
        usable("counters");
        guard const held(engine_.lock);
        give(std::as_const(engine_.table), members_.names(), k());
    }
    /// Counts processes that were refused, by reason, including those that `on_change` did not report.
    acceptor_counters refusals() noexcept {
        if (forked_off()) return {};
        // Under the lock: in `shut` the acceptor ends while its thread may be running the program's handler.
        guard const held(engine_.lock);
        return engine_.control != nullptr ? engine_.control->counters() : acceptor_counters();
    }
    /// The members as the acceptor's thread sees them.
    auto& members() noexcept { return members_; }
    std::string_view name() const noexcept { return options_.name; }
    std::size_t slots() const noexcept { return engine_.slots.size(); }
    std::size_t elements() const noexcept { return options_.elements; }
    std::size_t most_members() const noexcept { return options_.most_members; }

  private:
    using guard = frontend_lock::guard;

    HERRING_SETUP static table_options table_of(frontend_options const& o, settings const& s) {
        return {.members = o.members.size(),
                .replicas = o.replicas,
                .in_flight = o.in_flight,
                .credits = o.credits,
                .k = o.k > 0 ? o.k : s.least(o.members.size()),
                .early_ns = std::chrono::nanoseconds(o.early_rows).count(),
                .quorum = s.quorum,
                .hedging = s.hedging};
    }
    std::size_t k() const noexcept { return members_.k(); } // with the lock

    void check(std::size_t bytes, std::chrono::nanoseconds within, ask_options const& how) const {
        usable("ask");
        ask_check::request<Format>(bytes, options_.request_bytes, within, how);
    }

    // With the lock held.
    void forget(slot_index at) noexcept {
        for (auto const& row : engine_.table.contributions(at))
            if (link_type* const from = engine_.links.of_admission(row.peer, row.incarnation))
                from->give_back(row.place);
        engine_.table.release(at, [](peer_index, place_index) noexcept {});
        engine_.slots[at].decided = false;
    }

    frontend_options options_;
    engine engine_;
    frontend_driver<Waiting, engine> driver_;
    frontend_members<Lanes, engine> members_;
    bool shut_ = false;
    std::unique_ptr<Acceptor> acceptor_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_CORE_HPP

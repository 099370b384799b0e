// herring: the frontend of an ensemble, the part that a server's program embeds.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_HPP
#define HERRING_ENSEMBLE_FRONTEND_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/ensemble/answer.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/options.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/machine/files.hpp"
#include "herring/machine/forks.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {

/// The state of one replica of a member, as a frontend sees it.
struct member_status {
    std::size_t member = 0; ///< index in the roster
    std::uint32_t replica = 0;
    std::string name{};
    bool admitted = false; ///< connected
    bool draining = false; ///< leaving: it is asked no more
    bool slow = false;     ///< its member is on probation
    bool shared = false;   ///< reached through shared memory
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail::ensembles {

/// Asks the members of an ensemble, and combines the rows that come in time.
///
/// Members may come, go and return at any time; a frontend lives on. Requests are independent of each other
/// and are answered in any order.
///
/// Threads:  any, at once. A thread that waits in `ask` also moves the bytes of other requests. One more
///           thread, which sleeps, serves members that come and go.
/// Cost:     no allocation for a request. When idle, a wake-up each heartbeat.
/// Lifetime: answers may outlive the frontend, and keep all its memory until the last of them is destroyed.
///           It may be destroyed while threads are in `ask`: they get `closed`. In a forked child it stays
///           the parent's: calls throw `bad_state`, or do nothing where they are noexcept, as the destructor
///           does; answers keep their values.
/// Errors:   `bad_argument` for an option or a request that is not valid, with its name and value. The fate
///           of a member is no error; answers report it.
template <class Element, class Core> class basic_frontend {
  public:
    using answer = basic_answer<Element, Core>;

    HERRING_SETUP explicit basic_frontend(typename Core::settings s) : core_(new Core(std::move(s))) {}
    basic_frontend(basic_frontend const&) = delete;
    basic_frontend& operator=(basic_frontend const&) = delete;
    /// Ends all requests as closed, and tells all members.
    ///
    /// Errors: `bad_state` in `on_change`, whose thread it would have to wait for; the frontend then lives
    ///         on, unreachable.
    HERRING_SETUP ~basic_frontend() noexcept(false) {
        if (forked_off()) return; // it is the parent's
        if (core_->is_in_handler())
            throw error(
                errc::bad_state, -1, -1, "frontend",
                "it is destroyed in its own on_change, which it would have to wait for; have another thread "
                "destroy it");
        if (core_->shut()) delete core_; // else the last answer does
    }

    /// Asks all admitted members, or those of `how.among`. Waits until the quorum is reached or `within` is
    /// over.
    ///
    /// Shape:   input: at most `request_bytes`; the answer: `elements`.
    /// Units:   `within`: nanoseconds, from the entry of this call. With 0 or less the deadline has passed:
    ///          no member is asked, and the request has failed. More than a day, in either direction, is
    ///          refused.
    /// Cost:    a copy of the input and a message a member.
    /// Blocks:  at most `within`.
    /// Errors:  `bad_argument`; everything else is the answer's outcome.
    /// Example: `auto a = front.ask(input, 2ms); if (a) use(a.values(), a.contributors());`
    answer ask(std::span<std::byte const> input, std::chrono::nanoseconds within,
               ask_options const& how = {}) {
        return answer_of(core_->ask(input, within, how, {}));
    }
    /// Waits as `ask` does, but sends nothing: members have the input from elsewhere, and contribute rows
    /// under this id.
    ///
    /// Errors: `bad_argument`, also for an id that is in flight, 0, or above 2^63 − 1.
    answer expect(std::uint64_t id, std::chrono::nanoseconds within, ask_options const& how = {}) {
        return answer_of(core_->ask({}, within, how, {.expect = true, .id = id}));
    }

    /// A submitted request, for event loops; `next_done` gives it when it is decided.
    struct ticket {
        herring::outcome refused = herring::outcome::full; ///< full: accepted; busy, closed: not accepted
        std::uint64_t id = 0;
        bool accepted() const noexcept { return refused == herring::outcome::full; }
    };
    /// Does as `ask`, and returns at once. `next_done` gives `cookie` with the answer.
    ticket submit(std::span<std::byte const> input, std::chrono::nanoseconds within, std::uint64_t cookie,
                  ask_options const& how = {}) {
        return ticket_of(core_->ask(input, within, how, {.is_async = true, .cookie = cookie}));
    }
    ticket submit_expected(std::uint64_t id, std::chrono::nanoseconds within, std::uint64_t cookie,
                           ask_options const& how = {}) {
        return ticket_of(
            core_->ask({}, within, how, {.is_async = true, .cookie = cookie, .expect = true, .id = id}));
    }
    /// Returns a descriptor for an epoll set, readable when `poll` has work or `next_done` a request. The
    /// frontend owns it.
    int descriptor() noexcept { return core_->descriptor(); }
    /// Moves the bytes that can be moved now; does not block.
    void poll() noexcept { core_->poll(); }
    /// Gives the next submitted request that is decided. False: there is none.
    bool next_done(answer& into, std::uint64_t& cookie) {
        if (forked_off()) throw owner_.refusal(-1, "next_done", "frontend");
        slot_index at = 0;
        if (!core_->next_done(at)) return false;
        cookie = core_->request(at).cookie;
        into = answer(*core_, at);
        return true;
    }
    /// Ends a request in flight as cancelled. False: none has this id.
    bool cancel(std::uint64_t id) noexcept { return core_->cancel(id); }
    /// Ends all requests as closed; later ones are refused as closed.
    void close() noexcept { core_->close(); }

    /// True if this process was forked off after the frontend was constructed, and so cannot use it.
    bool forked_off() const noexcept { return !owner_.is_this(); }
    /// True if at least k members are admitted; for health probes.
    bool ready() const noexcept { return core_->ready(); }
    /// Returns the number of admitted members.
    std::size_t admitted() const {
        std::size_t here = 0, last = static_cast<std::size_t>(-1);
        core_->each_replica([&](std::size_t member, std::uint32_t, std::string_view, auto const& is) {
            if (is.admitted && member != last) ++here, last = member;
        });
        return here;
    }
    /// Returns the "host:port" that the frontend listens on.
    std::string address() const { return core_->address(); }
    /// Returns the port of `address`.
    int port() const {
        std::string const all = core_->address();
        int port = 0;
        for (std::size_t i = all.rfind(':') + 1; i < all.size(); ++i) port = port * 10 + (all[i] - '0');
        return port;
    }
    /// Adds a member at the end of the roster. Requests in flight do not ask it.
    ///
    /// Errors: `bad_argument` for a name that is in the roster, or beyond `most_members`.
    void add_member(std::string name) { core_->add_member(std::move(name)); }
    /// Returns the number of members in the roster.
    std::size_t size() const noexcept { return core_->roster(); }
    /// Returns every replica of every member, in the order of the roster.
    HERRING_SETUP std::vector<member_status> members() const {
        std::vector<member_status> all;
        core_->each_replica(
            [&](std::size_t member, std::uint32_t replica, std::string_view name, auto const& is) {
                all.push_back({.member = member,
                               .replica = replica,
                               .name = std::string(name),
                               .admitted = is.admitted,
                               .draining = is.draining,
                               .slow = is.slow,
                               .shared = is.shared});
            });
        return all;
    }

    frontend_counters counters() const {
        frontend_counters all;
        core_->look([&](auto const& rules, auto const&, std::size_t) { all = rules.totals(); });
        add_refusals(all);
        return all;
    }
    /// Returns the counters of one member; all zero for a member that is not in the roster.
    member_counters counters(std::size_t member) const {
        member_counters of;
        core_->look([&](auto const& rules, auto const& names, std::size_t) {
            if (member < names.size()) of = rules.counters(member);
        });
        return of;
    }

    /// Returns all counters in Prometheus' text format, one series a member.
    HERRING_SETUP std::string prometheus() const {
        std::vector<member_metrics> members;
        frontend_metrics all;
        all.ensemble = core_->name();
        all.slots = core_->slots();
        core_->look([&](auto const& rules, auto const& names, std::size_t k) {
            all.k = k;
            all.counts = rules.totals();
            all.in_flight = rules.in_flight();
            for (std::size_t m = 0; m < names.size(); ++m) {
                member_metrics of;
                of.name = names[m];
                of.counts = rules.counters(m);
                of.on_probation = rules.on_probation(m);
                for (std::size_t r = 0; r < rules.replicas(); ++r)
                    of.admitted |= rules.is_admitted(static_cast<peer_index>(m * rules.replicas() + r));
                of.latency = rules.latencies(m).percentiles();
                of.latencies = rules.latencies(m).added();
                of.latencies_sum_ns = rules.latencies(m).sum_ns();
                of.lateness = rules.lateness(m).percentiles();
                of.latenesses = rules.lateness(m).added();
                of.latenesses_sum_ns = rules.lateness(m).sum_ns();
                members.push_back(of);
            }
        });
        all.members = members;
        add_refusals(all.counts);
        return prometheus_text(all).text();
    }
    /// Replaces a file by `prometheus()` atomically, for a collector of text files.
    ///
    /// Errors: `unreachable` if the file cannot be written.
    void write_prometheus(std::string const& path) const {
        write_whole_file(path, prometheus(), "write_prometheus");
    }

    /// Returns the implementation. Not part of the public interface.
    Core& core() noexcept { return *core_; }

  private:
    void add_refusals(frontend_counters& all) const {
        auto const counted = core_->refusals();
        std::copy(std::begin(counted.refused), std::end(counted.refused), std::begin(all.refused));
    }
    static ticket ticket_of(typename Core::accepted const& a) noexcept { return {a.refused, a.id}; }
    answer answer_of(typename Core::accepted const& a) {
        return a.refused == herring::outcome::full ? answer(*core_, a.slot) : answer(a.refused);
    }

    owner_process const owner_{};
    Core* core_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_HPP

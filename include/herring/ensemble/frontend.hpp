// herring: the frontend of an ensemble, as a server's program has it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_HPP
#define HERRING_ENSEMBLE_FRONTEND_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/ensemble/answer.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/options.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/prometheus.hpp"
#include "herring/machine/forks.hpp"
#include "herring/machine/whole_file.hpp"

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

/// A replica of a member, as a frontend sees it.
struct member_status {
    std::size_t member = 0; ///< its place in the roster
    std::uint32_t replica = 0;
    std::string name{};
    bool admitted = false; ///< it is here
    bool draining = false; ///< it is leaving: it is asked no more
    bool slow = false;     ///< its member is on probation
    bool shared = false;   ///< it is reached through shared memory
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail::ensembles {

/// Asks the members of an ensemble, and combines the rows of those who answer in time.
///
/// Members come, go and come back; none of it ends anything here. Requests are independent of each other and are answered in
/// any order.
///
/// Threads:  any, at once. Who waits in `ask` also moves the bytes of the others; there is one thread more, for members that
///           come and go, which sleeps.
/// Cost:     nothing is allocated for a request. Idle, a wake-up each heartbeat.
/// Lifetime: answers may outlive it, and keep its memory, all of it, until the last of them goes. It may be destroyed while others are in
///           `ask`: they get `closed`. It stays with its process: in one that is forked off later calls throw `bad_state`, or do nothing
///           where they are noexcept, and so does the destructor; answers keep their values.
/// Errors:   `bad_argument` for options and requests that make no sense, with the option and its value. What becomes of
///           members is no error, but in the answer.
template <class Element, class Core> class basic_frontend {
  public:
    using answer = basic_answer<Element, Core>;

    HERRING_SETUP explicit basic_frontend(typename Core::settings s) : core_(new Core(std::move(s))) {}
    basic_frontend(basic_frontend const&) = delete;
    basic_frontend& operator=(basic_frontend const&) = delete;
    /// Ends all requests as closed, and lets all members know.
    ///
    /// Errors: `bad_state` in `on_change`, whose thread it would wait for: then the frontend lives on, out of reach.
    HERRING_SETUP ~basic_frontend() noexcept(false) {
        if (forked_off()) return; // it is the parent's
        if (core_->is_in_handler())
            throw error(
                errc::bad_state, -1, -1, "frontend",
                "it is destroyed in its own on_change, which it would have to wait for; have another thread "
                "destroy it");
        if (core_->shut()) delete core_; // or the last answer does
    }

    /// Asks all admitted members, or those of `how.among`, and waits until the quorum is there, or `within` is over.
    ///
    /// Shape:   input: `request_bytes` at most; the answer: `elements`.
    /// Units:   `within`: nanoseconds if need be; it counts from the entry of this call. 0 or less: the deadline has passed, so that
    ///          nobody is asked and the request has failed; more than a day either way is no deadline.
    /// Cost:    a copy of the input and a message a member.
    /// Blocks:  at most `within`.
    /// Errors:  `bad_argument`; all else is the answer's outcome.
    /// Example: `auto a = front.ask(input, 2ms); if (a) use(a.values(), a.contributors());`
    answer ask(std::span<std::byte const> input, std::chrono::nanoseconds within,
               ask_options const& how = {}) {
        return answer_of(core_->ask(input, within, how, {}));
    }
    /// Members have their input elsewhere, and contribute under this id: nothing is sent.
    ///
    /// Errors: `bad_argument`, also for an id that is in flight, 0, or above 2^63 − 1.
    answer expect(std::uint64_t id, std::chrono::nanoseconds within, ask_options const& how = {}) {
        return answer_of(core_->ask({}, within, how, {.expect = true, .id = id}));
    }

    /// For event loops: a request that `next_done` gives when it is decided.
    struct ticket {
        herring::outcome refused =
            herring::outcome::full; ///< full: it was accepted; busy, closed: it was not
        std::uint64_t id = 0;
        bool accepted() const noexcept { return refused == herring::outcome::full; }
    };
    /// As `ask`, and returns at once. `cookie` comes back with the answer.
    ticket submit(std::span<std::byte const> input, std::chrono::nanoseconds within, std::uint64_t cookie,
                  ask_options const& how = {}) {
        return ticket_of(core_->ask(input, within, how, {.is_async = true, .cookie = cookie}));
    }
    ticket submit_expected(std::uint64_t id, std::chrono::nanoseconds within, std::uint64_t cookie,
                           ask_options const& how = {}) {
        return ticket_of(
            core_->ask({}, within, how, {.is_async = true, .cookie = cookie, .expect = true, .id = id}));
    }
    /// Readable (of an epoll set) when `poll` has something to do or `next_done` something to give. Stays the frontend's.
    int descriptor() noexcept { return core_->descriptor(); }
    /// Moves what can be moved now; does not block.
    void poll() noexcept { core_->poll(); }
    /// The next submitted request that is decided. False: none.
    bool next_done(answer& into, std::uint64_t& cookie) {
        if (forked_off()) throw owner_.refusal(-1, "next_done", "frontend");
        slot_index at = 0;
        if (!core_->next_done(at)) return false;
        cookie = core_->request(at).cookie;
        into = answer(*core_, at);
        return true;
    }
    /// Ends a request in flight as cancelled. False: there is none with this id.
    bool cancel(std::uint64_t id) noexcept { return core_->cancel(id); }
    /// Ends all requests as closed; those to come are refused as closed.
    void close() noexcept { core_->close(); }

    /// Whether this process was forked off after the frontend was made, and so cannot use it.
    bool forked_off() const noexcept { return !owner_.is_this(); }
    /// Whether as many members are here as make an answer: for health probes.
    bool ready() const noexcept { return core_->ready(); }
    /// How many members are here.
    std::size_t admitted() const {
        std::size_t here = 0, last = static_cast<std::size_t>(-1);
        core_->each_replica([&](std::size_t member, std::uint32_t, std::string_view, auto const& is) {
            if (is.admitted && member != last) ++here, last = member;
        });
        return here;
    }
    /// "host:port" that it listens on.
    std::string address() const { return core_->address(); }
    /// Of `address`.
    int port() const {
        std::string const all = core_->address();
        int port = 0;
        for (std::size_t i = all.rfind(':') + 1; i < all.size(); ++i) port = port * 10 + (all[i] - '0');
        return port;
    }
    /// The roster grows at its end. Requests in flight do not ask the new member.
    ///
    /// Errors: `bad_argument` for a name that is there, or beyond `most_members`.
    void add_member(std::string name) { core_->add_member(std::move(name)); }
    /// Number of members in the roster.
    std::size_t size() const noexcept { return core_->roster(); }
    /// Every replica of every member, in the order of the roster.
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
    /// Of one member; all zero for one that is not in the roster.
    member_counters counters(std::size_t member) const {
        member_counters of;
        core_->look([&](auto const& rules, auto const& names, std::size_t) {
            if (member < names.size()) of = rules.counters(member);
        });
        return of;
    }

    /// All counters in Prometheus' text format, one series a member.
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
    /// Replaces a file by `prometheus()` at once, as a collector of text files wants it.
    ///
    /// Errors: `unreachable`: it cannot be written.
    void write_prometheus(std::string const& path) const {
        write_whole_file(path, prometheus(), "write_prometheus");
    }

    /// Not part of what is promised.
    Core& core() noexcept { return *core_; }

  private:
    void add_refusals(frontend_counters& all) const {
        auto const door = core_->at_the_door();
        std::copy(std::begin(door.refused), std::end(door.refused), std::begin(all.refused));
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

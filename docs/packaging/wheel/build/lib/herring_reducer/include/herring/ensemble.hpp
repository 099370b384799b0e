// herring: `ensemble`: a frontend asks n members, and combines the rows of the members that answer in time.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_HPP
#define HERRING_ENSEMBLE_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/ensemble/acceptor.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/dialler.hpp"
#include "herring/ensemble/frontend.hpp"
#include "herring/ensemble/frontend_core.hpp"
#include "herring/ensemble/frontend_state.hpp"
#include "herring/ensemble/member.hpp"
#include "herring/ensemble/member_core.hpp"
#include "herring/ensemble/member_lane.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/options.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/outputs.hpp"
#include "herring/ensemble/pack.hpp"
#include "herring/ensemble/quorum.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/model/element.hpp"
#include "herring/waiting/waiting.hpp"
#include "herring/wire/codecs.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {

template <> struct default_policy<axes::wire> { using type = wire::as_is; };
template <> struct default_policy<axes::outputs> { using type = outputs::of<>; };
template <> struct default_policy<axes::quorum> { using type = quorum::by_deadline<>; };

namespace detail::ensembles {

/// Returns the policies of a pack that change what a row is, as text: frontend and members compare it.
template <class Pack> HERRING_SETUP std::string names_of() {
    std::string all;
    append(all, {"combine=", policy_name<typename Pack::combine>(), " wire=",
                 policy_name<typename Pack::wire>(), " outputs=", policy_name<typename Pack::outputs>()});
    return all;
}

/// The pack, or its stand-in if combine rule, codec and outputs do not fit each other.
template <class Pack> struct fitting { using type = rejected<typename Pack::element>; };
template <class Element> struct fitting<rejected<Element>> { using type = rejected<Element>; };
template <class Pack>
requires holds<
    rows_fit<typename Pack::element, typename Pack::combine, typename Pack::wire, typename Pack::outputs>>
struct fitting<Pack> {
    using type = Pack;
};

/// The stand-in for the ensemble of a refused pack. Its sentence has been printed, and no other error shall
/// follow: so it takes every call that an ensemble takes, and returns types that are used alike.
template <class Element> struct inert_ensemble {
    using element = Element;

    /// Converts to the type of any output.
    struct anything {
        template <class Output> operator Output() const noexcept { return Output{}; }
    };
    class answer {
      public:
        herring::outcome outcome() const noexcept { return herring::outcome::failed; }
        bool has_values() const noexcept { return false; }
        explicit operator bool() const noexcept { return false; }
        std::uint64_t id() const noexcept { return 0; }
        std::span<Element const> values() const noexcept { return {}; }
        std::span<Element const> entries() const noexcept { return {}; }
        template <class Output> anything get() const noexcept { return {}; }
        member_set contributors() const noexcept { return {}; }
        member_set late() const noexcept { return {}; }
        miss why(std::size_t) const noexcept { return miss::absent; }
        std::chrono::nanoseconds latency(std::size_t = 0) const noexcept { return {}; }
        std::uint32_t replica(std::size_t) const noexcept { return 0; }
        template <class Give> void member_rows(Give&&) const {}
    };
    class job {
      public:
        std::span<std::byte const> input() const { return {}; }
        std::span<Element> row() const { return {}; }
        void send() {}
        void decline(herring::decline = herring::decline::unspecified) {}
        std::chrono::nanoseconds remaining() const { return {}; }
        bool expired() const { return true; }
        std::size_t frontend() const { return 0; }
        std::uint64_t id() const { return 0; }
        explicit operator bool() const noexcept { return false; }
    };
    class frontend {
      public:
        explicit frontend(frontend_options const&) noexcept {}
        frontend(frontend const&) = delete;
        frontend& operator=(frontend const&) = delete;
        ~frontend() {} // keeps an unused object from a warning, as a frontend's destructor does

        using answer = inert_ensemble::answer;
        struct ticket {
            herring::outcome refused = herring::outcome::closed;
            std::uint64_t id = 0;
            bool accepted() const noexcept { return false; }
        };
        answer ask(std::span<std::byte const>, std::chrono::nanoseconds, ask_options const& = {}) {
            return {};
        }
        answer expect(std::uint64_t, std::chrono::nanoseconds, ask_options const& = {}) { return {}; }
        ticket submit(std::span<std::byte const>, std::chrono::nanoseconds, std::uint64_t,
                      ask_options const& = {}) {
            return {};
        }
        ticket submit_expected(std::uint64_t, std::chrono::nanoseconds, std::uint64_t,
                               ask_options const& = {}) {
            return {};
        }
        int descriptor() noexcept { return -1; }
        void poll() noexcept {}
        bool next_done(answer&, std::uint64_t&) { return false; }
        bool cancel(std::uint64_t) noexcept { return false; }
        void close() noexcept {}
        bool ready() const noexcept { return false; }
        bool forked_off() const noexcept { return false; }
        std::string address() const { return {}; }
        int port() const { return 0; }
        void add_member(std::string const&) {}
        std::size_t size() const noexcept { return 0; }
        std::vector<member_status> members() const { return {}; }
        frontend_counters counters() const { return {}; }
        member_counters counters(std::size_t) const { return {}; }
        std::string prometheus() const { return {}; }
        void write_prometheus(std::string const&) const {}
    };
    class member {
      public:
        explicit member(member_options const&) noexcept {}
        member(member const&) = delete;
        member& operator=(member const&) = delete;
        ~member() {}

        using job = inert_ensemble::job;
        template <class... Timeout> job next(Timeout const&...) { return {}; }
        job try_next() noexcept { return {}; }
        int descriptor() const noexcept { return -1; }
        bool arm() noexcept { return true; }
        template <class Row> std::size_t contribute(std::uint64_t, Row&&) { return 0; }
        void stop() noexcept {}
        bool leave(std::chrono::milliseconds = {}) { return true; }
        std::vector<frontend_status> status() const { return {}; }
    };
};

} // namespace detail::ensembles

/// An ensemble: `frontend`, which a server embeds, and `member`, for the process of each model.
///
///     frontend ── request, remaining time ──▶ member 0..n−1        by TCP, or shared memory on one host
///     frontend ◀── encoded row ────────────── members in time
///     answer: one combined row, the members in it, and why the others are not
///
/// Example:
/// ```cpp
/// using voters = herring::ensemble<float, combine::mean<space::probability>, quorum::at_least<3>>;
/// voters::frontend front({.listen = "127.0.0.1:7001", .members = {"a", "b", "c", "d"}, .elements = 1000,
///                         .request_bytes = 4096});
/// voters::answer a = front.ask(input, 2ms);
///
/// voters::member me({.frontends = {"host:7001"}, .name = "a", .elements = 1000, .request_bytes = 4096});
/// while (auto job = me.next()) { net.run(job.input(), job.row()); job.send(); }
/// ```
template <class Pack> struct basic_ensemble {
    using element = typename Pack::element;
    using pack = Pack;
    using format = detail::ensembles::row_format<element, typename Pack::combine, typename Pack::wire,
                                                 typename Pack::outputs>;

  private:
    using frontend_core =
        detail::ensembles::frontend_core<format, typename Pack::waiting, detail::ensembles::acceptor,
                                         detail::ensembles::frontend_lanes>;
    using member_core =
        detail::ensembles::member_core<element, format, typename Pack::waiting,
                                       detail::ensembles::member_lane, detail::ensembles::dialler>;
    using quorum = typename Pack::quorum;

    HERRING_SETUP static detail::ensembles::shape
    shape_of(std::string name, std::size_t elements, std::size_t request_bytes, std::string model_version) {
        return {.ensemble = std::move(name),
                .policies = detail::ensembles::names_of<Pack>(),
                .type = std::string(herring::element<element>::name),
                .elements = elements,
                .row_bytes = format::row_bytes(elements),
                .request_bytes = request_bytes,
                .model_version = std::move(model_version)};
    }
    HERRING_SETUP static typename frontend_core::settings settings_of(frontend_options o) {
        detail::ensembles::check_options(o, quorum::least(o.members.size()));
        detail::ensembles::shape agreed = shape_of(o.name, o.elements, o.request_bytes, o.model_version);
        std::size_t const result_bytes = format::result_bytes(o.elements, o.most_members);
        hedging_tuning const hedging = o.hedging;
        return {.options = std::move(o),
                .agreed = std::move(agreed),
                .quorum = quorum::tuning,
                .hedging = hedging,
                .result_bytes = result_bytes,
                .least = [](std::size_t roster) noexcept { return quorum::least(roster); }};
    }

  public:
    /// The combined row of one request, and the members in it (`ensemble/answer.hpp`).
    using answer = detail::ensembles::basic_answer<element, frontend_core>;
    /// A request at a member (`ensemble/member.hpp`).
    using job = typename member_core::job;

    /// Asks members and combines their rows; its functions are those of `ensemble/frontend.hpp`.
    class frontend : public detail::ensembles::basic_frontend<element, frontend_core> {
      public:
        /// Listens, and returns at once: members connect later (`ready()`).
        ///
        /// Errors: `bad_argument` naming the option; `unreachable` for an address on which it cannot listen;
        ///         `no_resources`.
        HERRING_SETUP explicit frontend(frontend_options options)
            : detail::ensembles::basic_frontend<element, frontend_core>(settings_of(std::move(options))) {}
    };

    /// Answers requests; its functions are those of `ensemble/member.hpp`.
    class member : public detail::ensembles::basic_member<element, member_core> {
      public:
        /// Connects to all frontends, again and again, and returns at once.
        ///
        /// Errors: `bad_argument` naming the option; `no_resources`.
        HERRING_SETUP explicit member(member_options options)
            : member(detail::ensembles::checked(std::move(options)), checked_tag()) {}

      private:
        struct checked_tag {};
        HERRING_SETUP member(member_options&& o, checked_tag)
            : detail::ensembles::basic_member<element, member_core>(
                  o, shape_of(o.ensemble, o.elements, o.request_bytes, o.model_version)) {
            if (o.secret) detail::erase(*o.secret);
        }
    };
};

/// The stand-in for the ensemble of a refused pack, whose sentence has been printed.
template <class Element>
struct basic_ensemble<rejected<Element>> : detail::ensembles::inert_ensemble<Element> {};

/// An ensemble whose rows have elements of one type, composed of policies in any order.
///
/// Defaults: wire::as_is, outputs::of<>, quorum::by_deadline<>, waiting::adaptive; `combine` has none.
template <class Element, class... Policies>
using ensemble = basic_ensemble<
    typename detail::ensembles::fitting<detail::ensembles::resolve_t<Element, Policies...>>::type>;

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_HPP

// herring: `ensemble`: a frontend asks n members, and combines the rows of the members that answer in time.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_HPP
#define HERRING_ENSEMBLE_HPP

#include "herring/base/config.hpp"
#include "herring/combine/combine.hpp"
#include "herring/combine/mean.hpp"
#include "herring/combine/median.hpp"
#include "herring/combine/space.hpp"
#include "herring/combine/trimmed_mean.hpp"
#include "herring/combine/vote.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/ensemble/acceptor.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/dialler.hpp"
#include "herring/ensemble/frontend.hpp"
#include "herring/ensemble/frontend_core.hpp"
#include "herring/ensemble/frontend_lanes.hpp"
#include "herring/ensemble/inert.hpp"
#include "herring/ensemble/member.hpp"
#include "herring/ensemble/member_core.hpp"
#include "herring/ensemble/member_lane.hpp"
#include "herring/ensemble/options.hpp"
#include "herring/ensemble/pack.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/model/element.hpp"
#include "herring/outputs/of.hpp"
#include "herring/quorum/at_least.hpp"
#include "herring/quorum/by_deadline.hpp"
#include "herring/waiting/waiting.hpp"
#include "herring/wire/as_is.hpp"
#include "herring/wire/bf16.hpp"
#include "herring/wire/decision.hpp"
#include "herring/wire/fp16.hpp"
#include "herring/wire/top_k.hpp"

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

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

// herring: the options of an ensemble's frontend, of its members and of a request, and their checks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_OPTIONS_HPP
#define HERRING_ENSEMBLE_OPTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/ensemble/change.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/quorum.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE {

/// Options of a frontend. `listen`, `members` and `elements` have no default.
struct frontend_options {
    std::string listen{};               ///< "host:port" or "[ipv6]:port"; port 0: any, see `port()`
    std::vector<std::string> members{}; ///< the roster: its order fixes the order of folding, and so the bits
    std::size_t elements = 0;           ///< of a row
    /// Bytes of the largest request; 0: members have their input from elsewhere (`expect`).
    std::size_t request_bytes = 0;
    std::size_t in_flight = 64; ///< requests and answers that exist at once; further ones are refused as busy
    std::optional<std::string> secret{}; ///< replaces HERRING_SECRET; as in `join_options`
    std::string secret_file{};           ///< replaces HERRING_SECRET_FILE: a file of one or two secrets
    std::string name{"ensemble"};        ///< of the ensemble; the same at members
    std::string model_version{};         ///< the same at members; empty: any
    std::size_t k = 0;                   ///< replaces the quorum policy's k
    std::size_t replicas = 1;            ///< of each member: one is asked, the others are for hedges
    std::size_t credits = 0;             ///< unanswered requests that a member may have; 0: in_flight
    std::size_t most_members = 0;        ///< limit of the roster; 0: 64, or the roster if it is longer
    hedging_tuning hedging{};            ///< for members with replicas
    lane lanes = lane::any;
    bool require_secret = false;                  ///< refuses to go without a secret (`bad_argument`)
    std::chrono::milliseconds heartbeat{500};     ///< between two heartbeats; at most half of peer_timeout
    std::chrono::milliseconds peer_timeout{5000}; ///< a member silent for so long is lost; at least 50 ms
    /// Time for which a row is kept that comes before its `expect`, the newest four of each replica; 0: it is
    /// dropped.
    std::chrono::milliseconds early_rows{1000};
    /// Called when a member joins, returns, is slow, recovers, leaves or is lost, and when a process is
    /// refused. One call at a time, in the frontend's own thread (also that of an `asio_frontend`), without
    /// locks. It may ask, and post to an event loop; it must not destroy the frontend (`bad_state`). Refusals
    /// are reported eight at once for each reason, then one a second; all are counted.
    detail::ensembles::change_handler on_change{};
};

/// Options of a member. `frontends`, `name` and `elements` have no default. Options with a frontend's name
/// mean the same.
struct member_options {
    std::vector<std::string> frontends{}; ///< "host:port" of each
    std::string name{};                   ///< as in the frontends' roster
    std::uint32_t replica = 0;            ///< of that member; name and replica are the identity
    std::size_t elements = 0;
    std::size_t request_bytes = 0;
    std::optional<std::string> secret{}; ///< replaces HERRING_SECRET
    std::string secret_file{};           ///< replaces HERRING_SECRET_FILE
    std::string ensemble{"ensemble"};    ///< name of the ensemble
    std::string model_version{};
    std::size_t concurrency = 1; ///< jobs that the program has at once
    lane lanes = lane::any;
    bool require_secret = false;
    std::size_t credits =
        64; ///< requests of one frontend that wait here at once; the smaller of both ends counts
};

/// Options of one request.
struct ask_options {
    std::size_t k = 0;                 ///< replaces the frontend's
    std::optional<member_set> among{}; ///< the only members to ask; `full` then means all of these
    /// One weight a member of the roster, for a weighted combine rule, which defines their meaning
    /// (`weighting`). They are copied. Empty: all equal.
    std::span<float const> weights{};
};

namespace detail::ensembles {

/// The longest time of an option or a request: more is taken for a slip of units.
inline constexpr std::chrono::nanoseconds most_time = std::chrono::hours(24);

/// Checks of options.
///
/// Errors: `bad_argument`, a sentence with the option and its value.
struct option_check {
    std::string_view operation; ///< "frontend" or "member"

    [[noreturn]] HERRING_SETUP void refuse(std::initializer_list<text_part> text) const {
        throw error(errc::bad_argument, -1, -1, operation, text);
    }
    HERRING_SETUP void time(std::string_view option, std::chrono::nanoseconds value,
                            std::chrono::nanoseconds least) const {
        if (value < least) refuse({option, " is ", value.count(), " ns; at least ", least.count(), " ns"});
        if (value > most_time)
            refuse({option, " is ", value.count(), " ns, more than a day; is the unit right?"});
    }
    HERRING_SETUP void times(std::chrono::milliseconds heartbeat,
                             std::chrono::milliseconds peer_timeout) const {
        using std::chrono::milliseconds;
        time("peer_timeout", peer_timeout, milliseconds(50));
        time("heartbeat", heartbeat, milliseconds(1));
        if (heartbeat > peer_timeout / 2)
            refuse({"heartbeat is ", heartbeat.count(), " ms and peer_timeout ", peer_timeout.count(),
                    " ms; at least two heartbeats have to fit"});
    }
    HERRING_SETUP void name(std::string_view option, std::string_view value) const {
        if (value.empty()) refuse({option, " is left out; give a name"});
        if (value.size() > most_name)
            refuse({option, " has ", value.size(), " characters; at most ", most_name});
        for (char const c : value)
            if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\\' || c == 127)
                refuse({option, " is '", value, "'; no spaces, quotes or control characters"});
    }
    HERRING_SETUP void size(std::string_view option, std::size_t value, std::size_t least,
                            std::size_t most) const {
        if (value < least || value > most)
            refuse({option, " is ", value, "; it has to be from ", least, " to ", most});
    }

    static constexpr std::size_t most_name = 64;
    static constexpr std::size_t most_elements = std::size_t{1} << 28;
    static constexpr std::size_t most_request = std::size_t{1} << 30;
    static constexpr std::size_t most_in_flight = std::size_t{1} << 16;
    static constexpr std::size_t most_replicas = 16;
};

/// Checks the options, and sets `credits` and `most_members` where they are 0. `k_of_quorum`: for this
/// roster.
HERRING_SETUP inline void check_options(frontend_options& o, std::size_t k_of_quorum) {
    option_check const check{"frontend"};
    if (o.listen.empty()) check.refuse({"listen is left out; give \"host:port\", as in \"127.0.0.1:7001\""});
    if (o.members.empty()) check.refuse({"members is left out; name the members of the roster"});
    check.size("the number of members", o.members.size(), 1, member_set::capacity);
    for (std::size_t i = 0; i < o.members.size(); ++i) {
        check.name("a member's name", o.members[i]);
        for (std::size_t j = 0; j < i; ++j)
            if (o.members[j] == o.members[i])
                check.refuse({"members names '", o.members[i], "' twice, as member ", j, " and as member ", i,
                              "; names are unique; several processes of one member are its replicas"});
    }
    if (o.elements == 0) check.refuse({"elements is left out; give the number of elements of a row"});
    check.size("elements", o.elements, 1, option_check::most_elements);
    check.size("request_bytes", o.request_bytes, 0, option_check::most_request);
    check.size("in_flight", o.in_flight, 1, option_check::most_in_flight);
    if (o.credits == 0) o.credits = o.in_flight;
    check.size("credits", o.credits, 1, o.in_flight);
    check.size("replicas", o.replicas, 1, option_check::most_replicas);
    check.name("name", o.name);
    check.times(o.heartbeat, o.peer_timeout);
    check.time("early_rows", o.early_rows, std::chrono::milliseconds(0));
    if (o.most_members == 0) o.most_members = o.members.size() > 64 ? o.members.size() : 64;
    check.size("most_members", o.most_members, o.members.size(), member_set::capacity);
    std::size_t const k = o.k > 0 ? o.k : k_of_quorum;
    if (k > o.members.size())
        check.refuse({"k is ", k, ", and the roster has ", o.members.size(),
                      o.members.size() == 1 ? " member" : " members", "; k members could never answer"});
}

HERRING_SETUP inline void check_options(member_options& o) {
    option_check const check{"member"};
    if (o.frontends.empty()) check.refuse({"frontends is left out; give \"host:port\" of each"});
    for (std::size_t i = 0; i < o.frontends.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (o.frontends[j] == o.frontends[i])
                check.refuse({"frontends names '", o.frontends[i], "' twice"});
    check.name("name", o.name);
    check.size("replica", o.replica, 0, option_check::most_replicas - 1);
    if (o.elements == 0) check.refuse({"elements is left out; give the number of elements of a row"});
    check.size("elements", o.elements, 1, option_check::most_elements);
    check.size("request_bytes", o.request_bytes, 0, option_check::most_request);
    check.name("ensemble", o.ensemble);
    check.size("concurrency", o.concurrency, 1, option_check::most_in_flight);
    check.size("credits", o.credits, 1, option_check::most_in_flight);
}

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail::ensembles {

/// Checks of a request before it begins.
///
/// Errors: `bad_argument`, with the value and its limits.
struct ask_check {
    [[noreturn]] HERRING_SETUP static void refuse(std::initializer_list<text_part> text) {
        throw error(errc::bad_argument, -1, -1, "ask", text);
    }
    HERRING_SETUP static void expected_id(std::uint64_t id) {
        if (id == 0 || id >> 63 != 0)
            refuse({"the id of an expected request is ", id, "; it has to be from 1 to 2^63 - 1"});
    }
    [[noreturn]] HERRING_SETUP static void id_in_flight(std::uint64_t id) {
        refuse({"the id of an expected request, ", id, ", is that of another request in flight"});
    }
    /// Checks a request without the frontend's lock. A deadline that has passed is no error: no member is
    /// asked then.
    /// `Format`: knows which weights are valid.
    template <class Format>
    static void request(std::size_t bytes, std::size_t most_bytes, std::chrono::nanoseconds within,
                        ask_options const& how) {
        if (bytes > most_bytes)
            refuse({"the request has ", bytes, " bytes, and request_bytes is ", most_bytes,
                    "; give frontend and members a larger one"});
        if (within < -most_time || within > most_time)
            refuse({"the deadline is ", within.count(),
                    " ns away; it has to be within a day; is the unit right, and the clock?"});
        if (!how.weights.empty())
            if (char const* const fault = Format::fault_of_weights(how.weights)) refuse({fault});
        if (how.among && how.among->empty()) refuse({"among has no member"});
    }
    /// Checks a request with the lock. `members`: size of the roster, which may grow. `k`: of a request that
    /// gives none.
    static void roster(ask_options const& how, std::size_t members, std::size_t k) {
        std::size_t candidates = members;
        if (how.among) {
            candidates = how.among->count();
            if ((*how.among - member_set::first(members)).count() != 0)
                refuse({"among has members beyond the roster, which has ", members});
        }
        std::size_t const least = how.k > 0 ? how.k : k;
        if (least > candidates)
            refuse({"k is ", least, ", and ", candidates,
                    how.among ? " members of among" : " members of the roster", " could answer"});
        if (!how.weights.empty() && how.weights.size() != members)
            refuse({how.weights.size(), " weights are given, and the roster has ", members, " members"});
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_OPTIONS_HPP

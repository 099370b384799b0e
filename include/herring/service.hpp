// herring: `service<Reducers...>`: one set of servers for several jobs; `served_by<Reducer>`: a request.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SERVICE_HPP
#define HERRING_SERVICE_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/control/world.hpp"
#include "herring/model/layout.hpp"
#include "herring/model/lent_servers.hpp"
#include "herring/model/topology.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy/policy.hpp"
#include "herring/serve.hpp"
#include "herring/service/service.hpp"
#include "herring/session/construction.hpp"
#include "herring/session/session.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {

namespace detail::leasing {

/// A reducer as a service sees it.
template <class Pack> struct served {
    using session = detail::session<Pack>;
    using element = typename session::element;
    using transport = typename Pack::transport;

    /// Element and policies, of those that ranks have to agree on.
    HERRING_SETUP static std::string name() {
        (void)holds<serves_reducer<Pack::placement::facts.dedicated_servers>>;
        std::string all(herring::element<typename Pack::element>::name);
        for (policy_fact const& one : policy_facts<Pack>::all)
            if (one.must_agree) append(all, {", ", one.axis, " ", one.name});
        return all;
    }
    /// By the plan of workers that are each a node: it stages most.
    HERRING_SETUP static need needs(layout const& tensors, int workers, int servers) {
        auto const counts = element_counts(tensors, (std::size_t{1} << 43) / sizeof(element), -1);
        std::vector<int> nodes;
        std::vector<role> roles;
        for (int r = 0; r < workers + servers; ++r) {
            nodes.push_back(r);
            roles.push_back(r < workers ? role::worker : role::server);
        }
        topology const map(nodes, roles);
        constexpr std::uint64_t widest =
            std::max(std::size_t{1}, sizeof(accumulator<element>) / sizeof(element));
        std::uint64_t memory = 0, staging = 0, state = 0;
        for (exchange_tuning tuning : {transport::facts.tuning, transport::facts.same_host_tuning}) {
            tuning.max_message_bytes = transport::facts.max_message;
            plan const p =
                make_plan<typename Pack::fusion, typename Pack::sharding, typename Pack::placement>(
                    {counts.data(), counts.size()}, map, sizeof(element), sizeof(accumulator<element>),
                    tuning);
            staging = std::max(staging, widest * p.staging_bytes(static_cast<std::size_t>(workers)));
            memory = p.tensor_bytes();
            if constexpr (session::updates) {
                using kept = typename session::optimizer_memory_type;
                state = p.elements * kept::arrays() * sizeof(typename kept::number);
            }
        }
        // Tensors, the largest buffer of a collective in place, and weights: a part of the pages of each.
        std::uint64_t const mapped = (session::updates ? 3 : 2) * memory,
                            parts = static_cast<std::uint64_t>(servers);
        std::uint64_t const part = (mapped + state + parts - 1) / parts, own = part + part / 8 + staging;
        // Links of the workers may choose windows of 16 chunks of 256 KiB a peer.
        std::uint64_t const by_links = 4_MiB * widest * static_cast<std::uint64_t>(workers);
        return {own + of_process, mapped + state + std::max(staging, by_links) + of_address_space};
    }
    HERRING_SETUP static void serve(world& ranks, layout tensors) {
        herring::serve<basic_reducer<Pack>>(ranks, std::move(tensors));
    }
    static served_type type() { return {name(), needs, serve}; }

    static constexpr std::uint64_t of_process = 64_MiB, of_address_space = 512_MiB;
};

template <class Element> struct served<rejected<Element>> {
    static std::string name() { return {}; }
    static served_type type() { return {}; }
};

} // namespace detail::leasing

/// Servers for a world of workers, from one of `services`: for `join_options::servers`, on every rank. The
/// ranks that are granted stand behind the workers, and serve one `Reducer(world, tensors)`; workers go on as
/// with servers of their own: the same calls, the same bits.
///
/// Cost:    `join` takes three round trips to the service and the start of a process more.
/// Errors:  of `join`: `unreachable`; `refused`: another key, or the service is about to end; `unsupported`
///          where it was not compiled with the type; `bad_argument`: more than the tenant's limits;
///          `no_resources`: others hold it, and who; `mismatch`: another version. Workers that reach rank 0
///          within 2 s have the same error.
/// Source:  Parameter Hub, SoCC'18: servers of a rack, which jobs share.
/// Example: herring::world w = herring::join({.servers = herring::served_by<trainer>(
///              {"host:7100"}, layout, {.count = 2, .tenant = "alice", .key_file = "alice.key"})});
template <class Reducer>
lent_servers served_by(std::initializer_list<std::string_view> services, layout tensors,
                       lent_servers wanted = {.count = 1}) {
    for (std::string_view const one : services)
        detail::append(wanted.services, {wanted.services.empty() ? "" : ",", one});
    wanted.tensors = std::move(tensors);
    wanted.type = detail::leasing::served<typename detail::pack_of<Reducer>::type>::name();
    wanted.ask = detail::leasing::ask_services;
    return wanted;
}

/// One set of servers for several jobs: a process that listens for tenants' jobs, and lends them server ranks
/// for one of `Reducers` each. Every rank is a process of its own: the program, started anew with its
/// arguments, which joins the job's world in the constructor and never leaves that. So a program constructs
/// its service before it does anything else.
///
/// Memory:  of a rank by the layout, before it is granted: 9/8 of its part of the pages that serve.hpp says,
///          staging, and 64 MiB. Its address space is limited to that of all tensors and 512 MiB.
/// Threads: the constructing one. SIGTERM, SIGINT and SIGHUP are blocked there from `run` on, and have
///          to be blocked in others.
/// Errors:  `bad_argument` naming file and line; `unreachable`: the address; `no_resources`; `unsupported`:
///          `rate`, where the system forbids it.
/// Source:  Parameter Hub, SoCC'18.
/// Example: herring::service<trainer_a, trainer_b> s({.listen = "0.0.0.0:7100", .tenants = "tenants.conf"});
///          s.run();
template <class... Reducers> class service {
  public:
    explicit service(service_options options) : options_(std::move(options)) {
        detail::leasing::serve_if_started(types_);
    }
    service(service const&) = delete;
    service& operator=(service const&) = delete;

    /// Returns once SIGTERM or SIGINT came and the jobs have left, after `drain_time` at the latest.
    void run() { detail::leasing::run_service(options_, types_); }

  private:
    service_options options_;
    std::vector<detail::leasing::served_type> types_{
        detail::leasing::served<typename detail::pack_of<Reducers>::type>::type()...};
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_SERVICE_HPP

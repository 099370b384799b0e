// herring: a server's options: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_SERVER_SET_UP_IMPL_HPP
#define HERRING_SESSION_SERVER_SET_UP_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/session/construction.hpp"
#include "herring/session/server_set_up.hpp"

#include <cstddef>
#include <cstdio>
#include <string>

#include <sched.h>

namespace HERRING_NAMESPACE {

HERRING_SEPARABLE std::string load_of(plan const& all, topology const& map, server_id of) {
    detail::server_loads loads(all.roles);
    for (bucket const& b : all.buckets)
        if (b.path == route::two_hop) loads.add(b, all.shards);
    std::size_t const mine = loads.elements(of), contributors = all.roles.contributors.size(),
                      pushed =
                          contributors - (all.roles.contributor(all.roles.node_of(of)).value >= 0 ? 1 : 0);
    std::size_t const tenths = all.elements == 0 ? 0 : (2000 * mine + all.elements) / (2 * all.elements);
    return detail::text({"server ",
                         of.value,
                         " of ",
                         all.roles.server_count(),
                         " (rank ",
                         map.rank_of(all.roles.node_of(of), 0),
                         ") combines ",
                         mine * all.element_bytes,
                         " of ",
                         all.tensor_bytes(),
                         " bytes a step (",
                         tenths / 10,
                         ".",
                         tenths % 10,
                         " %), from ",
                         contributors,
                         " nodes: ",
                         all.parts.bytes(pushed * mine),
                         " bytes come in, ",
                         pushed * mine * all.element_bytes,
                         " go out"});
}

namespace detail {

HERRING_SEPARABLE void pin_server(world& ranks, serve_options const& options) {
    if (!options.pin) return;
    int const core = *options.pin;
    ::cpu_set_t one;
    CPU_ZERO(&one);
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(core), &one);
    if (CPU_COUNT(&one) == 1 && ::sched_setaffinity(0, sizeof one, &one) == 0) return;
    error const why(errc::bad_argument, ranks.rank(), -1, "serve",
                    {"serve_options::pin is ", core,
                     ", a core on which this process may not run; name one of those that taskset -p shows"});
    ranks.fail(why.why());
    throw why;
}

HERRING_SEPARABLE void report_server(plan const& all, topology const& map, int rank,
                                     serve_options const& options) {
    std::string line = text({"herring: ", load_of(all, map, all.roles.server(map.node(rank)))});
    if (options.pin) append(line, {"; on core ", *options.pin});
    std::fprintf(stderr, "%s\n", line.c_str());
}

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_SESSION_SERVER_SET_UP_IMPL_HPP

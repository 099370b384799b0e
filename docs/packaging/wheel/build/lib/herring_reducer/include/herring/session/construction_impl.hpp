// herring: parts of a session's construction that depend neither on elements nor on policies: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_CONSTRUCTION_IMPL_HPP
#define HERRING_SESSION_CONSTRUCTION_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/text.hpp"
#include "herring/control/world.hpp"
#include "herring/model/layout.hpp"
#include "herring/session/construction.hpp"

#include <cstddef>
#include <exception>
#include <initializer_list>
#include <new>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void announce_and_rethrow(world& ranks, char const* operation) {
    try {
        throw;
    } catch (error const& failed) {
        failure why = failed.why();
        if (why.reporter < 0) why.reporter = ranks.rank(); // errors of a plan are the same on every rank
        ranks.fail(why);
        throw error(why);
    } catch (std::bad_alloc const&) {
        error const short_of_memory(
            errc::no_resources, ranks.rank(), -1, operation,
            "no memory for the reducer's own tables; raise the limit (ulimit -v, cgroup)");
        ranks.fail(short_of_memory.why());
        throw short_of_memory;
    } catch (std::exception const& failed) { // from a user's policy
        ranks.fail(failure::make(errc::peer_failed, ranks.rank(), -1, operation, failed.what()));
        throw;
    } catch (...) {
        ranks.fail(failure::make(errc::peer_failed, ranks.rank(), -1, operation,
                                 "the program's code threw what is no std::exception"));
        throw;
    }
}

HERRING_SEPARABLE void check_roles(world& ranks, role as, std::string_view placement, bool dedicated,
                                   roles const& assigned, topology const& map) {
    int const me = ranks.rank();
    auto const refuse = [&](std::initializer_list<text_part> what) {
        throw error(errc::bad_argument, me, -1, as == role::server ? "serve" : "construction", what);
    };
    if (ranks.role() != as)
        throw error(
            errc::bad_state, me, -1, as == role::server ? "serve" : "construction",
            as == role::server
                ? "this rank is a worker: let it construct the reducer, or start it as a server "
                  "(HERRING_ROLE=server, join_options::role, launch_options::roles)"
                : "this rank is a server, which has no tensors: let it call herring::serve<...>(world, "
                  "layout) in place of constructing the reducer, or start it without a role");
    if (map.workers() == 0) refuse({"all ", map.size(), " ranks are servers; start some without a role"});
    if (map.servers() > 0 && !dedicated)
        refuse({"the world has ", map.servers(), " servers, and by placement '", placement,
                "' workers do all of the work; name herring::placement::dedicated, or optimal, or start no "
                "server"});
    if (map.servers() == 0 && assigned.servers.empty())
        refuse({"there is no server in the world of ", map.size(), " ranks, and placement '", placement,
                "' gives workers nothing to serve; start ranks as servers (HERRING_ROLE=server, "
                "join_options::role, launch_options::roles), or leave the placement out"});
    int serving = 0;
    for (int node = 0; node < map.nodes(); ++node) {
        bool const contributes = assigned.contributor(node).value >= 0,
                   serves = assigned.server(node).value >= 0;
        if (contributes == map.is_server_node(node) || (!contributes && !serves))
            refuse({"placement '", placement, "' takes rank ", map.rank_of(node, 0), ", a ",
                    to_string(map.role_of(map.rank_of(node, 0))),
                    ", for another; contributors are the nodes "
                    "of workers, and servers serve"});
        serving += contributes && serves;
    }
    if (serving > 0 && serving < assigned.contributor_count())
        refuse({"placement '", placement, "' has ", serving, " of ", assigned.contributor_count(),
                " nodes of workers serve; all of them do, or none"});
}

HERRING_SEPARABLE fixed_array<std::size_t> element_counts(layout const& tensors, std::size_t most, int rank) {
    fixed_array<std::size_t> counts(tensors.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
        counts[i] = tensors[i].elements;
        if (counts[i] > most)
            throw error(errc::bad_argument, rank, -1, "construction",
                        {"tensor ", i, " ('", tensors[i].name, "') of ", counts[i],
                         " elements: the layout is larger than any memory; see where its sizes come from"});
        most -= counts[i];
    }
    return counts;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_CONSTRUCTION_IMPL_HPP

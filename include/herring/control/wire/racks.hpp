// herring: the racks that ranks declare, by name, and what is wrong with them. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_RACKS_HPP
#define HERRING_CONTROL_WIRE_RACKS_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/model/topology.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail::wire {

inline constexpr std::size_t most_rack = 64; // characters of a rack's name

/// Returns what is wrong with the racks of ranks, and the rank that differs; empty: nothing. `names`: one a
/// rank, empty where a rank declares none; `nodes`: the nodes of the same ranks.
HERRING_SETUP inline std::string fault_of_racks(std::span<std::string const> names, topology const& nodes,
                                                int& rank) {
    for (std::size_t r = 0; r < names.size(); ++r) {
        rank = static_cast<int>(r);
        int const first = nodes.rank_of(nodes.node(rank), 0);
        std::string_view const own = names[r], other = names[0],
                               beside = names[static_cast<std::size_t>(first)];
        if (own.size() > most_rack)
            return text({"the rack of rank ", rank, ", '", own.substr(0, most_rack), "...', has more than ",
                         most_rack, " characters; give it a shorter name"});
        if (own.empty() != other.empty())
            return text({"rank 0 is in ", other.empty() ? "no rack" : "rack '", other,
                         other.empty() ? "" : "'", ", rank ", rank, " in ",
                         own.empty() ? "no rack" : "rack '", own, own.empty() ? "" : "'",
                         "; declare the racks of all ranks, or of none"});
        if (own != beside)
            return text({"rank ", first, " is in rack '", beside, "', rank ", rank,
                         " of the same node in rack '", own, "'; a node is in one rack"});
    }
    return {};
}

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_RACKS_HPP

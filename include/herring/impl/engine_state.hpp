// herring: what the operations and routes of an engine share: its set-up, and how it ends where ranks differ.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_IMPL_ENGINE_STATE_HPP
#define HERRING_IMPL_ENGINE_STATE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/state.hpp"
#include "herring/trace/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE engine_state::engine_state(failure_sink sink, int rank, topology const& map,
                                             plan const& from, std::span<int const> with,
                                             std::size_t executions)
    : who(map, from.roles, rank, with), element_bytes(from.element_bytes),
      part_element_bytes(from.part_element_bytes), in_accumulator(part_element_bytes != element_bytes),
      staged(in_accumulator || who.local_size > 1), owners_serve(from.contributors_serve()),
      contributing_ranks(from.roles.contributing_ranks(map)), ledger(executions), failures(sink),
      peers(with.size()), node_parts(static_cast<std::size_t>(map.nodes())),
      local_offsets_(ledger.size() * static_cast<std::size_t>(who.local_size)),
      waited_for_ns_(static_cast<std::size_t>(map.size())) {
    ledger.handles(who.own_chunks(), who.contributes, who.server);
    for (std::size_t i = 0; i < with.size(); ++i) peers[i].rank = with[i];
}

HERRING_SEPARABLE void engine_state::mismatch(int with, execution const& e, char const* how) noexcept {
    char what[64];
    if (e.label != no_bucket)
        std::snprintf(what, sizeof what, "bucket %u of a step", e.label);
    else
        std::snprintf(what, sizeof what, "a call of %s", e.name);
    if (e.root >= 0) {
        std::size_t const length = std::strlen(what);
        std::snprintf(what + length, sizeof what - length, " from rank %d", e.root);
    }
    bool const agrees = std::strcmp(e.name, "settle") == 0 || std::strcmp(e.name, "wait") == 0;
    char const* const more = agrees ? ", and let due() of the sync policy follow from steps and ballots alone"
                             : e.label != no_bucket && e.operation != 0
                                 ? ", and set the same hyper values before the step"
                                 : "";
    char text[360];
    std::snprintf(text, sizeof text,
                  "it is in another operation, or in one %s: this rank is in %s, here with %zu elements; "
                  "let all ranks "
                  "make the same calls with the same sizes, in the same order%s",
                  how, what, e.elements, more);
    failures.fail(
        failure::make(errc::mismatch, who.rank, with, e.label != no_bucket ? "reduce" : e.name, text), true);
}

HERRING_SEPARABLE void engine_state::find_slowest() noexcept {
    any_waited_for_.set(0);
    std::uint64_t most = 0, rank = 0; // from 1
    for (std::size_t i = 0; i < waited_for_ns_.size(); ++i) {
        std::uint64_t const ns = waited_for_ns_[i].get();
        if (ns == 0) continue;
        waited_for_ns_[i].set(0);
        if (ns > most) most = ns, rank = i + 1;
    }
    slowest_ns_.set(most);
    slowest_rank_.set(rank);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_IMPL_ENGINE_STATE_HPP

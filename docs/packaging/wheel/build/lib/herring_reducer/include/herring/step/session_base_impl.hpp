// herring: the part of a session that depends on neither policies nor elements: its set-up.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_SESSION_BASE_IMPL_HPP
#define HERRING_STEP_SESSION_BASE_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/memory_check.hpp"
#include "herring/engine/agreement.hpp"
#include "herring/engine/messages.hpp"
#include "herring/plan/collective_division.hpp"
#include "herring/step/session_base.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE session_base::session_base(world& ranks, layout&& tensors, bool joins_ranks)
    : ranks_(ranks, for_reducer{}), tensors_(std::move(tensors)),
      apart_(joins_ranks ? topology() : ranks_.topology().flat()),
      topology_(joins_ranks ? ranks_.topology() : apart_) {}

HERRING_SEPARABLE bool session_base::on_loopback() const noexcept {
    std::string const& address = ranks_.local_address();
    return address.starts_with("127.") || address == "::1";
}

/// The ranks of other nodes that `rank` exchanges chunks with, ascending: one of both contributes, and the
/// other serves.
HERRING_SEPARABLE std::vector<int> peers_of(topology const& map, roles const& nodes, int rank) {
    int const node = map.node(rank);
    auto const pushes = [&](int from, int to) {
        return nodes.contributor(from).value >= 0 && nodes.server(to).value >= 0;
    };
    std::vector<int> peers;
    for (int other = 0; other < map.size(); ++other) {
        int const there = map.node(other);
        if (there != node && (pushes(node, there) || pushes(there, node)) &&
            chunk_stream::between(map.local_rank(rank), map.local_size(node), map.local_rank(other),
                                  map.local_size(there))
                .any())
            peers.push_back(other);
    }
    return peers;
}

HERRING_SEPARABLE void session_base::settle(std::string_view element, std::span<policy_fact const> policies,
                                            memory_traits const& traits,
                                            std::size_t (*local_bytes)(std::size_t, std::size_t) noexcept,
                                            bool attaches) {
    all_attach_ = agree(ranks_, declare(element, policies, on_loopback(), plan_, tensors_),
                        ranks_.default_timeout(), attaches);
    peers_ = peers_of(topology_, plan_.roles, ranks_.rank());
    memory_ = make_memory_map(plan_, traits, peers_.size(), local_bytes);
    if (!token::can_name(memory_.executions_kept) || peers_.size() > token::low)
        throw error(
            errc::bad_argument, ranks_.rank(), -1, "construction",
            {plan_.buckets.size(), " buckets and ", peers_.size(), " peers: at most ",
             token::low - memory_map::bounce_slots, " buckets, half as many with servers of their own, and ",
             token::low,
             " peers; use larger buckets (herring::fusion::balanced_buffer), or a larger split_bytes of the "
             "intra_node policy's tuning"});
}

HERRING_SEPARABLE void session_base::make_staging(std::size_t filled) {
    // The same on all ranks, so that all make the collective check or none does.
    if (plan_.tensor_bytes() >= memory_worth_asking_for) check_memory(ranks_, memory_.staging_bytes + filled);
    staging_ = private_memory(memory_.staging_bytes, ranks_.rank());
}

HERRING_SEPARABLE void session_base::divide_owned(bucket& result, std::size_t elements,
                                                  std::span<range const> owned, bool slotted,
                                                  std::vector<shard>& shards,
                                                  route_limits const& facts) const {
    detail::divide_owned(result, elements, owned, slotted, facts, topology_, shards);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_SESSION_BASE_IMPL_HPP

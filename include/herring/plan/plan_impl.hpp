// herring: the text of a plan, and its errors.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_PLAN_IMPL_HPP
#define HERRING_PLAN_PLAN_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>

namespace HERRING_NAMESPACE {

namespace detail {

HERRING_SEPARABLE void refuse_plan(std::initializer_list<text_part> what) {
    throw error(errc::bad_argument, -1, -1, "make_plan", what);
}

} // namespace detail

HERRING_SEPARABLE std::string to_string(plan const& p) {
    std::size_t chunks = 0;
    std::size_t by_route[6] = {};
    for (bucket const& b : p.buckets) {
        chunks += b.chunks;
        ++by_route[static_cast<std::size_t>(b.path)];
    }
    std::string text = std::to_string(p.tensors.size()) + " tensors, " + std::to_string(p.tensor_bytes()) +
                       " bytes; " + std::to_string(p.buckets.size()) + " buckets, " +
                       std::to_string(p.shards.size()) + " shards, " + std::to_string(chunks) + " chunks; " +
                       std::to_string(p.nodes) + " nodes of at most " + std::to_string(p.largest_node) +
                       " ranks";
    if (!p.racks.empty()) text += " in " + std::to_string(p.racks.back() + 1) + " racks";
    if (!p.rank_order) text += ", whose parts are combined in no order: bits may differ from run to run";
    if (p.fusion_bytes > 0) {
        text += "; a bucket is full with " + std::to_string(p.grown_fusion_bytes) + " bytes";
        if (p.grown_fusion_bytes != p.fusion_bytes)
            text += " in place of " + std::to_string(p.fusion_bytes) +
                    (p.tuning.links.rate_mbit > 0
                         ? ", by the links"
                         : ", for " + std::to_string(p.roles.server_count()) + " servers x " +
                               std::to_string(p.largest_node) + " ranks get at least " +
                               std::to_string(p.least_share_bytes) + " of it each");
    }
    for (route const r : {route::mailbox, route::local, route::one_hop, route::two_hop, route::dissemination,
                          route::two_levels})
        if (std::size_t const count = by_route[static_cast<std::size_t>(r)]; count > 0)
            text += "; " + std::to_string(count) + " by " + to_string(r);
    if (p.by_links()) {
        std::size_t most = 0;
        for (bucket const& b : p.buckets) most = std::max(most, b.elements * p.element_bytes);
        network_shape shape = p.shape();
        shape.nests = p.has_two_levels() && most >= p.tuning.two_level_bytes;
        choice const best = choose(shape, most, p.tuning.links);
        auto const add = [&](char const* what, way const& one) {
            detail::append(text, {what, to_string(one.path), " and ", one.servers, " servers at ", one.levels,
                                  " levels in ", one.time_ns / 1000, " us"});
        };
        detail::append(text, {"; links ", to_string(p.tuning.links), ": chunks of ", best.chunk_bytes,
                              " bytes, windows of ", best.window_bytes, ", one hop up to ", p.one_hop_limit(),
                              ", dissemination up to ", p.dissemination_limit(), "; a bucket of ", most,
                              " bytes by"});
        add(" ", best);
        add(", next best ", best.next);
    }
    if (!p.all_have_both_roles()) {
        detail::server_loads loads(p.roles);
        for (bucket const& b : p.buckets) loads.add(b, p.shards);
        std::size_t least = ~std::size_t{0}, most = 0;
        for (std::size_t s = 0; s < p.roles.servers.size(); ++s) {
            least = std::min(least, loads.elements(server_id::at(s)) * p.element_bytes);
            most = std::max(most, loads.elements(server_id::at(s)) * p.element_bytes);
        }
        text += "; " + std::to_string(p.roles.server_count()) + " servers combine " + std::to_string(least) +
                " to " + std::to_string(most) + " bytes a step each, from " +
                std::to_string(p.roles.contributor_count()) + " nodes";
    }
    if (p.most_optimizer_bytes > 0) {
        text += "; the optimizer keeps " + std::to_string(p.least_optimizer_bytes);
        if (p.most_optimizer_bytes != p.least_optimizer_bytes)
            text += " to " + std::to_string(p.most_optimizer_bytes);
        text += " bytes on each rank that combines";
    }
    if (std::size_t const piece = p.call_piece_elements() * p.element_bytes; piece > 0)
        text += "; buffers of calls in pieces of at most " + std::to_string(piece) + " bytes, " +
                std::to_string(plan::bounce_slots) + " at once";
    if (p.nodes > 1) {
        std::size_t const each = p.staging_bytes(2) - p.staging_bytes(1);
        std::size_t const shared = p.staging_bytes(2) - 2 * each;
        text += "; staging " + std::to_string(each) +
                " bytes a peer = " + std::to_string(p.largest_node > 1 ? 2 * p.window() : p.window()) +
                " x " + std::to_string(p.parts.bytes(p.slot_elements())) + " + " +
                std::to_string(plan::one_hop_window()) + " x " +
                std::to_string(p.parts.bytes(p.hop_slot_elements()));
        if (shared > 0) text += ", and " + std::to_string(shared) + " for all";
        if (std::size_t const bytes = p.dissemination_buffer_bytes(); bytes > 0)
            text += ", of which " + std::to_string(plan::dissemination_window()) + " x " +
                    std::to_string(bytes) + " for dissemination";
        if (p.has_two_levels())
            text += ", and " + std::to_string(p.two_level_staging()) + " for two levels, from buckets of " +
                    std::to_string(p.tuning.two_level_bytes) +
                    " bytes on: " + std::to_string(p.near_nodes()) + " peers in a rack, " +
                    std::to_string(p.far_nodes()) + " in others";
    }
    return text;
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_PLAN_PLAN_IMPL_HPP

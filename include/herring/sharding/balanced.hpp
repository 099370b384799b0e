// herring: sharding by equal bytes for every server, whatever the tensors.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SHARDING_BALANCED_HPP
#define HERRING_SHARDING_BALANCED_HPP

#include "herring/base/config.hpp"
#include "herring/sharding/sharding.hpp"

namespace HERRING_NAMESPACE::sharding {

/// Cuts every bucket into one byte range a server, as long as its share, whatever tensors they hold.
///
/// Shape:   bucket of B lines, S servers of equal share → S ranges of ⌈B/S⌉ or ⌊B/S⌋ lines, in order. A server of share h of
///          H: ⌊B·h/H⌋ lines or one more. Empty ranges are left out.
/// Cost:    max/mean load of servers with equal shares < 1 + S/B.
/// Source:  Herring, SC'20: balanced fusion buffers.
struct balanced {
    using axis = axes::sharding;
    static constexpr char const* name = "balanced";

    template <class Assign>
    static constexpr void shard(bucket_view const& bucket, roles const& nodes, Assign&& assign) {
        std::size_t const count = nodes.servers.size();
        std::size_t const all = nodes.all_shares();
        std::size_t const lines = (bucket.elements + bucket.line_elements - 1) / bucket.line_elements;
        // ⌊lines · share / all⌋, by factors that do not overflow.
        auto const lines_of = [whole = lines / all, rest = lines % all, all](std::size_t share) {
            return whole * share + rest * share / all;
        };
        std::size_t more = lines; // the first `more` servers hold one line more
        for (std::size_t server = 0; server < count; ++server)
            more -= lines_of(nodes.share(server_id::at(server)));
        std::size_t at = 0;
        for (std::size_t server = 0; server < count; ++server) {
            server_id const id = server_id::at(server);
            std::size_t const wanted =
                (lines_of(nodes.share(id)) + (server < more ? 1 : 0)) * bucket.line_elements;
            std::size_t const size = wanted < bucket.elements - at ? wanted : bucket.elements - at;
            if (size > 0) assign(at, size, id);
            at += size;
        }
    }
};
static_assert(sharding_policy<balanced>);

} // namespace HERRING_NAMESPACE::sharding

#endif // HERRING_SHARDING_BALANCED_HPP

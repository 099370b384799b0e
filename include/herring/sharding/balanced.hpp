// herring: equal bytes for every server, whatever the tensors.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SHARDING_BALANCED_HPP
#define HERRING_SHARDING_BALANCED_HPP

#include "herring/base/config.hpp"
#include "herring/sharding/sharding.hpp"

namespace HERRING_NAMESPACE::sharding {

/// Cuts every bucket into equal byte ranges, one a server, whatever tensors they hold.
///
/// Shape:   bucket of B grains, S servers → S ranges of ⌈B/S⌉ or ⌊B/S⌋ grains, in order; empty ones are left out.
/// Cost:    max/mean load of a server < 1 + S/B.
/// Source:  Herring, SC'20: balanced fusion buffers.
struct balanced {
    using axis = axes::sharding;
    static constexpr char const* name = "balanced";

    template <class Assign>
    static constexpr void shard(bucket_view const& bucket, int servers, Assign&& assign) {
        std::size_t const count = static_cast<std::size_t>(servers);
        std::size_t const grains = (bucket.elements + bucket.grain - 1) / bucket.grain;
        std::size_t const each = grains / count;
        std::size_t const more = grains % count; // the first `more` servers hold one grain more
        std::size_t at = 0;
        for (std::size_t server = 0; server < count; ++server) {
            std::size_t const wanted = (each + (server < more ? 1 : 0)) * bucket.grain;
            std::size_t const size = wanted < bucket.elements - at ? wanted : bucket.elements - at;
            if (size > 0) assign(at, size, static_cast<int>(server));
            at += size;
        }
    }
};
static_assert(sharding_policy<balanced>);

} // namespace HERRING_NAMESPACE::sharding

#endif // HERRING_SHARDING_BALANCED_HPP

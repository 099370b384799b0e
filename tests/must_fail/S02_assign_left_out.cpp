// herring: must not compile: shard that takes no assign.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "own";
#ifndef HERRING_TWIN
    static std::size_t shard(herring::bucket_view const& bucket, herring::roles const& nodes) {
        return bucket.elements / nodes.servers.size();
    }
#else
    template <class Assign>
    static void shard(herring::bucket_view const& bucket, herring::roles const&, Assign&& assign) {
        assign(std::size_t(0), bucket.elements, herring::server_id{0});
    }
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"

// herring: must not compile: shard that takes no assign.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "own";
#ifndef HERRING_TWIN
    static std::size_t shard(herring::bucket_view const& bucket, int servers) {
        return bucket.elements / std::size_t(servers);
    }
#else
    template <class Assign> static void shard(herring::bucket_view const& bucket, int, Assign&& assign) {
        assign(std::size_t(0), bucket.elements, 0);
    }
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"

// herring: must not compile: shard that takes no emit.
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
    template <class Emit> static void shard(herring::bucket_view const& bucket, int, Emit&& emit) {
        emit(std::size_t(0), bucket.elements, 0);
    }
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"

// herring: must not compile: a sharding policy without a name.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::sharding;
    template <class Emit> static void shard(herring::bucket_view const& bucket, int, Emit&& emit) {
        emit(std::size_t(0), bucket.elements, 0);
    }
};
#else
struct own {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "own";
    template <class Emit> static void shard(herring::bucket_view const& bucket, int, Emit&& emit) {
        emit(std::size_t(0), bucket.elements, 0);
    }
};
#endif

using mine = pack<float, line, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;

// herring: must not compile: a sharding policy without a name.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sharding;
#ifdef HERRING_TWIN
    static constexpr char const* name = "own";
#endif
    template <class Assign>
    static void shard(herring::bucket_view const& bucket, herring::roles const&, Assign&& assign) {
        assign(std::size_t(0), bucket.elements, herring::server_id{0});
    }
};

using mine = pack<float, line, own>;

#include "use.hpp"

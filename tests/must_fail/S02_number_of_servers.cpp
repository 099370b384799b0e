// herring: must not compile: shard that takes the number of servers, not the roles of the nodes.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "own";
#ifndef HERRING_TWIN
    template <class Assign>
    static void shard(herring::bucket_view const& bucket, int, Assign&& assign){
#else
    template <class Assign>
    static void shard(herring::bucket_view const& bucket, herring::roles const&, Assign&& assign) {
#endif
        assign(std::size_t(0), bucket.elements, herring::server_id{0});
}
}
;

using mine = pack<float, line, own>;

#include "use.hpp"

// herring: the naive parameter server: every tensor whole on one server. A baseline, not a recommendation.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SHARDING_WHOLE_TENSOR_HPP
#define HERRING_SHARDING_WHOLE_TENSOR_HPP

#include "herring/base/config.hpp"
#include "herring/sharding/sharding.hpp"

namespace HERRING_NAMESPACE::sharding {

/// Gives tensor i, whole, to server i mod S, whatever its share.
///
/// Shape:   bucket of t tensors → t ranges.
/// Cost:    the server of the largest tensor carries all of it: max/mean load up to S.
/// Source:  the placement that Herring, SC'20, measures itself against.
struct whole_tensor {
    using axis = axes::sharding;
    static constexpr char const* name = "whole_tensor";

    template <class Assign>
    static constexpr void shard(bucket_view const& bucket, roles const& nodes, Assign&& assign) {
        for (bucket_tensor const& tensor : bucket.tensors)
            if (tensor.elements > 0)
                assign(tensor.offset, tensor.elements, server_id::at(tensor.index % nodes.servers.size()));
    }
};
static_assert(sharding_policy<whole_tensor>);

} // namespace HERRING_NAMESPACE::sharding

#endif // HERRING_SHARDING_WHOLE_TENSOR_HPP

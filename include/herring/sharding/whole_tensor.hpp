// herring: sharding as the naive parameter server has it: each tensor on one server. A baseline, not a recommendation.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SHARDING_WHOLE_TENSOR_HPP
#define HERRING_SHARDING_WHOLE_TENSOR_HPP

#include "herring/base/config.hpp"
#include "herring/sharding/sharding.hpp"

namespace HERRING_NAMESPACE::sharding {

/// Assigns tensor i as a whole to server i mod S, whatever its share.
///
/// Shape:   bucket of t tensors → t ranges.
/// Cost:    the server of the largest tensor carries all of it: max/mean load up to S.
/// Source:  the baseline of Herring, SC'20.
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

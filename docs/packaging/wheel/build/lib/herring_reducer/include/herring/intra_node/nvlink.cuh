// herring: `intra_node::nvlink`: tensors on CUDA devices, which sum them by peer access.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_INTRA_NODE_NVLINK_CUH
#define HERRING_INTRA_NODE_NVLINK_CUH

#include "herring/base/config.hpp"
#include "herring/gpu/cuda/cuda_runtime.cuh"
#include "herring/gpu/pipeline/nvlink.hpp"

namespace HERRING_NAMESPACE::intra_node {

/// Sums the tensors of a node on its devices by peer access, over NVLink if there is one. See
/// gpu::basic_nvlink.
using nvlink = gpu::basic_nvlink<gpu::cuda_runtime>;
static_assert(intra_node_policy<nvlink>);

} // namespace HERRING_NAMESPACE::intra_node

#endif // HERRING_INTRA_NODE_NVLINK_CUH

// herring: `intra_node::nccl`: tensors on CUDA devices, which NCCL combines within the node.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_INTRA_NODE_NCCL_CUH
#define HERRING_INTRA_NODE_NCCL_CUH

#include "herring/base/config.hpp"
#include "herring/gpu/cuda/cuda_nccl.cuh"
#include "herring/gpu/pipeline/nccl.hpp"

namespace HERRING_NAMESPACE::intra_node {

/// Combines the tensors of a node's devices by NCCL, one rank per device; Herring combines the nodes. Needs
/// nccl.h and NCCL's library, 2.14 or later. See gpu::basic_nccl.
using nccl = gpu::basic_nccl<gpu::cuda_runtime, gpu::cuda_nccl>;
static_assert(intra_node_policy<nccl>);

} // namespace HERRING_NAMESPACE::intra_node

#endif // HERRING_INTRA_NODE_NCCL_CUH

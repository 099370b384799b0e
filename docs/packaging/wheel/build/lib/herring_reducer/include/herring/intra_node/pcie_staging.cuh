// herring: `intra_node::pcie_staging`: tensors on CUDA devices, summed by the host.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_INTRA_NODE_PCIE_STAGING_CUH
#define HERRING_INTRA_NODE_PCIE_STAGING_CUH

#include "herring/base/config.hpp"
#include "herring/gpu/cuda/cuda_runtime.cuh"
#include "herring/gpu/pipeline/pcie_staging.hpp"

namespace HERRING_NAMESPACE::intra_node {

/// Copies buckets to pinned host memory, where the node's ranks sum them, and copies the results back. For
/// devices without peer access. See gpu::basic_pcie_staging.
using pcie_staging = gpu::basic_pcie_staging<gpu::cuda_runtime>;
static_assert(intra_node_policy<pcie_staging>);

} // namespace HERRING_NAMESPACE::intra_node

#endif // HERRING_INTRA_NODE_PCIE_STAGING_CUH

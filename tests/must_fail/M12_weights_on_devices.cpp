// herring: must not compile: an optimizer where tensors lie on devices.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"

namespace optimizer = herring::optimizer;

#ifndef HERRING_TWIN
using node = herring::gpu::basic_pcie_staging<herring::gpu::host_runtime>;
#else
using node = herring::intra_node::shared_memory;
#endif

using mine = herring::reducer<float, herring::transport::inproc, node, optimizer::momentum>::element_type;

mine use(mine x) { return x; }

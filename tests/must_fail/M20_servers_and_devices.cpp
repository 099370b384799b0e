// herring: must not compile: servers of their own where tensors lie on devices.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/serve.hpp"
#include "herring/transport/inproc.hpp"

namespace placement = herring::placement;

#ifndef HERRING_TWIN
using node = herring::gpu::basic_pcie_staging<herring::gpu::host_runtime>;
#else
using node = herring::intra_node::shared_memory;
#endif

using mine = herring::reducer<float, herring::transport::inproc, node, placement::dedicated>::element_type;

mine use(mine x) { return x; }

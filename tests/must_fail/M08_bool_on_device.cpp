// herring: must not compile: bool, where tensors lie on devices.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/transport/inproc.hpp"

#ifndef HERRING_TWIN
using node = herring::gpu::basic_pcie_staging<herring::gpu::host_runtime>;
#else
using node = herring::intra_node::shared_memory;
#endif
using element = bool;
using mine =
    herring::reducer<element, herring::transport::inproc, herring::update::logical_or, node>::element_type;

mine use(mine x) { return x; }

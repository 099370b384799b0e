// herring: must not compile: an intra-node reducer that says that its tensors lie on a device, and does no more about it.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"

#ifndef HERRING_TWIN
struct mine_alone : herring::intra_node::none {
    using none::none;
    static constexpr herring::intra_node_facts facts{.device_memory = true};
};
#else
using mine_alone = herring::gpu::basic_pcie_staging<herring::gpu::host_runtime>;
#endif
using mine = pack<float, line, mine_alone>;

#include "use.hpp"

// herring: must not compile: tensors on a device, a transport that reaches host memory only.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"

using staged = herring::gpu::basic_pcie_staging<herring::gpu::host_runtime>;
struct on_device : staged {
    using staged::staged;
    static constexpr herring::intra_node_facts facts = [] {
        herring::intra_node_facts all = staged::facts;
        all.host_staging = false;
        return all;
    }();
};

#ifndef HERRING_TWIN
using mine = pack<float, line, on_device>;
#else
using mine = pack<float, line, staged>;
#endif

#include "use.hpp"

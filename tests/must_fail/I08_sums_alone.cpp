// herring: must not compile: sums_on_device without the functions that it promises.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"

using staged = herring::gpu::basic_pcie_staging<herring::gpu::host_runtime>;
struct own : staged {
    using staged::staged;
#ifndef HERRING_TWIN
    static constexpr herring::intra_node_facts facts{
        .device_memory = true, .host_staging = true, .sums_on_device = true};
#else
    static constexpr herring::intra_node_facts facts{.device_memory = true, .host_staging = true};
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"

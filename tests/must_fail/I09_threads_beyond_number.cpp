// herring: must not compile: more summing threads than there may be.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"

#ifndef HERRING_TWIN
constexpr herring::gpu::staging_tuning numbers{.sum_threads = 1000};
#else
constexpr herring::gpu::staging_tuning numbers{.sum_threads = 2};
#endif
void use(herring::world& ranks) {
    herring::gpu::basic_pcie_staging<herring::gpu::host_runtime, numbers> staged(ranks, 4096);
}

// herring: must not compile: servers of their own and devices, in a program that uses all that a reducer has, and serves: one
// error still.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/herring.hpp"
#include "herring/serve.hpp"
#include "herring/transport/inproc.hpp"

using element = float;
using on_devices = herring::gpu::basic_pcie_staging<herring::gpu::host_runtime>;
#ifndef HERRING_TWIN
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum,
                                   herring::placement::dedicated, on_devices>;
#else
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum,
                                   herring::placement::dedicated>;
#endif

void serve(herring::world& world, herring::layout const& tensors) {
    herring::serve<gradients>(world, tensors);
}

#include "train.hpp"

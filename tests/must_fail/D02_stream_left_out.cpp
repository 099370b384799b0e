// herring: must not compile: a tensor on a device is made ready without the stream that it is written in.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

using on_device = herring::gpu::basic_pcie_staging<herring::gpu::host_runtime>;
using gradients = herring::reducer<float, herring::transport::inproc, on_device>;

void step(gradients& reduce, gradients::stream stream) {
#ifndef HERRING_TWIN
    reduce.ready(0);
#else
    reduce.ready(0, stream);
#endif
    reduce.wait(stream);
}

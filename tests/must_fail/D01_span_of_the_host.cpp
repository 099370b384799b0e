// herring: must not compile: memory of the host where memory of a device is due.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <span>

using on_device = herring::gpu::basic_pcie_staging<herring::gpu::host_runtime>;
using gradients = herring::reducer<float, herring::transport::inproc, on_device>;

void step(gradients& reduce, std::span<float> mine, gradients::stream stream) {
#ifndef HERRING_TWIN
    reduce.ready(0, mine, stream);
#else
    reduce.ready(0, herring::device_span<float>(mine.data(), mine.size()), stream);
#endif
}

// herring: must not compile: all_reduce of memory of the host, where tensors lie on devices.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/nvlink.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <span>

using on_device = herring::gpu::basic_nvlink<herring::gpu::host_runtime>;
using gradients = herring::reducer<float, herring::transport::inproc, herring::update::sum, on_device>;

void step(gradients& reduce, std::span<float> mine, gradients::stream stream) {
#ifndef HERRING_TWIN
    reduce.all_reduce(mine, stream);
#else
    reduce.all_reduce(herring::device_span<float>(mine.data(), mine.size()), stream);
#endif
}

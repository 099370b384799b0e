// herring: must not compile: all_gather of device_spans, by a reducer whose tensors lie on devices.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_runtime.hpp"
#include "herring/collectives/all_gather.hpp"
#include "herring/gpu/pipeline/nvlink.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <span>

#ifndef HERRING_TWIN
using on_device = herring::gpu::basic_nvlink<herring::gpu::host_runtime>;
using gradients = herring::reducer<float, herring::transport::inproc, herring::update::sum, on_device>;
using numbers = herring::device_span<float>;
#else
using gradients = herring::reducer<float, herring::transport::inproc, herring::update::sum>;
using numbers = std::span<float>;
#endif

void gather(gradients& reduce, numbers mine, numbers all) { herring::all_gather(reduce, mine, all); }

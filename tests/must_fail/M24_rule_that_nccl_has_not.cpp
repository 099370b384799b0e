// herring: must not compile: a rule that NCCL does not have, where it combines the ranks of a node.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_nccl.hpp"
#include "herring/gpu/pipeline/nccl.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/rules.hpp"

#ifndef HERRING_TWIN
using rule = herring::update::logical_and;
#else
using rule = herring::update::max;
#endif
using node = herring::gpu::basic_nccl<herring::gpu::host_runtime, herring::gpu::host_nccl>;
using mine = herring::reducer<int, herring::transport::inproc, rule, node>::element_type;

mine use(mine x) { return x; }

// herring: must not compile: a rule that lifts, where devices sum.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/nvlink.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

struct squares : herring::update::average {
    static constexpr char const* name = "squares";
    static constexpr herring::update_facts facts{.takes_vectors = true, .lifts = true};
    template <class Acc> static Acc lift(Acc x) noexcept { return x * x; }
};

#ifndef HERRING_TWIN
using node = herring::gpu::basic_nvlink<herring::gpu::host_runtime>;
#else
using node = herring::gpu::basic_pcie_staging<herring::gpu::host_runtime>;
#endif
using mine = herring::reducer<float, herring::transport::inproc, squares, node>::element_type;

mine use(mine x) { return x; }

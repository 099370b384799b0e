// herring: must not compile: tensors on a device, a transport that reaches host memory only.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct on_device : herring::intra_node::none {
    using none::none;
    static constexpr bool device_memory = true;
};
struct staged : on_device {
    using on_device::on_device;
    static constexpr bool host_staging = true;
};

#ifndef HERRING_TWIN
using mine = pack<float, line, on_device>;
#else
using mine = pack<float, line, staged>;
#endif

#include "use.hpp"

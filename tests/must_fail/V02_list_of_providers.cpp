// herring: must not compile: several providers, of which libfabric would choose one.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/ofi.hpp"

struct own {
    static constexpr herring::provider_facts facts{};
    static constexpr char const* name = "ofi<own>";
#ifndef HERRING_TWIN
    static constexpr char const* libfabric = "efa,tcp;ofi_rxm";
#else
    static constexpr char const* libfabric = "tcp;ofi_rxm";
#endif
};
using mine = pack<float, herring::transport::ofi<own>>;

#include "use.hpp"

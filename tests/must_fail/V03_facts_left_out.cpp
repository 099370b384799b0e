// herring: must not compile: a provider that says nothing of itself but its names.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/ofi.hpp"

struct own {
    static constexpr char const* name = "ofi<own>";
    static constexpr char const* libfabric = "own";
#ifdef HERRING_TWIN
    static constexpr herring::provider_facts facts{};
#endif
};
using mine = pack<float, herring::transport::ofi<own>>;

#include "use.hpp"

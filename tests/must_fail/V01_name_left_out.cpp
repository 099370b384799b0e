// herring: must not compile: a provider without the name that ranks compare.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/ofi.hpp"

struct own {
#ifdef HERRING_TWIN
    static constexpr char const* name = "ofi<own>";
#endif
    static constexpr char const* libfabric = "own";
    static constexpr herring::provider_facts facts{};
};
using mine = pack<float, herring::transport::ofi<own>>;

#include "use.hpp"

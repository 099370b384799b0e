// herring: must not compile: a misspelt fact of a provider.
// SPDX-License-Identifier: Apache-2.0
//
// compiler: no non-static data member named .keeps_ordr|designator .keeps_ordr. does not refer to any field
#include "prelude.hpp"

#include "herring/transport/ofi.hpp"

struct own {
    static constexpr char const* name = "ofi<own>";
    static constexpr char const* libfabric = "own";
#ifndef HERRING_TWIN
    static constexpr herring::provider_facts facts{.keeps_ordr = true};
#else
    static constexpr herring::provider_facts facts{.keeps_order = true};
#endif
};
using mine = pack<float, herring::transport::ofi<own>>;

#include "use.hpp"

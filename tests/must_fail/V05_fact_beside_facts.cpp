// herring: must not compile: a fact that is a member of the tag, where nobody reads it.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/ofi.hpp"

struct own {
    static constexpr char const* name = "ofi<own>";
    static constexpr char const* libfabric = "own";
    static constexpr herring::provider_facts facts{};
#ifndef HERRING_TWIN
    static constexpr bool keeps_order = true;
#endif
};
using mine = pack<float, herring::transport::ofi<own>>;

#include "use.hpp"

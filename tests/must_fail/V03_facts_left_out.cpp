// herring: must not compile: a provider that says nothing of itself but its names.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/ofi.hpp"

#ifndef HERRING_TWIN
struct facts {};
#else
using facts = herring::provider::basic;
#endif
struct own : facts {
    static constexpr char const* name = "ofi<own>";
    static constexpr char const* libfabric = "own";
};
using mine = pack<float, herring::transport::ofi<own>>;

#include "use.hpp"

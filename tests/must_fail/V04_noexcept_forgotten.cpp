// herring: must not compile: a provider whose question about versions may throw.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/ofi.hpp"

#ifndef HERRING_TWIN
#define MAYBE
#else
#define MAYBE noexcept
#endif
struct own : herring::provider::basic {
    static constexpr char const* name = "ofi<own>";
    static constexpr char const* libfabric = "own";
    static constexpr char const* unusable(std::uint32_t version) MAYBE { return version == 0 ? "" : nullptr; }
};
using mine = pack<float, herring::transport::ofi<own>>;

#include "use.hpp"

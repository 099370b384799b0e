// herring: must not compile: a fusion policy without a name.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::fusion;
    static bool closes(herring::fusion_state const& state) noexcept { return state.bucket_tensors == 2; }
};
#else
struct own {
    using axis = herring::axes::fusion;
    static constexpr char const* name = "own";
    static bool closes(herring::fusion_state const& state) noexcept { return state.bucket_tensors == 2; }
};
#endif

using mine = pack<float, line, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;

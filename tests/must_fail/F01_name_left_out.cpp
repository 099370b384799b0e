// herring: must not compile: a fusion policy without a name.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::fusion;
#ifdef HERRING_TWIN
    static constexpr char const* name = "own";
#endif
    static bool closes(herring::fusion_state const& state) noexcept { return state.bucket_tensors == 2; }
};

using mine = pack<float, line, own>;

#include "use.hpp"

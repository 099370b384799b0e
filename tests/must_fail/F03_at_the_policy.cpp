// herring: must not compile: closes that is not static, seen at the policy itself.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::fusion;
    static constexpr char const* name = "own";
#ifndef HERRING_TWIN
    bool closes(herring::fusion_state const& state) noexcept { return state.bucket_tensors == 2; }
#else
    static bool closes(herring::fusion_state const& state) noexcept { return state.bucket_tensors == 2; }
#endif
};
static_assert(herring::checked_policy<own>);

// herring: must not compile: a lift that is not noexcept.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct squares : herring::update::average {
    static constexpr char const* name = "squares";
    static constexpr herring::update_facts facts{.takes_vectors = true, .lifts = true};
#ifndef HERRING_TWIN
    template <class Acc> static Acc lift(Acc x) { return x * x; }
#else
    template <class Acc> static Acc lift(Acc x) noexcept { return x * x; }
#endif
};

using mine = pack<float, line, squares>;

#include "use.hpp"

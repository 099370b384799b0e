// herring: must not compile: a lift that the facts do not announce.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::update::sum {
    static constexpr char const* name = "own";
    template <class Acc> static Acc lift(Acc x) noexcept { return x * x; }
#ifdef HERRING_TWIN
    static constexpr herring::update_facts facts{.takes_vectors = true, .lifts = true};
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"

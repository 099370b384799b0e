// herring: must not compile: a fact that is misspelt: the compiler's own error names it.
// SPDX-License-Identifier: Apache-2.0
// misspelt: backgroud
#include "prelude.hpp"

struct own {
    using axis = herring::axes::progress;
#ifndef HERRING_TWIN
    static constexpr herring::progress_facts facts{.backgroud = true};
#else
    static constexpr herring::progress_facts facts{.background = true};
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"

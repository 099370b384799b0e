// herring: must not compile: a policy whose axis is private.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

class quiet {
    using axis = herring::axes::trace;
};
class loud {
  public:
    using axis = herring::axes::trace;
    void operator()(herring::trace_event, unsigned) noexcept {}
};

#ifndef HERRING_TWIN
using mine = pack<float, line, quiet>;
#else
using mine = pack<float, line, loud>;
#endif

#include "use.hpp"

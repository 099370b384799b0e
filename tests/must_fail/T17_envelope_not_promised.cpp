// herring: must not compile: facts of one's own in a class derived from inproc, without its envelopes.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/inproc.hpp"

struct own : herring::transport::inproc {
    using inproc::inproc;
#ifndef HERRING_TWIN
    static constexpr herring::transport_facts facts{.abandons = true};
#else
    static constexpr herring::transport_facts facts{.abandons = true,
                                                    .envelope_bytes = inproc::facts.envelope_bytes};
#endif
};

using mine = pack<float, own>;

#include "use.hpp"

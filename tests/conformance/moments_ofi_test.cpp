// herring: all_moments over libfabric, between processes.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/moments_suite.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/transport/ofi.hpp"

#include "libfabric.hpp"

namespace moments_conformance_ofi {

using namespace herring::conformance;

constexpr herring::provider_facts with_small_chunks(herring::provider_facts facts) {
    facts.tuning = small_chunks;
    return facts;
}
struct small_ofi : herring::provider::tcp {
    static constexpr char const* name = "ofi<tcp>, small chunks";
    static constexpr herring::provider_facts facts = with_small_chunks(herring::provider::tcp::facts);
};

TEST_CASE("all_moments: over libfabric, from registered memory") {
    using both = herring::reducer<float, herring::transport::ofi<small_ofi>,
                                  herring::intra_node::shared_memory, herring::update::moments>;
    CHECK(text(moments_suite<both>(settings{.start = ranks_as::processes}, 4)) == "");
}

} // namespace moments_conformance_ofi

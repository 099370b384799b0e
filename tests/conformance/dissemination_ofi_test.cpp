// herring: tiny buckets that are forwarded from node to node, over libfabric, from registered memory.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/dissemination_suite.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/transport/ofi.hpp"

#include "libfabric.hpp"

using namespace herring::conformance;

namespace {

constexpr herring::provider_facts with_dear_messages_of(herring::provider_facts facts) {
    facts.tuning = disseminating;
    return facts;
}
struct dear_ofi : herring::provider::tcp {
    static constexpr char const* name = "ofi<tcp>, dear messages";
    static constexpr herring::provider_facts facts = with_dear_messages_of(herring::provider::tcp::facts);
};
using reducing =
    herring::reducer<float, herring::transport::ofi<dear_ofi>, herring::intra_node::shared_memory,
                     herring::update::sum, herring::fusion::per_tensor>;

} // namespace

TEST_CASE("dissemination: over libfabric") {
    CHECK(text(dissemination_suite<reducing>({.start = ranks_as::processes}, {4})) == "");
}

// herring: reduce_scatter, all_gather and broadcast over libfabric, between processes.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/blocks_suite.hpp"
#include "conformance/collectives_suite.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/transport/ofi.hpp"
#include "herring/update/rules.hpp"

#include "libfabric.hpp"

using namespace herring::conformance;
using herring::reducer;

namespace {

constexpr herring::provider_facts with_small_chunks(herring::provider_facts facts) {
    facts.tuning = small_chunks;
    return facts;
}
struct small_ofi : herring::provider::tcp {
    static constexpr char const* name = "ofi<tcp>, small chunks";
    static constexpr herring::provider_facts facts = with_small_chunks(herring::provider::tcp::facts);
};
using summing = reducer<float, herring::transport::ofi<small_ofi>, herring::intra_node::shared_memory,
                        herring::update::sum>;
settings const processes{.start = ranks_as::processes};

} // namespace

TEST_CASE("collectives: over libfabric, from registered memory") {
    CHECK(text(collectives_suite<summing>(processes, 4)) == "");
}
TEST_CASE("blocks: over libfabric, from registered memory") {
    CHECK(text(blocks_suite<summing>(processes, 4)) == "");
}
TEST_CASE("collectives: processes over libfabric in calls that differ are told") {
    CHECK(text(calls_that_differ<summing>({"a", "b", "b"}, processes, 7)) == "");
}

// herring: transport::ofi passes the suite of its axis, over each provider that needs no device.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/transport_suite.hpp"

#include "doctest/doctest.h"

#include "herring/transport/checked.hpp"
#include "herring/transport/ofi.hpp"

#include "libfabric.hpp"

using namespace herring::conformance;
namespace provider = herring::provider;
namespace transport = herring::transport;

namespace {

/// The same provider with nothing relied upon: naps instead of a descriptor, memory offered for registration.
struct cautious {
    static constexpr char const* name = "ofi<tcp>, cautious";
    static constexpr char const* libfabric = provider::tcp::libfabric;
    static constexpr herring::provider_facts facts{
        .closes_in_flight = provider::tcp::facts.closes_in_flight}; // or 1.17 ends the process
};

} // namespace

TEST_CASE("transport: ofi over tcp, between processes") {
    CHECK(text(transport_suite<transport::ofi<provider::tcp>>({.start = ranks_as::processes})) == "");
}

TEST_CASE("transport: ofi over tcp without a descriptor, between processes") {
    CHECK(text(transport_suite<transport::ofi<cautious>>({.start = ranks_as::processes})) == "");
}

TEST_CASE("transport: ofi over shm, between processes") {
    CHECK(text(transport_suite<transport::ofi<provider::shm>>({.start = ranks_as::processes})) == "");
}

TEST_CASE("transport: ofi with checked messages, over tcp and shm") {
    using transport::checked;
    CHECK(text(transport_suite<checked<transport::ofi<provider::tcp>>>({.start = ranks_as::processes})) ==
          "");
    CHECK(text(transport_suite<checked<transport::ofi<provider::shm>>>({.start = ranks_as::processes})) ==
          "");
}

// The last: what it leaves in memory, forked ranks would have too.
TEST_CASE("transport: ofi over tcp, between threads") {
    CHECK(text(transport_suite<transport::ofi<provider::tcp>>()) == "");
}

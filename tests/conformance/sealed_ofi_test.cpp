// herring: a sealed transport passes the suite over libfabric.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/transport_suite.hpp"

#include "doctest/doctest.h"

#include "herring/transport/ofi.hpp"
#include "herring/transport/sealed.hpp"

#include "libfabric.hpp"

using namespace herring::conformance;
namespace provider = herring::provider;
using herring::transport::ofi;
using herring::transport::sealed;

TEST_CASE("sealed: over ofi, by tcp and by shm") {
    CHECK(text(transport_suite<sealed<ofi<provider::tcp>>>({.start = ranks_as::processes})) == "");
    CHECK(text(transport_suite<sealed<ofi<provider::shm>>>({.start = ranks_as::processes})) == "");
}

// herring: tests of policy/names.hpp: what it declares is what the headers define, under the same names.
// SPDX-License-Identifier: Apache-2.0
// Own object: it names policies before the headers that define them.
#include "herring/policy/names.hpp"

namespace {
// Before the definitions are here.
using tcp_before = herring::transport::tcp;
using inproc_before = herring::transport::inproc;
using shared_before = herring::intra_node::shared_memory;
} // namespace

#include "gpu_model/host_runtime.hpp"
#include "herring/gpu/pipeline/nvlink.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <type_traits>

TEST_CASE("names: a policy that is declared before its header is the one that the header defines") {
    CHECK(std::is_same_v<tcp_before, herring::transport::basic_tcp<>>);
    CHECK(herring::transport_policy<tcp_before>);
    CHECK(herring::transport_policy<inproc_before>);
    CHECK(herring::intra_node_policy<shared_before>);
    CHECK(std::is_same_v<herring::reducer<float, tcp_before, shared_before, herring::update::sum>,
                         herring::reducer<float, herring::transport::tcp, herring::update::sum,
                                          herring::intra_node::shared_memory>>);
}

template <class Policy, class Axis>
concept declared_for = std::is_same_v<typename herring::declared_policy<Policy>::axis, Axis>;

TEST_CASE("names: an axis for each policy that has a header of its own, whatever its tuning") {
    namespace axes = herring::axes;
    CHECK(declared_for<tcp_before, axes::transport>);
    CHECK(declared_for<herring::transport::basic_tcp<herring::transport::tcp_tuning{.connections = 2}>,
                       axes::transport>);
    CHECK(declared_for<inproc_before, axes::transport>);
    CHECK(declared_for<herring::transport::efa, axes::transport>);
    CHECK(declared_for<herring::transport::sealed<tcp_before>, axes::transport>);
    CHECK(declared_for<shared_before, axes::intra_node>);
    CHECK(declared_for<herring::intra_node::pcie_staging, axes::intra_node>);
    CHECK(declared_for<herring::intra_node::nvlink, axes::intra_node>);
    CHECK(declared_for<herring::intra_node::nccl, axes::intra_node>);
    CHECK(declared_for<herring::optimizer::clipped<herring::optimizer::adamw>, axes::optimizer>);
    CHECK(declared_for<herring::update::moments, axes::update>);
    CHECK(declared_for<herring::placement::dedicated, axes::placement>);
    CHECK(!declared_for<herring::update::sum, axes::update>);
    CHECK(!declared_for<float, axes::update>);
}

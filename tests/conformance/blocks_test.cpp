// herring: all_to_all, gather and scatter over every transport, shape, type and size; calls that differ are told.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/blocks_suite.hpp"
#include "conformance/small_transports.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/progress/progress.hpp"
#include "herring/update/rules.hpp"

#define SANITIZED (HERRING_TEST_ASAN || HERRING_TEST_TSAN)

using namespace herring::conformance;
namespace update = herring::update;
using herring::reducer;
using shared = herring::intra_node::shared_memory;

namespace {

settings const processes{.start = ranks_as::processes};
constexpr std::size_t most_shapes = 8 / HERRING_TEST_PART;

} // namespace

TEST_CASE("blocks: on every shape of nodes") {
    CHECK(text(blocks_suite<reducer<float, small_inproc, update::sum>>({}, most_shapes)) == "");
    CHECK(text(blocks_suite<reducer<float, small_inproc, shared, update::sum>>({}, most_shapes)) == "");
}
TEST_CASE("blocks: between processes, over sockets and shared memory") {
    CHECK(text(blocks_suite<reducer<double, small_tcp, shared, update::sum>>(processes, most_shapes)) == "");
}
#if !SANITIZED
TEST_CASE("blocks: messages in any order, refused and late") {
    CHECK(text(blocks_suite<reducer<float, rough, shared, update::sum>>({}, most_shapes)) == "");
}
TEST_CASE("blocks: beside a thread that polls") {
    CHECK(text(blocks_suite<reducer<float, small_tcp, shared, update::sum, herring::progress::thread>>(
              processes, 3)) == "");
}
#endif

TEST_CASE("blocks: ranks in calls that differ are told, on every rank") {
    for (auto const& nodes : std::vector<std::vector<std::string>>{
             {"a", "b"}, {"a", "b", "c"}, {"a", "a"}, {"a", "a", "a"}, {"a", "b", "b"}})
        CHECK(text(blocks_that_differ<reducer<float, small_inproc, shared, update::sum>>(nodes)) == "");
}
TEST_CASE("blocks: processes in calls that differ are told, on every rank") {
    for (auto const& nodes : std::vector<std::vector<std::string>>{{"a", "b", "b"}, {"a", "a"}})
        CHECK(text(blocks_that_differ<reducer<float, small_tcp, shared, update::sum>>(
                  nodes, processes, SANITIZED ? 7 : 3)) == "");
}

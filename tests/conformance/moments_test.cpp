// herring: all_moments over every transport on the host, with and without shared memory, on every shape of nodes.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/moments_suite.hpp"
#include "conformance/small_transports.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/progress/progress.hpp"
#include "herring/transport/checked.hpp"

// Under a sanitizer those types and shapes that reach every route: what it looks for depends on sizes and routes.
#define SANITIZED (HERRING_TEST_ASAN || HERRING_TEST_TSAN)

namespace moments_conformance {

using namespace herring::conformance;
namespace transport = herring::transport;
namespace update = herring::update;
using herring::reducer;
using shared = herring::intra_node::shared_memory;

settings const processes{.start = ranks_as::processes};
constexpr std::size_t most_shapes = 10 / HERRING_TEST_PART;

TEST_CASE("all_moments: threads, each rank a node or with shared memory") {
    CHECK(text(moments_suite<reducer<float, small_inproc, update::moments>>({}, most_shapes)) == "");
    CHECK(text(moments_suite<reducer<float, small_inproc, shared, update::moments>>({}, most_shapes)) == "");
}
TEST_CASE("all_moments: between processes, over sockets and shared memory") {
    CHECK(text(moments_suite<reducer<float, small_tcp, shared, update::sample_moments>>(processes,
                                                                                        most_shapes)) == "");
}
#if !SANITIZED
TEST_CASE("all_moments: messages in any order, refused and late") {
    CHECK(text(moments_suite<reducer<float, rough, shared, update::moments>>({}, most_shapes)) == "");
}
#endif
#if !SANITIZED && !defined(HERRING_TESTS_QUICK)
TEST_CASE("all_moments: other numbers, other transports, a progress thread") {
    CHECK(text(moments_suite<reducer<double, small_tcp, update::moments>>(processes)) == "");
    CHECK(text(moments_suite<reducer<float, transport::checked<small_tcp>, shared, update::moments>>(
              processes, 3)) == "");
    CHECK(text(moments_suite<reducer<herring::bfloat16, rough, shared, update::sample_moments>>()) == "");
    CHECK(text(moments_suite<reducer<herring::float16, small_inproc, shared, update::moments,
                                     herring::progress::thread>>()) == "");
}
#endif

} // namespace moments_conformance

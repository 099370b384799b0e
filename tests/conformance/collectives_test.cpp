// herring: reduce_scatter, all_gather and broadcast over every transport, shape, type and size; calls that differ are told.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/collectives_suite.hpp"
#include "conformance/small_transports.hpp"

#include "brain_float.hpp"
#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/progress/progress.hpp"
#include "herring/update/rules.hpp"

// Under a sanitizer those types and shapes that reach every route: what it looks for depends on sizes and routes.
#define SANITIZED (HERRING_TEST_ASAN || HERRING_TEST_TSAN)

using namespace herring::conformance;
namespace transport = herring::transport;
namespace update = herring::update;
using herring::reducer;
using shared = herring::intra_node::shared_memory;

namespace {

settings const processes{.start = ranks_as::processes};
constexpr std::size_t most_shapes = 10 / HERRING_TEST_PART;
#if defined __FLT16_MANT_DIG__ // the session of herring::float16
using half = _Float16;
#else
using half = herring::float16;
#endif

} // namespace

TEST_CASE("collectives: numbers, on every shape of nodes") {
    CHECK(text(collectives_suite<reducer<float, small_inproc, update::sum>>({}, most_shapes)) == "");
    CHECK(text(collectives_suite<reducer<float, small_inproc, shared, update::sum>>({}, most_shapes)) == "");
#if !SANITIZED
    CHECK(text(collectives_suite<reducer<other_library::brain_float, small_inproc, shared, update::average>>(
              {}, most_shapes)) == ""); // the session of herring::bfloat16
#endif
}
#if !SANITIZED
TEST_CASE("collectives: structs, by a rule that does not commute") {
    CHECK(text(collectives_suite<reducer<triple, small_inproc, shared, spread_out>>({}, most_shapes)) == "");
    CHECK(text(collectives_suite<reducer<block, small_inproc, shared, spread_out, herring::progress::thread>>(
              {}, 3)) == "");
}
#endif

TEST_CASE("collectives: between processes, over sockets and shared memory") {
    CHECK(text(collectives_suite<reducer<float, small_tcp, shared, update::sum>>(processes, most_shapes)) ==
          "");
}

#if !SANITIZED
TEST_CASE("collectives: messages in any order, refused and late") {
    CHECK(text(collectives_suite<reducer<float, rough, shared, update::sum>>({}, most_shapes)) == "");
}
#endif

TEST_CASE("collectives: of two reducers at once") {
    for (auto const& nodes : std::vector<std::vector<std::string>>{{"a", "a", "b"}, {"a", "a"}})
        CHECK(text(run_case("two at once", static_cast<int>(nodes.size()), nodes, processes,
                            two_at_once<reducer<float, small_tcp, shared, update::sum>>)) == "");
}

TEST_CASE("collectives: ranks in calls that differ are told, on every rank") {
    for (auto const& nodes : std::vector<std::vector<std::string>>{
             {"a", "b"}, {"a", "b", "c"}, {"a", "a"}, {"a", "a", "a"}, {"a", "b", "b"}})
        CHECK(text(calls_that_differ<reducer<float, small_inproc, shared, update::sum>>(nodes)) == "");
}
TEST_CASE("collectives: processes in calls that differ are told, on every rank") {
    for (auto const& nodes : std::vector<std::vector<std::string>>{{"a", "b", "b"}, {"a", "a"}})
        CHECK(text(calls_that_differ<reducer<float, small_tcp, shared, update::sum>>(
                  nodes, processes, SANITIZED ? 7 : 1)) == "");
}

#if !SANITIZED && !defined(HERRING_TESTS_QUICK)
TEST_CASE("collectives: numbers of other types, over other transports") {
    CHECK(text(collectives_suite<reducer<int, small_inproc, shared, update::max>>()) == "");
    CHECK(text(collectives_suite<reducer<double, small_tcp, update::average>>(processes)) == "");
    CHECK(text(collectives_suite<reducer<half, small_tcp, shared, update::sum>>(processes)) == "");
    CHECK(text(collectives_suite<reducer<triple, small_tcp, shared, spread_out>>(processes)) == "");
    CHECK(text(collectives_suite<reducer<herring::bfloat16, rough, shared, update::average>>()) == "");
    CHECK(text(collectives_suite<
               reducer<float, small_inproc, shared, update::sum, herring::progress::thread>>()) == "");
}
#endif

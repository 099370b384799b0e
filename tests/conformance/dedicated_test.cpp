// herring: servers of their own, over many arrangements of ranks: the bits that workers get without them.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/dedicated_suite.hpp"
#include "conformance/small_transports.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/optimizer/nesterov.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/progress/progress.hpp"
#include "herring/training.hpp"
#include "herring/update/any.hpp"

#define SANITIZED (HERRING_TEST_ASAN || HERRING_TEST_TSAN)

using namespace herring::conformance;
namespace transport = herring::transport;
namespace update = herring::update;
namespace placement = herring::placement;
namespace optimizer = herring::optimizer;
using herring::reducer;
using shared = herring::intra_node::shared_memory;
using per_tensor = herring::fusion::per_tensor;

namespace {

settings const processes{.start = ranks_as::processes};
constexpr std::size_t most = 11 / HERRING_TEST_PART;

/// A program by a pack with servers of its own, and by the same without.
template <class Program, class Placement, class Element, class... Policies>
findings as_without(settings const& how = {}, std::size_t count = most) {
    return same_on_all<Program, reducer<Element, Policies...>, reducer<Element, Placement, Policies...>>(
        how, count);
}

} // namespace

TEST_CASE("dedicated: every call, each rank a node") {
    CHECK(text(as_without<all_calls, placement::dedicated, float, small_inproc, update::sum>()) == "");
}
TEST_CASE("dedicated: every call, where workers share nodes") {
    CHECK(text(as_without<all_calls, placement::dedicated, float, small_inproc, shared, update::average,
                          per_tensor>()) == "");
}
TEST_CASE("dedicated: every call by each of several rules") {
    CHECK(text(as_without<all_calls, placement::dedicated, float, small_inproc, shared,
                          update::any<update::max, update::sum, update::average>>({}, most / 2)) == "");
}
TEST_CASE("dedicated: every call, and moments, between processes") {
    CHECK(text(as_without<all_calls, placement::dedicated, float, small_tcp, shared, update::moments>(
              processes)) == "");
}
#if !SANITIZED
TEST_CASE("dedicated: other elements and rules, and whole tensors to a server") {
    CHECK(text(as_without<all_calls, placement::dedicated, triple, small_inproc, shared, spread_out>()) ==
          "");
    CHECK(text(as_without<all_calls, placement::dedicated, herring::bfloat16, small_inproc, shared,
                          update::average, herring::progress::thread, herring::sharding::whole_tensor>()) ==
          "");
}
TEST_CASE("dedicated: messages in any order, refused and late") {
    CHECK(text(as_without<all_calls, placement::dedicated, float, rough, shared, update::sum>(
              {}, most * 3 / 4)) == "");
}
#endif
TEST_CASE("optimal: every call, where workers serve too") {
    CHECK(text(as_without<all_calls, placement::optimal, float, small_inproc, shared, update::moments>()) ==
          "");
}

TEST_CASE("dedicated: every optimizer") {
    CHECK(text(as_without<training_steps, placement::dedicated, float, small_inproc, shared,
                          optimizer::adamw>()) == "");
    CHECK(
        text(as_without<training_steps, placement::dedicated, float, small_tcp, shared, optimizer::momentum>(
            processes, 4)) == "");
    CHECK(text(as_without<training_steps, placement::optimal, float, small_inproc, optimizer::nesterov>(
              {}, 8)) == "");
#if !SANITIZED
    CHECK(text(as_without<training_steps, placement::dedicated, double, small_inproc, optimizer::sgd,
                          per_tensor, herring::progress::thread>({}, most * 3 / 4)) == "");
#endif
}

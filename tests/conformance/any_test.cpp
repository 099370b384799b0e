// herring: update::any: one reducer gives by each rule of its list, call by call, the bits of that rule, on every route.
// SPDX-License-Identifier: Apache-2.0
#include "rules_suite.hpp"

#include "conformance/small_transports.hpp"

#include "herring/launch.hpp"

#include "doctest/doctest.h"

using namespace rules;
using herring::conformance::small_inproc;

namespace {

template <class T, class... Rules> void every_shape() {
    for (names const& nodes :
         {names{"a", "a", "a", "a"}, names{"a", "a", "b", "b"}, names{"a", "b", "c", "d"}, names{"a", "a"},
          names{"a", "b", "b"}, names{"a"}}) {
        launch_options options;
        options.nodes = nodes;
        std::string text;
        for (auto const& node : nodes) text += node;
        CAPTURE(text);
        CHECK_NOTHROW(launch_threads(static_cast<int>(nodes.size()),
                                     listed<T, Rules...>::template work<small_inproc, shared>, options));
    }
}
template <class T> void of_numbers() {
    every_shape<T, update::sum, update::average, update::min, update::max, update::product>();
}
template <class T> void of_integers() {
    every_shape<T, update::max, update::product, update::logical_or, update::sum, update::min,
                update::logical_and>();
}

} // namespace

TEST_CASE("any: float and double") {
    of_numbers<float>();
    of_numbers<double>();
}
TEST_CASE("any: 16 bits") {
    of_numbers<bfloat16>();
    of_numbers<float16>();
}
TEST_CASE("any: integers") {
    of_integers<std::int32_t>();
    of_integers<std::uint32_t>();
    of_integers<std::int64_t>();
    of_integers<std::uint64_t>();
}

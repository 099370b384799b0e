// herring: tests of plan/memory_map.hpp: every range is covered once, and cut where the tensor or its group changes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/memory_map.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <vector>

namespace tensor_runs_test {

using herring::detail::tensor_runs;

struct piece {
    std::size_t begin, end, tensor, group;
    bool operator==(piece const&) const = default;
};
std::vector<piece> pieces(tensor_runs const& runs, std::size_t begin, std::size_t end) {
    std::vector<piece> found;
    runs.for_each(begin, end, [&](std::size_t from, std::size_t to, tensor_runs::run const& one) {
        found.push_back({from, to, one.tensor, one.group});
    });
    return found;
}

/// Tensors of 10, 0, 20, 16 and 5 elements in lines of 16: at 0, 16, 16, 48 and 64.
herring::plan placed() {
    herring::plan made;
    made.tensors = {{0, 10, 0}, {16, 0, 0}, {16, 20, 0}, {48, 16, 0}, {64, 5, 0}};
    return made;
}
herring::layout layout_of(std::vector<std::size_t> const& groups) {
    std::vector<herring::tensor_spec> tensors;
    std::size_t const sizes[] = {10, 0, 20, 16, 5};
    for (std::size_t i = 0; i < 5; ++i) tensors.push_back({"", sizes[i], groups[i]});
    return herring::layout(tensors);
}

} // namespace tensor_runs_test

using namespace tensor_runs_test;

TEST_CASE("tensor_runs: tensors with elements, each with the gap behind it") {
    tensor_runs const runs(placed(), layout_of({0, 0, 0, 0, 0}), tensor_runs::of::tensors);
    CHECK(pieces(runs, 0, 80) ==
          std::vector<piece>{{0, 16, 0, 0}, {16, 48, 2, 0}, {48, 64, 3, 0}, {64, 80, 4, 0}});
    CHECK(pieces(runs, 12, 20) == std::vector<piece>{{12, 16, 0, 0}, {16, 20, 2, 0}});
    CHECK(pieces(runs, 20, 30) == std::vector<piece>{{20, 30, 2, 0}});
    CHECK(pieces(runs, 48, 64) == std::vector<piece>{{48, 64, 3, 0}});
    CHECK(pieces(runs, 30, 30).empty());
}

TEST_CASE("tensor_runs: neighbours of one group are one run, and an empty tensor parts nobody") {
    CHECK(pieces(tensor_runs(placed(), layout_of({0, 0, 0, 0, 0}), tensor_runs::of::groups), 3, 70) ==
          std::vector<piece>{{3, 70, 0, 0}});
    tensor_runs const runs(placed(), layout_of({1, 2, 1, 0, 1}), tensor_runs::of::groups);
    CHECK(pieces(runs, 0, 80) == std::vector<piece>{{0, 48, 0, 1}, {48, 64, 3, 0}, {64, 80, 4, 1}});
}

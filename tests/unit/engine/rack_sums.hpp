// herring: worlds of racks whose sums depend on their order, and what is due there to the bit.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_UNIT_ENGINE_RACK_SUMS_HPP
#define HERRING_TESTS_UNIT_ENGINE_RACK_SUMS_HPP

#include "unit/engine/mesh.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rack_sums {

/// Ranks of each node, and its rack.
struct shape {
    std::vector<int> nodes, racks;
};
/// Racks of one node, uneven ones, and such whose nodes do not follow each other.
inline shape const shapes[] = {{{1, 1, 1, 1}, {0, 0, 1, 1}},
                               {{1, 2, 1, 3, 1}, {0, 1, 0, 1, 2}},
                               {{2, 2, 2, 2}, {0, 1, 1, 0}},
                               {{1, 1, 1}, {0, 1, 2}},
                               {{3, 1, 1, 1}, {0, 1, 1, 1}}};

/// Sums of three such numbers and more round differently in other orders.
inline float value(int rank, std::uint64_t execution, std::size_t i) {
    return static_cast<float>((static_cast<std::size_t>(rank) * 7919 + execution * 104'729 + i * 31) %
                              100'003) *
           (i % 3 == 0 ? 0.001f : 1000.0f);
}

/// The sum, by scalars: ranks of a node, nodes of a rack, racks, each in the order of lowest ranks.
inline float due(std::vector<std::vector<std::vector<int>>> const& racks, std::uint64_t execution,
                 std::size_t i, auto const& given) {
    float all = 0;
    for (std::size_t r = 0; r < racks.size(); ++r) {
        float of_rack = 0;
        for (std::size_t n = 0; n < racks[r].size(); ++n) {
            float of_node = given(racks[r][n][0], execution, i);
            for (std::size_t l = 1; l < racks[r][n].size(); ++l)
                of_node += given(racks[r][n][l], execution, i);
            of_rack = n == 0 ? of_node : of_rack + of_node;
        }
        all = r == 0 ? of_rack : all + of_rack;
    }
    return all;
}

/// The ranks of racks' nodes, from the names alone: world_of deals ranks to nodes in turns.
inline std::vector<std::vector<std::vector<int>>> ranks_of(shape const& on) {
    std::vector<int> left = on.nodes;
    std::vector<std::vector<int>> nodes(left.size());
    int ranks = 0, all = 0;
    for (int const n : left) all += n;
    for (std::size_t n = 0; ranks < all; n = (n + 1) % left.size())
        if (left[n]-- > 0) nodes[n].push_back(ranks++);
    std::vector<std::vector<std::vector<int>>> racks(left.size());
    for (std::size_t n = 0; n < nodes.size(); ++n)
        racks[static_cast<std::size_t>(on.racks[n])].push_back(nodes[n]);
    while (racks.back().empty()) racks.pop_back();
    return racks;
}

/// Runs buckets over a network that refuses and reorders, and compares every bit.
template <class T>
void sums(shape const& on, std::vector<std::size_t> const& tensors, herring::exchange_tuning const& tuning,
          std::uint32_t seed) {
    mesh::world_of<T> all(on.nodes, tensors, tuning, seed, seed % 2 == 0 ? 30 : 0, on.racks);
    auto const racks = ranks_of(on);
    auto const given = [](int rank, std::uint64_t execution, std::size_t i) {
        return T(value(rank, execution, i));
    };
    CHECK(all.run(mesh::sequence(all.net, tensors.size(), 12), given,
                  [&](std::uint64_t execution, std::size_t i) {
                      return T(due(racks, execution, i, [&](int rank, std::uint64_t e, std::size_t at) {
                          return static_cast<float>(given(rank, e, at));
                      }));
                  }));
}

} // namespace rack_sums

#endif // HERRING_TESTS_UNIT_ENGINE_RACK_SUMS_HPP

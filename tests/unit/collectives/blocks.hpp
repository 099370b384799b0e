// herring: what the tests of all_to_all, gather and scatter share: elements that tell sender, receiver and place.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_UNIT_COLLECTIVES_BLOCKS_HPP
#define HERRING_TESTS_UNIT_COLLECTIVES_BLOCKS_HPP

#include "unit/collectives/collectives.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace collectives {

inline std::uint32_t element_of(int from, int to, std::size_t i) {
    return static_cast<std::uint32_t>(from) << 28 | static_cast<std::uint32_t>(to) << 24 |
           static_cast<std::uint32_t>(i & 0xffffff);
}
inline void append_block(std::vector<std::uint32_t>& all, int from, int to, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) all.push_back(element_of(from, to, i));
}
// The first sizes of blocks: none, one message, one piece, several of each.
inline std::vector<std::size_t> const block_sizes{0, 1, 17, 1000, 20'000, 150'001};

} // namespace collectives

#endif // HERRING_TESTS_UNIT_COLLECTIVES_BLOCKS_HPP

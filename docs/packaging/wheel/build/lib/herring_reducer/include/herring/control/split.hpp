// herring: which ranks of a world are in a group of `world::split`, and in which order. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SPLIT_HPP
#define HERRING_CONTROL_SPLIT_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// The arguments of a rank's `world::split`, and, in the result, the number of the group that it is in.
struct split_choice {
    int colour = -1; ///< negative: no group
    int key = 0;
    std::uint64_t group = 0; ///< 0: in none

    static constexpr std::size_t bytes = 8, result_bytes = 16;

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        wire::append<std::uint32_t>(out, static_cast<std::uint32_t>(colour));
        wire::append<std::uint32_t>(out, static_cast<std::uint32_t>(key));
        return out;
    }
    HERRING_SETUP byte_buffer write_result() const {
        byte_buffer out = write();
        wire::append<std::uint64_t>(out, group);
        return out;
    }
    /// Reads what `write` or `write_result` wrote. False: the bytes are something else.
    HERRING_SETUP bool read(std::span<std::byte const> from) noexcept {
        wire::reader in{from};
        colour = static_cast<int>(in.number<std::uint32_t>());
        key = static_cast<int>(in.number<std::uint32_t>());
        if (from.size() == result_bytes) group = in.number<std::uint64_t>();
        return in.done();
    }
};

/// Returns the groups in ascending order of their colours, each as ranks of the world that is split, in order
/// of their keys, then of the ranks themselves.
///
/// Shape:   `of[rank]`.
HERRING_SETUP inline std::vector<std::vector<int>> groups_of(std::span<split_choice const> of) {
    std::vector<int> order;
    for (std::size_t r = 0; r < of.size(); ++r)
        if (of[r].colour >= 0) order.push_back(static_cast<int>(r));
    auto const choice = [&](int rank) -> split_choice const& { return of[static_cast<std::size_t>(rank)]; };
    std::sort(order.begin(), order.end(), [&](int a, int b) {
        split_choice const &x = choice(a), &y = choice(b);
        if (x.colour != y.colour) return x.colour < y.colour;
        return x.key != y.key ? x.key < y.key : a < b;
    });
    std::vector<std::vector<int>> groups;
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || choice(order[i]).colour != choice(order[i - 1]).colour) groups.emplace_back();
        groups.back().push_back(order[i]);
    }
    return groups;
}

/// Returns the place of `rank` in the list; −1: it is not there.
HERRING_SETUP inline int place_in(std::span<int const> ranks, int rank) noexcept {
    auto const found = std::find(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SPLIT_HPP

// herring: a contiguous range of a buffer, and the range that each rank owns.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_RANGE_HPP
#define HERRING_MODEL_RANGE_HPP

#include "herring/base/config.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE {

/// Elements [offset, offset + elements) of a buffer.
struct range {
    std::size_t offset = 0;
    std::size_t elements = 0;

    constexpr std::size_t end() const noexcept { return offset + elements; }
    friend constexpr bool operator==(range const&, range const&) = default;
};

/// Returns the common part of two ranges; an empty one begins where the later of the two begins.
constexpr range intersection(range const& a, range const& b) noexcept {
    std::size_t const from = a.offset > b.offset ? a.offset : b.offset;
    std::size_t const to = a.end() < b.end() ? a.end() : b.end();
    return {from, to > from ? to - from : 0};
}

/// Returns the range of a buffer that a rank owns: its input of an all-gather, its result of a
/// reduce-scatter.
///
/// Shape: n elements, R ranks → R ranges in the order of ranks that cover the buffer; the first n mod R have
///        one element more.
/// Cost:  O(1).
constexpr range owned_range(std::size_t elements, int rank, int ranks) noexcept {
    auto const which = static_cast<std::size_t>(rank), count = static_cast<std::size_t>(ranks);
    std::size_t const each = elements / count, more = elements % count;
    return {which * each + (which < more ? which : more), each + (which < more ? 1u : 0u)};
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_RANGE_HPP

// herring: the part format: the bytes that elements take in the part of a node, and how a sum reads them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_PART_FORMAT_HPP
#define HERRING_MODEL_PART_FORMAT_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE {

/// How a sum reads the elements of a part.
enum class part_kind : std::uint8_t {
    stored,     ///< elements as stored: a contribution, which a rule that lifts has yet to lift
    accumulator ///< sums of contributions, in the type that elements are summed in
};

/// The format of a node's part of a bucket. An operation fixes it by the types of elements and the topology,
/// so that both ends of a message, the plan of slots and the sum agree.
struct part_format {
    std::size_t element_bytes = 0; ///< of an element in a message
    part_kind kind = part_kind::stored;

    HERRING_ALWAYS_INLINE constexpr std::size_t bytes(std::size_t n) const noexcept {
        return n * element_bytes;
    }

    /// The format of the part of a node with so many contributions, if this is that of a node with one:
    /// several are sent as their sum.
    constexpr part_format summed(int contributions) const noexcept {
        return {element_bytes, contributions > 1 ? part_kind::accumulator : kind};
    }
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_PART_FORMAT_HPP

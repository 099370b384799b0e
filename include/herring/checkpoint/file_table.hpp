// herring: the table behind the data of a checkpoint's file: the ranges of tensors that lie there, and checksums. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_FILE_TABLE_HPP
#define HERRING_CHECKPOINT_FILE_TABLE_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail::checkpoints {

/// Elements [offset, offset + elements) of a tensor.
struct tensor_range {
    std::uint64_t tensor = 0, offset = 0, elements = 0;

    friend auto operator<=>(tensor_range const&, tensor_range const&) = default;
};

/// Of data that are the weights of all ranges, one after the other, then the first number of the state of all, and so on; or of
/// plain bytes, without ranges.
struct file_table {
    static constexpr std::size_t block_bytes = 65'536; ///< of the data: what has one checksum

    std::vector<tensor_range> ranges;
    std::vector<std::uint32_t> blocks; ///< CRC-32C of each block; the last may be shorter

    friend bool operator==(file_table const&, file_table const&) = default;
};

/// Shape: 16 + 24 · ranges + 4 · blocks bytes, little-endian.
HERRING_SEPARABLE byte_buffer write_table(file_table const& from);
/// False: it is no table.
///
/// Memory: O(bytes.size()).
HERRING_SEPARABLE bool read_table(std::span<std::byte const> bytes, file_table& to);

/// Whether the ranges, in any order, are all elements of the tensors, each of them once. They come back sorted.
///
/// Cost: O(ranges · log ranges). No sum overflows, whatever the ranges are.
HERRING_SEPARABLE bool cover_once(std::vector<tensor_range>& ranges, std::span<std::uint64_t const> elements);

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/file_table_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_FILE_TABLE_HPP

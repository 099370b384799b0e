// herring: the files of a checkpoint: data, checksums and a table of tensor ranges; writing and reading.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_FILE_HPP
#define HERRING_CHECKPOINT_FILE_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/text.hpp"
#include "herring/checkpoint/folder.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/machine/descriptor.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
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

/// Memory:   a block, and 4 bytes for each.
/// Lifetime: refers to the folder.
/// Errors:   of the folder. What was written stays: who knows that nobody needs it removes it.
class file_writer {
  public:
    HERRING_SEPARABLE file_writer(folder const& where, std::string name);

    HERRING_SEPARABLE void append(std::span<std::byte const> bytes);
    /// Writes the table: all is written, and may not be durable yet.
    HERRING_SEPARABLE void seal(std::vector<tensor_range> ranges);
    /// Returns when all of it is durable, but for its name. From any thread.
    void sync() const { where_.sync(file_, entry_.name); }
    /// Once it is sealed.
    file_entry const& entry() const noexcept { return entry_; }
    /// Both.
    HERRING_SEPARABLE file_entry finish(std::vector<tensor_range> ranges);

  private:
    void write_block();

    folder const& where_;
    file_entry entry_;
    descriptor file_;
    fixed_array<std::byte> block_;
    std::size_t filled_ = 0; // of the block
    std::uint32_t crc_ = 0;  // of what fills it
    file_table table_;
};

/// Writes the weights and the state of ranges.
HERRING_SEPARABLE file_entry write_part(folder const& where, std::string name,
                                        std::span<tensor_memory const> ranges, state_shape const& shape);

/// Writes plain bytes.
HERRING_SEPARABLE file_entry write_bytes(folder const& where, std::string name,
                                         std::span<std::byte const> bytes);

/// Memory:   a block, and the table.
/// Lifetime: refers to the folder and the entry.
/// Errors:   `corrupted` names the file and where its bytes are others than those that were written.
class file_reader {
  public:
    /// Reads the table. What the entry says is held against the file before memory is asked for.
    HERRING_SEPARABLE file_reader(folder const& where, file_entry const& entry);

    file_table const& table() const noexcept { return table_; }
    /// Data [at, at + into.size()), which the file must have. Cheap where it follows what was read before.
    HERRING_SEPARABLE void read(std::uint64_t at, std::span<std::byte> into);

    [[noreturn]] HERRING_SEPARABLE void fail(std::initializer_list<text_part> text) const;

  private:
    static constexpr std::uint64_t none = ~std::uint64_t{0};

    folder const& where_;
    file_entry const& entry_;
    descriptor file_;
    file_table table_;
    fixed_array<std::byte> block_;
    std::uint64_t in_block_ = none; // the number of the block that is there
};

/// All of a file of plain bytes.
HERRING_SEPARABLE std::vector<std::byte> read_bytes(folder const& where, file_entry const& entry);

/// Sees that the tables of the parts are those of weights and state of the tensors, each element in one part.
///
/// Memory: 24 bytes a range, 48 at most at once.
HERRING_SEPARABLE void check_parts(folder const& where, std::span<file_entry const> parts,
                                   std::span<std::uint64_t const> tensor_elements, state_shape const& shape);

/// Fills the memory of arrays [from_array, end_array) from a part, as far as the part has it. After `check_parts`, and for all parts,
/// all of it is filled.
///
/// Shape: `to`: sorted by tensor and offset, without overlap.
HERRING_SEPARABLE void read_part(folder const& where, file_entry const& part,
                                 std::span<tensor_memory const> to, state_shape const& shape,
                                 std::size_t from_array, std::size_t end_array);

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/file_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_FILE_HPP

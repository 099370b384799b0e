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

/// The table behind the data of a file. Layout of the data: the weights of all ranges in order, then the
/// first number of state of all ranges, and so on; or plain bytes, without ranges.
struct file_table {
    static constexpr std::size_t block_bytes = 65'536; ///< data with one checksum

    std::vector<tensor_range> ranges;
    std::vector<std::uint32_t> blocks; ///< CRC-32C of each block; the last may be shorter

    friend bool operator==(file_table const&, file_table const&) = default;
};

/// Encodes a table.
///
/// Shape: 16 + 24 · ranges + 4 · blocks bytes, little-endian.
HERRING_SEPARABLE byte_buffer write_table(file_table const& from);
/// Decodes a table. Returns false if the bytes are no table.
///
/// Memory: O(bytes.size()).
HERRING_SEPARABLE bool read_table(std::span<std::byte const> bytes, file_table& to);

/// True if the ranges, in any order, cover each element of the tensors once. Sorts the ranges.
///
/// Cost: O(ranges · log ranges). No sum overflows, whatever the ranges are.
HERRING_SEPARABLE bool cover_once(std::vector<tensor_range>& ranges, std::span<std::uint64_t const> elements);

/// Writes one file: data in pieces of any size, their checksums, and the table behind them.
///
/// Memory:   a block, and 4 bytes for each block of the file.
/// Lifetime: refers to the folder.
/// Errors:   those of the folder. The file stays there; the caller removes it.
class file_writer {
  public:
    HERRING_SEPARABLE file_writer(folder const& where, std::string name);

    HERRING_SEPARABLE void append(std::span<std::byte const> bytes);
    /// Writes the rest of the data and the table. The file may not be durable yet.
    HERRING_SEPARABLE void seal(std::vector<tensor_range> ranges);
    /// Returns when the file is durable, except for its name. From any thread.
    void sync() const { where_.sync(file_, entry_.name); }
    /// The entry for the manifest; after `seal`.
    file_entry const& entry() const noexcept { return entry_; }
    /// Seals and syncs the file.
    HERRING_SEPARABLE file_entry finish(std::vector<tensor_range> ranges);

  private:
    void write_block();

    folder const& where_;
    file_entry entry_;
    descriptor file_;
    fixed_array<std::byte> block_;
    std::size_t filled_ = 0; // bytes in the block
    std::uint32_t crc_ = 0;  // of these bytes
    file_table table_;
};

/// Writes a file with the weights and the state of ranges.
HERRING_SEPARABLE file_entry write_part(folder const& where, std::string name,
                                        std::span<tensor_memory const> ranges, state_shape const& shape);

/// Writes a file of plain bytes.
HERRING_SEPARABLE file_entry write_bytes(folder const& where, std::string name,
                                         std::span<std::byte const> bytes);

/// Reads one file. Returns no byte before its checksum was compared.
///
/// Memory:   a block, and the table.
/// Lifetime: refers to the folder and the entry.
/// Errors:   `corrupted` names the file and the place of bytes that differ from those that were written.
class file_reader {
  public:
    /// Reads the table. Compares the entry with the file's size before it allocates memory.
    HERRING_SEPARABLE file_reader(folder const& where, file_entry const& entry);

    file_table const& table() const noexcept { return table_; }
    /// Reads data [at, at + into.size()), which the file must have. Successive ranges read each block once.
    HERRING_SEPARABLE void read(std::uint64_t at, std::span<std::byte> into);

    [[noreturn]] HERRING_SEPARABLE void fail(std::initializer_list<text_part> text) const;

  private:
    static constexpr std::uint64_t none = ~std::uint64_t{0};

    folder const& where_;
    file_entry const& entry_;
    descriptor file_;
    file_table table_;
    fixed_array<std::byte> block_;
    std::uint64_t in_block_ = none; // number of the block in `block_`
};

/// Reads a file of plain bytes.
HERRING_SEPARABLE std::vector<std::byte> read_bytes(folder const& where, file_entry const& entry);

/// Checks that the tables of the parts fit the sizes of their data, and cover each element of the tensors
/// once.
///
/// Memory: 24 bytes a range, 48 at the peak.
HERRING_SEPARABLE void check_parts(folder const& where, std::span<file_entry const> parts,
                                   std::span<std::uint64_t const> tensor_elements, state_shape const& shape);

/// Fills the memory of arrays [from_array, end_array) with the ranges of one part. After `check_parts`, calls
/// for all parts fill all memory.
///
/// Shape: `to` is sorted by tensor and offset, without overlap.
HERRING_SEPARABLE void read_part(folder const& where, file_entry const& part,
                                 std::span<tensor_memory const> to, state_shape const& shape,
                                 std::size_t from_array, std::size_t end_array);

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/file_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_FILE_HPP

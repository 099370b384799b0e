// herring: reads a file of a checkpoint. No byte comes out of it whose checksum was not compared.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_FILE_READER_HPP
#define HERRING_CHECKPOINT_FILE_READER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/text.hpp"
#include "herring/checkpoint/file_table.hpp"
#include "herring/checkpoint/folder.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/machine/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail::checkpoints {

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
#include "herring/checkpoint/file_reader_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_FILE_READER_HPP

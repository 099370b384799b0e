// herring: writes one file of a checkpoint: data in any pieces, their checksums, and the table behind them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_FILE_WRITER_HPP
#define HERRING_CHECKPOINT_FILE_WRITER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/checkpoint/file_table.hpp"
#include "herring/checkpoint/folder.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/machine/descriptor.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::checkpoints {

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

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/file_writer_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_FILE_WRITER_HPP

// herring: the manifest of a checkpoint: the saved values and their files, as text. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_MANIFEST_HPP
#define HERRING_CHECKPOINT_MANIFEST_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE::detail::checkpoints {

/// A file beside the manifest: data, and behind them the table of that file (checkpoint/file.hpp).
struct file_entry {
    std::string name;
    std::uint64_t data_bytes = 0;
    std::uint64_t table_bytes = 0;
    std::uint32_t table_crc = 0; ///< CRC-32C of the table, which has the checksums of the data

    friend bool operator==(file_entry const&, file_entry const&) = default;
};

/// Named bytes in a separate file. A reader ignores sections that it does not know.
struct section {
    std::string name;
    file_entry file;

    friend bool operator==(section const&, section const&) = default;
};

struct saved_tensor {
    std::string name;
    std::uint64_t elements = 0;
    std::uint64_t group = 0; ///< place in `manifest::groups`

    friend bool operator==(saved_tensor const&, saved_tensor const&) = default;
};

/// The section of the program's own bytes, and the name of the manifest's file before it is in force.
inline constexpr std::string_view user_section = "user", manifest_draft = "manifest";

/// The contents of a checkpoint, independent of ranks, nodes and chunks: each part has a table of its ranges
/// of tensors.
struct manifest {
    static constexpr char const* name = "herring.manifest"; ///< of its file

    std::uint64_t generation = 0; ///< one more with each save into the folder
    std::uint64_t steps = 0;      ///< steps taken
    std::string element{};        ///< of weights and state
    std::string optimizer{};
    std::uint64_t states = 0;                  ///< numbers of the optimizer's state for each weight
    std::vector<std::vector<double>> groups{}; ///< hyper values of each group of tensors
    std::vector<saved_tensor> tensors{};
    std::vector<file_entry> parts{}; ///< weights and state
    std::vector<section> sections{};

    friend bool operator==(manifest const&, manifest const&) = default;
};

/// Writes a manifest: one line an entry, texts at the end of a line, with control bytes and backslashes as
/// `\xHH`; the last line has the CRC-32C of the lines before it. docs/design/checkpoint-format.md has it.
HERRING_SEPARABLE std::string write_manifest(manifest const& from);

/// Reads the text of `write_manifest`, and accepts no other spelling. Returns the defect as text, or nullptr.
///
/// Memory: O(text.size()).
HERRING_SEPARABLE char const* read_manifest(std::string_view text, manifest& to);

/// Returns the name of a file: "herring-<steps>-<generation>.<what>"; `what` is a section's name, or a rank's
/// number.
HERRING_SEPARABLE std::string file_name(std::uint64_t steps, std::uint64_t generation, std::string_view what);

/// True if `name` has the form of `file_name`, for any `what` of lower-case letters and digits. Sets the
/// generation.
HERRING_SEPARABLE bool is_file_name(std::string_view name, std::uint64_t& generation) noexcept;

/// True if `name` is exactly the name of a file that a save of this version writes, other than the manifest
/// in force. Only such files are removed. Sets the generation.
HERRING_SEPARABLE bool is_saved_file(std::string_view name, std::uint64_t& generation) noexcept;

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/manifest_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_MANIFEST_HPP

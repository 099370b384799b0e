// herring: the manifest of a checkpoint: text that says what was saved, and in which files. Pure.
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

/// A file beside the manifest: data, and behind them the table of that file (checkpoint/file_table.hpp).
struct file_entry {
    std::string name;
    std::uint64_t data_bytes = 0;
    std::uint64_t table_bytes = 0;
    std::uint32_t table_crc = 0; ///< of the table, which has those of the data

    friend bool operator==(file_entry const&, file_entry const&) = default;
};

/// Bytes with a name, in a file of their own. A reader leaves out those that it does not know.
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

/// Names of sections, and of the manifest's file before it is in force, that others than those of replicas have.
inline constexpr std::string_view user_section = "user", manifest_draft = "manifest";

/// What a checkpoint has. Nothing in it depends on ranks, nodes or chunks: each part says which ranges of which tensors it has.
struct manifest {
    static constexpr char const* name = "herring.manifest"; ///< of its file

    std::uint64_t generation = 0; ///< one more with each save into the folder
    std::uint64_t steps = 0;      ///< that were taken
    std::string element{};        ///< of weights and state
    std::string optimizer{};
    std::uint64_t states = 0;                  ///< numbers that it keeps of each weight
    std::vector<std::vector<double>> groups{}; ///< hyper values of each group of tensors
    std::vector<saved_tensor> tensors{};
    std::vector<file_entry> parts{}; ///< weights and state
    std::vector<section> sections{};

    friend bool operator==(manifest const&, manifest const&) = default;
};

/// One line an entry, texts at the end of a line, with control bytes and backslashes as \xHH; the last line has the CRC-32C of
/// those before it. docs/checkpoints.md has the format.
HERRING_SEPARABLE std::string write_manifest(manifest const& from);

/// Reads what `write_manifest` wrote, to the byte. Returns what is wrong, or nullptr.
///
/// Memory: O(text.size()).
HERRING_SEPARABLE char const* read_manifest(std::string_view text, manifest& to);

/// The file of a step: "herring-<steps>-<generation>.<what>", with a name of a section, or the number of a rank.
HERRING_SEPARABLE std::string file_name(std::uint64_t steps, std::uint64_t generation, std::string_view what);

/// Whether `name` is one that `file_name` makes of some section, also one that this version does not know; its generation then.
HERRING_SEPARABLE bool is_file_name(std::string_view name, std::uint64_t& generation) noexcept;

/// Whether it is, to the letter, one of a file that a save of this version writes, beside the manifest in force: no other is removed.
HERRING_SEPARABLE bool is_saved_file(std::string_view name, std::uint64_t& generation) noexcept;

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/manifest_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_MANIFEST_HPP

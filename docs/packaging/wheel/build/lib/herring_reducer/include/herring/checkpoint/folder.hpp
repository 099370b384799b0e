// herring: the folder of a checkpoint: creates, syncs, publishes, reads and removes files.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_FOLDER_HPP
#define HERRING_CHECKPOINT_FOLDER_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/machine/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE::detail::checkpoints {

/// An existing folder, as one rank sees it. A file is durable once `sync` has returned for the file, and then
/// for the folder.
///
/// Errors: have this rank and its operation; they name the file, the folder and the error of the system.
///         `no_resources`: a full disk, a quota, a limit of the process. `corrupted`: no checkpoint, or a
///         damaged one. Else `bad_argument`.
class folder {
  public:
    HERRING_SEPARABLE folder(std::string path, int rank, char const* operation);

    /// Creates a file that must not exist. `create` and `remove_created` are called from one thread at a
    /// time.
    HERRING_SEPARABLE descriptor create(std::string const& name) const;
    HERRING_SEPARABLE void write(descriptor const& file, std::string const& name,
                                 std::span<std::byte const> bytes) const;
    HERRING_SEPARABLE void sync(descriptor const& file, std::string const& name) const;
    /// Makes the names in the folder durable.
    HERRING_SEPARABLE void sync() const;
    /// Renames a file; replaces a file with the new name.
    HERRING_SEPARABLE void rename(std::string const& from, std::string const& to) const;
    /// Removes a file; ignores errors.
    HERRING_SEPARABLE void remove(std::string const& name) const noexcept;
    /// Removes all files that this object has created; ignores errors.
    HERRING_SEPARABLE void remove_created() const noexcept;

    /// Opens a file for reading. Returns an empty descriptor if there is no such file.
    HERRING_SEPARABLE descriptor open(std::string const& name) const;
    HERRING_SEPARABLE std::uint64_t size(descriptor const& file, std::string const& name) const;
    /// Fills `into` with the bytes of the file from `at` on.
    HERRING_SEPARABLE void read(descriptor const& file, std::string const& name, std::uint64_t at,
                                std::span<std::byte> into) const;

    /// Names of the files of saves, except for the manifest.
    HERRING_SEPARABLE std::vector<std::string> files() const;

    [[noreturn]] HERRING_SEPARABLE void fail(errc what, std::string_view name,
                                             std::initializer_list<text_part> text) const;
    [[noreturn]] void fail_damaged(std::string_view name, std::initializer_list<text_part> text) const {
        fail(errc::corrupted, name, text);
    }

  private:
    [[noreturn]] HERRING_SEPARABLE void fail_by_system(char const* doing, std::string_view name,
                                                       char const* advice = "") const;

    std::string path_;
    int rank_;
    char const* operation_;
    descriptor self_;
    mutable std::vector<std::string> created_; // names
};

/// Returns the manifest in force; none: the folder has no checkpoint.
///
/// Errors: `corrupted`.
HERRING_SEPARABLE std::optional<manifest> find_manifest(folder const& where);

/// Removes the files of generations from `from_generation` on that the manifest in force does not name: those
/// of earlier checkpoints and of unfinished saves. Makes the manifest durable first. Removes nothing if the
/// manifest cannot be read. Returns the latest generation that is left.
HERRING_SEPARABLE std::uint64_t tidy(folder const& where, std::uint64_t from_generation = 0);

/// Puts a manifest, and with it a checkpoint, in force: to be called after all files of the checkpoint are
/// durable, and before any file of the last checkpoint is removed. Returns when the manifest is durable.
/// `may_be_in_force`: true from the moment when the manifest may be in force, also where this function
/// throws.
HERRING_SEPARABLE void publish(folder const& where, manifest const& ready, bool& may_be_in_force);

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/folder_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_FOLDER_HPP

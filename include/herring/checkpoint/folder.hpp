// herring: the folder of a checkpoint: its files are created, made durable, published and removed.
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

/// A folder that exists, as one rank sees it. What is written is durable once `sync` has returned for the file, and then for the
/// folder.
///
/// Errors: of this rank, with its operation; they name the file, the folder and what the system said. `no_resources`: a full disk, a
///         quota, a limit of the process. `corrupted`: what is there is no checkpoint, or a damaged one. Else `bad_argument`.
class folder {
  public:
    HERRING_SEPARABLE folder(std::string path, int rank, char const* operation);

    /// A file that was not there before. From one thread at a time, as `remove_created`.
    HERRING_SEPARABLE descriptor create(std::string const& name) const;
    HERRING_SEPARABLE void write(descriptor const& file, std::string const& name,
                                 std::span<std::byte const> bytes) const;
    HERRING_SEPARABLE void sync(descriptor const& file, std::string const& name) const;
    /// Of the names in it.
    HERRING_SEPARABLE void sync() const;
    /// Gives the file another name, in place of one that has it.
    HERRING_SEPARABLE void rename(std::string const& from, std::string const& to) const;
    /// As far as that is possible.
    HERRING_SEPARABLE void remove(std::string const& name) const noexcept;
    /// The same of all files that this object has created.
    HERRING_SEPARABLE void remove_created() const noexcept;

    /// None where there is no such file.
    HERRING_SEPARABLE descriptor open(std::string const& name) const;
    HERRING_SEPARABLE std::uint64_t size(descriptor const& file, std::string const& name) const;
    /// Fills `into` from a place in the file.
    HERRING_SEPARABLE void read(descriptor const& file, std::string const& name, std::uint64_t at,
                                std::span<std::byte> into) const;

    /// Names of files that a save makes, but for the manifest.
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

/// The manifest that is in force there; none: there is no checkpoint.
///
/// Errors: `corrupted`.
HERRING_SEPARABLE std::optional<manifest> find_manifest(folder const& where);

/// Removes the files of a generation, or of a later one, that the manifest in force does not name, once that is durable: those of
/// the checkpoint before it, and of saves that did not end. None, where the manifest cannot be read. Returns the latest generation
/// that is left.
HERRING_SEPARABLE std::uint64_t tidy(folder const& where, std::uint64_t from_generation = 0);

/// Makes a manifest, and with it a checkpoint, the one in force: after all of its files are durable, and before any file of the
/// one before is removed. Returns when that is durable. `may_be_in_force`: becomes true when it may be, also where this throws.
HERRING_SEPARABLE void publish(folder const& where, manifest const& ready, bool& may_be_in_force);

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/folder_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_FOLDER_HPP

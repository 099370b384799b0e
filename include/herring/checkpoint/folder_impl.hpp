// herring: system calls for the folder of a checkpoint.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_FOLDER_IMPL_HPP
#define HERRING_CHECKPOINT_FOLDER_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/checkpoint/folder.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::checkpoints {

HERRING_SEPARABLE folder::folder(std::string path, int rank, char const* operation)
    : path_(std::move(path)), rank_(rank), operation_(operation), self_(open_folder(path_)) {
    if (self_.get() < 0)
        fail_by_system("opened", "",
                       process_wide::folder_root == -1
                           ? "; it has to be there before, and every rank has to see it"
                           : "; servers that a service lends open what lies beneath the tenant's folder of "
                             "checkpoints, by a name relative to that");
}

HERRING_SEPARABLE descriptor folder::create(std::string const& name) const {
    created_.push_back(name);
    descriptor file(::openat(self_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.get() >= 0) return file;
    created_.pop_back(); // does not change errno
    fail_by_system("created", name,
                   errno == EEXIST ? "; the rank that numbers saves has not seen it: all ranks have to save "
                                     "into one folder that they share, one save at a time"
                                   : "");
}

HERRING_SEPARABLE void folder::write(descriptor const& file, std::string const& name,
                                     std::span<std::byte const> bytes) const {
    if (!may_write(file.get(), bytes.size())) {
        errno = EFBIG;
        fail_by_system("written", name, "; raise the limit of file sizes (ulimit -f)");
    }
    while (!bytes.empty()) {
        ssize_t const written = ::write(file.get(), bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) fail_by_system("written", name);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

HERRING_SEPARABLE void folder::sync(descriptor const& file, std::string const& name) const {
    if (::fsync(file.get()) != 0) fail_by_system("written to the disk (fsync)", name);
}

HERRING_SEPARABLE void folder::sync() const { sync(self_, ""); }

HERRING_SEPARABLE void folder::rename(std::string const& from, std::string const& to) const {
    if (::renameat(self_.get(), from.c_str(), self_.get(), to.c_str()) != 0) fail_by_system("renamed", from);
}

HERRING_SEPARABLE void folder::remove(std::string const& name) const noexcept {
    (void)::unlinkat(self_.get(), name.c_str(), 0);
}

HERRING_SEPARABLE void folder::remove_created() const noexcept {
    for (std::string const& name : created_) remove(name);
    created_.clear();
}

HERRING_SEPARABLE descriptor folder::open(std::string const& name) const {
    int const links =
        process_wide::folder_root == -1 ? 0 : O_NOFOLLOW; // which may lead out of a tenant's folder
    descriptor file(::openat(self_.get(), name.c_str(),
                             O_RDONLY | O_CLOEXEC | O_NONBLOCK |
                                 links)); // does not block on a pipe, which `size` refuses
    if (file.get() < 0 && errno != ENOENT) fail_by_system("opened", name);
    return file;
}

HERRING_SEPARABLE std::uint64_t folder::size(descriptor const& file, std::string const& name) const {
    struct stat facts;
    if (::fstat(file.get(), &facts) != 0) fail_by_system("looked at", name);
    if (!S_ISREG(facts.st_mode)) fail_damaged(name, {"it is no plain file"});
    return static_cast<std::uint64_t>(facts.st_size);
}

HERRING_SEPARABLE void folder::read(descriptor const& file, std::string const& name, std::uint64_t at,
                                    std::span<std::byte> into) const {
    while (!into.empty()) {
        ssize_t const got = ::pread(file.get(), into.data(), into.size(), static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_by_system("read", name);
        if (got == 0) fail_damaged(name, {"it ends at byte ", at, ", where more should follow"});
        at += static_cast<std::uint64_t>(got);
        into = into.subspan(static_cast<std::size_t>(got));
    }
}

HERRING_SEPARABLE std::vector<std::string> folder::files() const {
    std::vector<std::string> found;
    int const copy = ::openat(self_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const listing = copy < 0 ? nullptr : ::fdopendir(copy);
    if (listing == nullptr) {
        if (copy >= 0) ::close(copy);
        fail_by_system("listed", "");
    }
    std::uint64_t generation = 0;
    while (dirent const* const entry = ::readdir(listing))
        if (is_saved_file(entry->d_name, generation)) found.emplace_back(entry->d_name);
    ::closedir(listing);
    return found;
}

HERRING_SEPARABLE void folder::fail(errc what, std::string_view name,
                                    std::initializer_list<text_part> text) const {
    std::string all;
    if (!name.empty()) append(all, {name, ": "});
    append(all, text);
    append(all, {" (in ", path_, ")"});
    throw error(what, rank_, -1, operation_, all);
}

HERRING_SEPARABLE void folder::fail_by_system(char const* doing, std::string_view name,
                                              char const* advice) const {
    int const number = errno;
    bool const full = number == ENOSPC || number == EDQUOT || number == EFBIG || number == EMFILE ||
                      number == ENFILE || number == ENOMEM;
    fail(full ? errc::no_resources : errc::bad_argument, name,
         {name.empty() ? "the folder" : "it", " cannot be ", doing, ": ", std::strerror(number), advice});
}

inline constexpr std::uint64_t most_of_a_manifest = std::uint64_t{1} << 30;

HERRING_SEPARABLE std::optional<manifest> find_manifest(folder const& where) {
    descriptor const file = where.open(manifest::name);
    if (file.get() < 0) return std::nullopt;
    std::uint64_t const size = where.size(file, manifest::name);
    if (size > most_of_a_manifest) where.fail_damaged(manifest::name, {"it has ", size, " bytes"});
    std::string text(size, '\0');
    where.read(file, manifest::name, 0, std::as_writable_bytes(std::span(text)));
    manifest found;
    if (char const* const wrong = read_manifest(text, found)) where.fail_damaged(manifest::name, {wrong});
    return found;
}

HERRING_SETUP inline bool names(manifest const& of, std::string_view file) noexcept {
    for (file_entry const& one : of.parts)
        if (one.name == file) return true;
    for (section const& one : of.sections)
        if (one.file.name == file) return true;
    return false;
}

HERRING_SEPARABLE std::uint64_t tidy(folder const& where, std::uint64_t from_generation) {
    bool readable = true;
    manifest in_force;
    try {
        in_force = find_manifest(where).value_or(manifest{});
        where.sync(); // an interrupted save may have left its manifest unsynced
    } catch (error const&) {
        readable = false; // keep the files: they may be of use until a save replaces them
    }
    std::uint64_t last = in_force.generation;
    for (std::string const& name : where.files()) {
        std::uint64_t generation = 0;
        (void)is_saved_file(name, generation);
        if (readable && generation >= from_generation && !names(in_force, name))
            where.remove(name);
        else
            last = std::max(last, generation);
    }
    return last;
}

HERRING_SEPARABLE void publish(folder const& where, manifest const& ready, bool& may_be_in_force) {
    std::string const before = file_name(ready.steps, ready.generation, manifest_draft);
    descriptor const file = where.create(before);
    std::string const text = write_manifest(ready);
    where.write(file, before, std::as_bytes(std::span(text)));
    where.sync(file, before);
    where.sync(); // the names of all files, before the manifest that needs them
    may_be_in_force = true;
    where.rename(before, manifest::name);
    where.sync();
}

} // namespace HERRING_NAMESPACE::detail::checkpoints

#endif // HERRING_CHECKPOINT_FOLDER_IMPL_HPP

// herring: the limit on the size of files, files that are replaced at once, and folders beneath a root.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_FILES_HPP
#define HERRING_MACHINE_FILES_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/descriptor.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// In `herring` itself, not in the namespace of the translation unit's flags: of the process.
namespace herring::process_wide {
/// The folder beneath which this process opens folders by name: a descriptor; −1: none is named, any may be
/// opened; −2: no folder may be opened.
[[gnu::visibility("default")]] inline constinit int folder_root = -1;
} // namespace herring::process_wide

namespace HERRING_NAMESPACE::detail {

/// Opens a folder for reading, beneath `folder_root` where there is one: a path from / on, one that climbs
/// out, and links that lead out are refused by the kernel. −1 and errno on failure.
HERRING_SETUP inline int open_folder(std::string const& path) noexcept {
    int const root = process_wide::folder_root;
    if (root == -1) return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::open_how how{};
    how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    if (root >= 0) return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
    errno = EACCES;
    return -1;
}

/// Returns the limit on the size of files in bytes (ulimit -f). Check it before writing: beyond the limit the
/// kernel sends SIGXFSZ, which ends the process.
HERRING_SETUP inline std::uint64_t file_size_limit() noexcept {
    rlimit most{};
    if (::getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY)
        return std::numeric_limits<std::uint64_t>::max();
    return most.rlim_cur;
}

/// True if `bytes` more bytes at the current position of the file are within the limit.
HERRING_SETUP inline bool may_write(int file, std::size_t bytes) noexcept {
    std::uint64_t const most = file_size_limit();
    off_t const at = ::lseek(file, 0, SEEK_CUR);
    return at < 0 || (bytes <= most && static_cast<std::uint64_t>(at) <= most - bytes);
}

/// Replaces a file at once: a reader sees the whole old content or the whole new one.
///
/// Errors:  `unreachable`, naming `operation` and the system's reason; the old file stays and nothing else is
///          left.
HERRING_SETUP inline void write_whole_file(std::string const& path, std::string_view text,
                                           char const* operation) {
    std::string const beside =
        path + ".tmp" + std::to_string(::getpid()); // collectors of metrics read *.prom
    auto const fail = [&](char const* what) {
        int const why = errno;
        ::unlink(beside.c_str());
        throw error(
            failure::make(errc::unreachable, -1, -1, operation, {what, " ", path, ": ", std::strerror(why)}));
    };
    ::unlink(beside.c_str()); // left by an earlier process with this pid
    {
        descriptor const file(
            ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
        if (file.get() < 0) fail("cannot create");
        if (!may_write(file.get(), text.size())) {
            errno = EFBIG;
            fail("cannot write");
        }
        while (!text.empty()) {
            ssize_t const written = ::write(file.get(), text.data(), text.size());
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) fail("cannot write");
            text.remove_prefix(static_cast<std::size_t>(written));
        }
    }
    if (::rename(beside.c_str(), path.c_str()) != 0) fail("cannot replace");
}

/// As write_whole_file, for a file that the program can do without.
///
/// Errors:  none; returns false and prints a line on stderr.
HERRING_SETUP inline bool try_write_whole_file(std::string const& path, std::string_view text,
                                               char const* operation) {
    try {
        write_whole_file(path, text, operation);
        return true;
    } catch (error const& why) {
        std::fprintf(stderr, "%s; the program goes on without it\n", why.what());
        return false;
    }
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_FILES_HPP

// herring: writes a file that is seen whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_WHOLE_FILE_HPP
#define HERRING_MACHINE_WHOLE_FILE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/file_size_limit.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Writes a file that whoever reads it sees whole: the old one, or the new one.
///
/// Errors:  `unreachable` of `operation`, with the system's words; the old file stays, and nothing is left beside it.
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
    ::unlink(beside.c_str()); // of an earlier process with this number
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

/// The same of a file that the program can do without.
///
/// Errors:  none: false, and a line on stderr.
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

#endif // HERRING_MACHINE_WHOLE_FILE_HPP

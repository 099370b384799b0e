// herring: small files of /proc and /sys, as text.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_SMALL_FILE_HPP
#define HERRING_MACHINE_SMALL_FILE_HPP

#include "herring/base/config.hpp"
#include "herring/machine/descriptor.hpp"

#include <cerrno>
#include <cstddef>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

inline constexpr std::size_t most_of_a_small_file = std::size_t{1} << 20;

/// A small file of /proc or /sys as text; empty if it cannot be read, cut where it is not small.
HERRING_SETUP inline std::string small_file(std::string const& path) {
    std::string text;
    descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return text;
    char part[4096];
    for (ssize_t got = 0; (got = ::read(file.get(), part, sizeof part)) > 0 || (got < 0 && errno == EINTR);)
        if (got > 0) {
            text.append(part, static_cast<std::size_t>(got));
            if (text.size() >= most_of_a_small_file) break;
        }
    return text;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_SMALL_FILE_HPP

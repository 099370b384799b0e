// herring: how large this process may make a file.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_FILE_SIZE_LIMIT_HPP
#define HERRING_MACHINE_FILE_SIZE_LIMIT_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

#include <sys/resource.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Bytes (ulimit -f). At a write beyond, the kernel does not only refuse: it sends SIGXFSZ, which ends the process. Who writes a file
/// looks here before.
HERRING_SETUP inline std::uint64_t file_size_limit() noexcept {
    rlimit most{};
    if (::getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY)
        return std::numeric_limits<std::uint64_t>::max();
    return most.rlim_cur;
}

/// Whether a file may get so many bytes more where it stands.
HERRING_SETUP inline bool may_write(int file, std::size_t bytes) noexcept {
    std::uint64_t const most = file_size_limit();
    off_t const at = ::lseek(file, 0, SEEK_CUR);
    return at < 0 || (bytes <= most && static_cast<std::uint64_t>(at) <= most - bytes);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_FILE_SIZE_LIMIT_HPP

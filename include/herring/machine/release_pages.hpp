// herring: gives pages of a shared mapping back that are not to be used.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_RELEASE_PAGES_HPP
#define HERRING_MACHINE_RELEASE_PAGES_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Gives the whole pages within a range of shared memory back to the system; whoever touches them gets new ones, of zeroes. Where
/// the system cannot, they stay.
inline void release_pages(std::byte* from, std::size_t bytes) noexcept {
    auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    auto const at = reinterpret_cast<std::uintptr_t>(from);
    std::uintptr_t const begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is within the range
    if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_REMOVE);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_RELEASE_PAGES_HPP

// herring: zeroed, page-aligned memory of one process: its allocation.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_PRIVATE_MEMORY_IMPL_HPP
#define HERRING_MACHINE_PRIVATE_MEMORY_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/private_memory.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE private_memory::private_memory(std::size_t bytes, int rank) : bytes_(bytes) {
    if (bytes == 0) return;
    bool const large = bytes >= 2 * huge_page;
    pages_ = mapped_pages(-1, large ? bytes + huge_page : bytes);
    data_ = pages_.data();
    if (data_ == nullptr)
        throw error(errc::no_resources, rank, -1, "construction",
                    {"cannot get ", bytes, " bytes of memory: ", std::strerror(errno),
                     "; use a smaller layout, or raise the limit (ulimit -v, cgroup)"});
    if (!large) return;
    data_ += (huge_page - reinterpret_cast<std::uintptr_t>(data_) % huge_page) % huge_page;
#if defined(MADV_HUGEPAGE)
    (void)::madvise(data_, bytes - bytes % huge_page, MADV_HUGEPAGE); // a hint: small pages work too
#endif
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_PRIVATE_MEMORY_IMPL_HPP

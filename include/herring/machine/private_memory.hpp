// herring: zeroed, page-aligned memory of one process; and pages of shared memory given back.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_PRIVATE_MEMORY_HPP
#define HERRING_MACHINE_PRIVATE_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Returns the whole pages within a range of shared memory to the system; later accesses find new pages of
/// zeroes. A hint: where the system cannot, the pages stay.
inline void release_pages(std::byte* from, std::size_t bytes) noexcept {
    auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    auto const at = reinterpret_cast<std::uintptr_t>(from);
    std::uintptr_t const begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is within the range
    if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_REMOVE);
}

/// Zeroed pages of this process for tensors and staging; from 4 MiB up huge pages where the system grants
/// them.
///
/// Lifetime: owns its pages.
/// Errors: `no_resources` with the size that the system refused.
class private_memory {
  public:
    private_memory() = default;
    HERRING_SEPARABLE private_memory(std::size_t bytes, int rank);
    private_memory(private_memory&& other) noexcept
        : mapped_(std::exchange(other.mapped_, nullptr)),
          mapped_bytes_(std::exchange(other.mapped_bytes_, 0)), data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    private_memory& operator=(private_memory&& other) noexcept {
        std::swap(mapped_, other.mapped_);
        std::swap(mapped_bytes_, other.mapped_bytes_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~private_memory() {
        if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
    }

    std::byte* data() const noexcept { return data_; }
    std::span<std::byte> bytes() const noexcept { return {data_, bytes_}; }

  private:
    static constexpr std::size_t huge_page = std::size_t{1} << 21;

    void* mapped_ = nullptr;
    std::size_t mapped_bytes_ = 0;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/machine/private_memory_impl.hpp"
#endif

#endif // HERRING_MACHINE_PRIVATE_MEMORY_HPP

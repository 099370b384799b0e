// herring: pages of a file or of one process, and its page-aligned memory; pages of shared memory given back.
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

/// Pages of a file that other processes may map, or zeroed pages of this process.
///
/// Lifetime: owns the mapping; the file's descriptor may be closed.
class mapped_pages {
  public:
    mapped_pages() = default;
    /// Maps the first `bytes` of a file; −1: zeroed pages of this process. On failure `data()` is nullptr,
    /// and errno has the reason.
    HERRING_SETUP mapped_pages(int file, std::size_t bytes, bool writable = true) noexcept {
        void* const at = ::mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0),
                                file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
        if (at == MAP_FAILED) return;
        data_ = static_cast<std::byte*>(at);
        size_ = bytes;
    }
    mapped_pages(mapped_pages&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    mapped_pages& operator=(mapped_pages&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~mapped_pages() {
        if (data_ != nullptr) ::munmap(data_, size_);
    }

    std::byte* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

    /// Enters pages into this process's page table, so that first use does not fault. False before Linux
    /// 5.14.
    HERRING_SETUP bool prefault(std::size_t offset, std::size_t bytes, bool writable) const noexcept {
        constexpr int populate_read = 22, populate_write = 23;
        auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        std::size_t const first = offset / page * page;
        return ::madvise(data_ + first, offset - first + bytes, writable ? populate_write : populate_read) ==
               0;
    }

  private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

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
        : pages_(std::move(other.pages_)), data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    private_memory& operator=(private_memory&& other) noexcept {
        std::swap(pages_, other.pages_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }

    std::byte* data() const noexcept { return data_; }
    std::span<std::byte> bytes() const noexcept { return {data_, bytes_}; }

  private:
    static constexpr std::size_t huge_page = std::size_t{1} << 21;

    mapped_pages pages_{};
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/machine/private_memory_impl.hpp"
#endif

#endif // HERRING_MACHINE_PRIVATE_MEMORY_HPP

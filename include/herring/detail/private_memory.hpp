// herring: zeroed, page-aligned memory of one process, for tensors and staging.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_PRIVATE_MEMORY_HPP
#define HERRING_DETAIL_PRIVATE_MEMORY_HPP

#include "herring/detail/config.hpp"
#include "herring/error.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <sys/mman.h>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Zeroed pages of this process; huge ones where the system has them for the asking and they are filled.
///
/// Lifetime: owns its pages. Errors: `no_resources` with the size that could not be had.
class private_memory {
  public:
    private_memory() = default;
    HERRING_SETUP private_memory(std::size_t bytes, int rank) : bytes_(bytes) {
        if (bytes == 0) return;
        bool const large = bytes >= 2 * huge_page;
        mapped_bytes_ = large ? bytes + huge_page : bytes;
        mapped_ = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped_ == MAP_FAILED) {
            mapped_ = nullptr;
            throw error(errc::no_resources, rank, -1, "construction",
                        {"cannot get ", bytes, " bytes of memory: ", std::strerror(errno),
                         "; use a smaller layout, or raise the limit (ulimit -v, cgroup)"});
        }
        data_ = static_cast<std::byte*>(mapped_);
        if (!large) return;
        data_ += (huge_page - reinterpret_cast<std::uintptr_t>(data_) % huge_page) % huge_page;
#if defined(MADV_HUGEPAGE)
        (void)::madvise(data_, bytes - bytes % huge_page, MADV_HUGEPAGE); // or small ones, which do as well
#endif
    }
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

#endif // HERRING_DETAIL_PRIVATE_MEMORY_HPP

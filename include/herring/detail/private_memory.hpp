// herring: zeroed, page-aligned memory of one process, for tensors and staging.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_PRIVATE_MEMORY_HPP
#define HERRING_DETAIL_PRIVATE_MEMORY_HPP

#include "herring/detail/config.hpp"
#include "herring/error.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <sys/mman.h>
#include <utility>

namespace herring::detail {

/// Lifetime: owns its pages. Errors: `no_resources` with the size that could not be had.
class private_memory {
  public:
    private_memory() = default;
    HERRING_SETUP private_memory(std::size_t bytes, int rank) : bytes_(bytes) {
        if (bytes == 0) return;
        void* const got = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (got == MAP_FAILED)
            throw error(errc::no_resources, rank, -1, "construction",
                        {"cannot get ", bytes, " bytes of memory: ", std::strerror(errno),
                         "; use a smaller layout, or raise the limit (ulimit -v, cgroup)"});
        data_ = static_cast<std::byte*>(got);
    }
    private_memory(private_memory&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    private_memory& operator=(private_memory&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~private_memory() {
        if (data_ != nullptr) ::munmap(data_, bytes_);
    }

    std::byte* data() const noexcept { return data_; }
    std::span<std::byte> bytes() const noexcept { return {data_, bytes_}; }

  private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace herring::detail

#endif // HERRING_DETAIL_PRIVATE_MEMORY_HPP

// herring: zeroed, page-aligned memory of one process, for tensors and staging.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_PRIVATE_MEMORY_HPP
#define HERRING_MACHINE_PRIVATE_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"

#include <cstddef>
#include <span>
#include <sys/mman.h>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Zeroed pages of this process; huge ones where the system has them for the asking and they are filled.
///
/// Lifetime: owns its pages.
/// Errors: `no_resources` with the size that could not be had.
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

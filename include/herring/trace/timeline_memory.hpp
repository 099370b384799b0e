// herring: the memory of a timeline's image: private, or a file that outlives the process.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TIMELINE_MEMORY_HPP
#define HERRING_TRACE_TIMELINE_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/file_size_limit.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Zeroed memory, mapped from a file or not.
class timeline_memory {
  public:
    timeline_memory() = default;
    timeline_memory(timeline_memory&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
          in_file_(std::exchange(other.in_file_, false)) {}
    timeline_memory& operator=(timeline_memory&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(in_file_, other.in_file_);
        return *this;
    }
    ~timeline_memory() {
        if (data_ != nullptr) ::munmap(data_, bytes_);
    }

    /// Without memory, where there is none.
    HERRING_SETUP static timeline_memory anonymous(std::size_t bytes) noexcept {
        return timeline_memory(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes, false);
    }
    /// A new file, in place of an older one of that name. Its blocks are taken at once: a disk that is full later does not matter.
    /// Without memory, where it cannot be had: `why` says what the system said.
    HERRING_SETUP static timeline_memory file(std::string const& path, std::size_t bytes, std::string& why) {
        if (bytes > file_size_limit()) {
            why = std::strerror(EFBIG);
            return {};
        }
        ::unlink(path.c_str());
        descriptor const made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
        int failed = made.get() < 0 ? errno : ::posix_fallocate(made.get(), 0, static_cast<off_t>(bytes));
        void* at = MAP_FAILED;
        if (failed == 0) {
            at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.get(), 0);
            failed = at == MAP_FAILED ? errno : 0;
        }
        if (failed != 0) {
            why = std::strerror(failed);
            if (made.get() >= 0) ::unlink(path.c_str());
        }
        return timeline_memory(at, bytes, true);
    }

    std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
    std::size_t size() const noexcept { return bytes_; }
    bool is_file() const noexcept { return in_file_; }

  private:
    timeline_memory(void* at, std::size_t bytes, bool in_file) noexcept
        : data_(at == MAP_FAILED ? nullptr : at), bytes_(data_ == nullptr ? 0 : bytes),
          in_file_(in_file && data_ != nullptr) {}

    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    bool in_file_ = false;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRACE_TIMELINE_MEMORY_HPP

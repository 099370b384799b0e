// herring: memory that one process writes and others read, sealed so that no reader can be hurt.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_SEALED_MEMORY_HPP
#define HERRING_ENSEMBLE_SEALED_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/files.hpp"
#include "herring/machine/free_memory.hpp"
#include "herring/machine/private_memory.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace HERRING_NAMESPACE::detail::ensembles {

inline constexpr std::size_t memory_page = 4096; ///< to which parts of a shared mapping are rounded

/// Seals of the file behind shared memory: its size is fixed, only its creator maps it writable, its pages
/// stay.
inline constexpr int shared_memory_seals = F_SEAL_SHRINK | F_SEAL_GROW | 0x0010 /* F_SEAL_FUTURE_WRITE */;

/// Memory of this process that other processes may read: zeroed, mapped writable here alone.
///
/// A part is usable once it is `allocated`: a lack of memory is an error there instead of a signal later.
///
/// Errors: `no_resources` with the size; `unsupported` where the kernel cannot seal against writing (before
///         5.1).
class sealed_memory {
  public:
    sealed_memory() = default;
    HERRING_SETUP explicit sealed_memory(std::size_t bytes) {
        if (std::uint64_t const most = file_size_limit(); bytes > most)
            lacks(bytes, {"the limit of file sizes is ", bytes_text(most), "; raise it (ulimit -f)"});
        file_ = detail::descriptor(::memfd_create("herring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        if (file_.get() < 0)
            lacks(bytes,
                  {"memfd_create: ", std::strerror(errno), "; raise the limit of open files (ulimit -n)"});
        int cut = 0;
        do cut = ::ftruncate(file_.get(), static_cast<off_t>(bytes));
        while (cut != 0 && errno == EINTR);
        if (cut != 0) lacks(bytes, {"ftruncate: ", std::strerror(errno)});
        // A mapping that is writable before the seal stays writable.
        pages_ = mapped_pages(file_.get(), bytes, true);
        if (pages_.data() == nullptr) lacks(bytes, {"mmap: ", std::strerror(errno)});
        if (::fcntl(file_.get(), F_ADD_SEALS, shared_memory_seals | F_SEAL_SEAL) != 0)
            throw error(
                errc::unsupported, -1, -1, "ensemble",
                {"this kernel does not seal shared memory against writing (Linux 5.1 does); let members "
                 "come by tcp: lane::tcp"});
    }

    std::byte* data() const noexcept { return pages_.data(); }
    std::size_t size() const noexcept { return pages_.size(); }
    /// Descriptor of the file, which is sent to others; owned by this object.
    int descriptor() const noexcept { return file_.get(); }

    /// Allocates the pages of a part, and maps them.
    HERRING_SETUP void allocate(std::size_t offset, std::size_t bytes) {
        if (bytes >= least_to_ask_for &&
            bytes > free_memory()) // the kernel would not refuse, and kill a process later
            lacks(bytes, {bytes_text(free_memory()), " are free"});
        int refused = 0;
        do refused = ::fallocate(file_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
        while (refused != 0 && errno == EINTR);
        if (refused != 0) lacks(bytes, {"fallocate: ", std::strerror(errno)});
        pages_.prefault(offset, bytes, true);
    }

  private:
    static constexpr std::size_t least_to_ask_for = std::size_t{1} << 20;

    [[noreturn]] HERRING_SETUP static void lacks(std::size_t bytes, std::initializer_list<text_part> why) {
        throw error(errc::no_resources, -1, -1, "ensemble",
                    {bytes_text(bytes), " of shared memory for requests or rows are needed; ", text(why),
                     "; or have fewer requests in flight, or let members come by tcp"});
    }

    detail::descriptor file_{};
    mapped_pages pages_{};
};

/// Memory of another process, mapped for reading. Its contents may change at any time: readers bound every
/// value.
///
/// The file is checked before it is mapped: it is a sealed memfd of the due size, so that it can neither
/// shrink under a reader nor lose pages. Pages that its owner has not allocated are zeros; `all_allocated`
/// refuses a file with such pages, so that reading takes no memory.
///
/// Errors: `protocol`, which describes the file; `no_resources`.
class foreign_memory {
  public:
    foreign_memory() = default;
    /// Checks and maps a file of `least` to `most` bytes.
    HERRING_SETUP foreign_memory(detail::descriptor file, std::uint64_t least, std::uint64_t most,
                                 bool all_allocated) {
        int const seals = ::fcntl(file.get(), F_GET_SEALS);
        struct statfs system {};
        struct ::stat about {};
        if (seals < 0 || (seals & shared_memory_seals) != shared_memory_seals ||
            ::fstatfs(file.get(), &system) != 0 || system.f_type != tmpfs_magic ||
            ::fstat(file.get(), &about) != 0 || about.st_size < 0)
            refuse({"the shared memory that it passed is no sealed memfd"});
        auto const size = static_cast<std::uint64_t>(about.st_size);
        if (size < least)
            refuse({"the shared memory that it passed has ", size, " bytes, fewer than ", least});
        if (size > most) refuse({"the shared memory that it passed has ", size, " bytes, more than ", most});
        if (all_allocated && static_cast<std::uint64_t>(about.st_blocks) * 512 < size)
            refuse({"not all of the ", size, " bytes of shared memory that it passed are allocated"});
        pages_ = mapped_pages(file.get(), size, false);
        if (pages_.data() == nullptr)
            throw error(errc::no_resources, -1, -1, "ensemble",
                        {"mmap of ", bytes_text(size), " of shared memory: ", std::strerror(errno)});
        if (all_allocated) pages_.prefault(0, size, false);
    }

    std::byte const* data() const noexcept { return pages_.data(); }
    std::size_t size() const noexcept { return pages_.size(); }

    /// Enters the first pages into the page table.
    HERRING_SETUP void prefault(std::size_t bytes) const noexcept { pages_.prefault(0, bytes, false); }

    [[noreturn]] HERRING_SETUP static void refuse(std::initializer_list<text_part> why) {
        throw error(errc::protocol, -1, -1, "ensemble", why);
    }

  private:
    static constexpr long tmpfs_magic = 0x01021994; // huge pages may be missing when they are read

    mapped_pages pages_{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_SEALED_MEMORY_HPP

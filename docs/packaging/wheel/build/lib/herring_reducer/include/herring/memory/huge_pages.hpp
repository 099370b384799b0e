// herring: huge pages for the caller's tensors: an allocator, and advice for memory already allocated.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MEMORY_HUGE_PAGES_HPP
#define HERRING_MEMORY_HUGE_PAGES_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <type_traits>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace HERRING_NAMESPACE {

/// Bytes of a huge page of x86-64, and of AArch64 with small pages of 4 KiB. Where huge pages are larger,
/// advice for less than one of them has no effect.
inline constexpr std::size_t huge_page_bytes = std::size_t{1} << 21;

/// The system's setting for transparent huge pages, /sys/kernel/mm/transparent_hugepage/enabled.
enum class huge_page_setting : std::uint8_t {
    unknown,  ///< the file cannot be read: a container, or a kernel without them
    disabled, ///< "never": no memory gets huge pages
    madvise,  ///< memory gets them on request: `huge_page_allocator`, `advise_huge_pages`
    always    ///< all large memory gets them
};

/// "unknown", "never", "madvise", "always".
constexpr char const* to_string(huge_page_setting setting) noexcept {
    switch (setting) {
    case huge_page_setting::disabled:
        return "never";
    case huge_page_setting::madvise:
        return "madvise";
    case huge_page_setting::always:
        return "always";
    case huge_page_setting::unknown:
        break;
    }
    return "unknown";
}

/// Reads the system's setting for transparent huge pages.
///
/// Cost:    three system calls.
inline huge_page_setting system_huge_pages() noexcept {
    int const file = ::open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
    if (file < 0) return huge_page_setting::unknown;
    char text[64] = {}; // "always [madvise] never"
    auto const size = ::read(file, text, sizeof text - 1);
    ::close(file);
    for (long i = 0; i + 1 < size; ++i)
        if (text[i] == '[') switch (text[i + 1]) {
            case 'n':
                return huge_page_setting::disabled;
            case 'm':
                return huge_page_setting::madvise;
            case 'a':
                return huge_page_setting::always;
            }
    return huge_page_setting::unknown;
}

/// Asks the system to move the caller's memory into huge pages. Contents stay.
///
/// Pages in use are moved now if the kernel can (Linux 6.1 or newer); pages touched later are huge from the
/// start.
///
/// Shape:    only whole huge pages within the span change; memory before the first and after the last does
///           not.
/// Cost:     one copy of the memory in use; two system calls per huge page.
/// Returns:  false if some of the memory stays in small pages: the span has no whole huge page, the memory is
///           shared or of a file, the system's setting is `never`, no huge page is free, or pages are in use
///           on an older kernel.
/// Lifetime: the advice belongs to the addresses, until they are unmapped; `free` may keep them for the next
///           `malloc`.
/// Example:  `herring::advise_huge_pages(std::span(gradients))`, once, after the vector has its size.
inline bool advise_huge_pages(std::span<std::byte> memory) noexcept {
    auto const misplaced = reinterpret_cast<std::uintptr_t>(memory.data()) % huge_page_bytes;
    std::size_t const before = misplaced == 0 ? 0 : huge_page_bytes - misplaced;
    if (memory.size() < before + huge_page_bytes) return false;
    std::byte* const first = memory.data() + before;
    std::size_t const bytes = (memory.size() - before) / huge_page_bytes * huge_page_bytes;
#if defined(MADV_HUGEPAGE)
    if (::madvise(first, bytes, MADV_HUGEPAGE) != 0) return false;
    bool advised =
        system_huge_pages() != huge_page_setting::disabled; // if disabled, only pages in use can be moved
    constexpr int collapse = 25;                            // MADV_COLLAPSE, which older headers lack
    for (std::size_t at = 0; at < bytes; at += huge_page_bytes) {
        constexpr std::size_t most_pages = huge_page_bytes / 4096;
        unsigned char in_use[most_pages] = {};
        if (::mincore(first + at, huge_page_bytes, in_use) != 0) return false;
        unsigned char any = 0;
        for (unsigned char const page : in_use) any = static_cast<unsigned char>(any | (page & 1));
        if (any != 0 && ::madvise(first + at, huge_page_bytes, collapse) != 0) advised = false;
    }
    return advised;
#else
    (void)first, (void)bytes;
    return false;
#endif
}

/// The same for elements of a type that can be copied as bytes.
template <class Element>
requires(std::is_trivially_copyable_v<Element> && !std::is_const_v<Element> &&
         !std::is_same_v<Element, std::byte>) bool advise_huge_pages(std::span<Element> memory) noexcept {
    return advise_huge_pages(std::as_writable_bytes(memory));
}

/// An allocator that asks for huge pages: `std::vector<float, herring::huge_page_allocator<float>>`.
///
/// If the system's setting is `never` it allocates small pages.
///
/// Cost:     from 2 MiB up, one mapping per allocation, rounded up to whole huge pages and aligned to one;
///           below, memory of `operator new`, aligned to a cache line. The system zeroes each page when it is
///           first touched.
/// Errors:   std::bad_alloc.
template <class Element> class huge_page_allocator {
  public:
    using value_type = Element;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;

    constexpr huge_page_allocator() noexcept = default;
    template <class Other> constexpr huge_page_allocator(huge_page_allocator<Other> const&) noexcept {}

    [[nodiscard]] Element* allocate(std::size_t n) {
        if (n > most) throw std::bad_array_new_length();
        if (small(n)) return static_cast<Element*>(::operator new(n * sizeof(Element), alignment));
        std::size_t const bytes = mapped(n);
        // One huge page more than needed holds the aligned range; the rest is given back.
        void* const all = ::mmap(nullptr, bytes + huge_page_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) throw std::bad_alloc();
        std::size_t const before =
            (huge_page_bytes - reinterpret_cast<std::uintptr_t>(all) % huge_page_bytes) % huge_page_bytes;
        auto* const first = static_cast<std::byte*>(all) + before;
        if (before > 0) ::munmap(all, before);
        if (before < huge_page_bytes) ::munmap(first + bytes, huge_page_bytes - before);
#if defined(MADV_HUGEPAGE)
        (void)::madvise(first, bytes, MADV_HUGEPAGE);
#endif
        return reinterpret_cast<Element*>(first);
    }
    void deallocate(Element* p, std::size_t n) noexcept {
        if (small(n))
            ::operator delete(p, alignment);
        else
            ::munmap(p, mapped(n));
    }

    template <class Other> constexpr bool operator==(huge_page_allocator<Other> const&) const noexcept {
        return true;
    }

  private:
    static_assert(alignof(Element) <= huge_page_bytes);
    static constexpr std::align_val_t alignment{alignof(Element) > 64 ? alignof(Element) : 64};
    static constexpr std::size_t most =
        (static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - 2 * huge_page_bytes) /
        sizeof(Element);
    static constexpr bool small(std::size_t n) noexcept { return n < huge_page_bytes / sizeof(Element); }
    static constexpr std::size_t mapped(std::size_t n) noexcept {
        return (n * sizeof(Element) + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    }
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_MEMORY_HUGE_PAGES_HPP

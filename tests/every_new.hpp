// herring: replaces every operator new and delete of a test's program, so that it sees, or refuses, what is allocated.
// SPDX-License-Identifier: Apache-2.0
//
// Included once, by the one file of a program. Every form is replaced: what a library does by one of them in terms of another, a
// sanitizer does otherwise.
#ifndef HERRING_TESTS_EVERY_NEW_HPP
#define HERRING_TESTS_EVERY_NEW_HPP

#include <cstddef>
#include <cstdlib>
#include <new>

namespace every_new {
/// Defined by the test: whether so many bytes may be had.
bool allows(std::size_t bytes) noexcept;

inline void* take(std::size_t bytes) noexcept {
    return allows(bytes) ? std::malloc(bytes > 0 ? bytes : 1) : nullptr;
}
inline void* take(std::size_t bytes, std::align_val_t align) noexcept {
    auto const unit = static_cast<std::size_t>(align);
    return allows(bytes) ? std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit) : nullptr;
}
inline void* or_throw(void* got) {
    if (got == nullptr) throw std::bad_alloc();
    return got;
}
} // namespace every_new

// Out of line: g++ would see malloc and free inside, and warn of a new that is freed.
#define EVERY_NEW [[gnu::noinline]] void*
#define EVERY_DELETE [[gnu::noinline]] void
EVERY_NEW operator new(std::size_t n) { return every_new::or_throw(every_new::take(n)); }
EVERY_NEW operator new[](std::size_t n) { return every_new::or_throw(every_new::take(n)); }
EVERY_NEW operator new(std::size_t n, std::nothrow_t const&) noexcept { return every_new::take(n); }
EVERY_NEW operator new[](std::size_t n, std::nothrow_t const&) noexcept { return every_new::take(n); }
EVERY_NEW operator new(std::size_t n, std::align_val_t a) {
    return every_new::or_throw(every_new::take(n, a));
}
EVERY_NEW operator new[](std::size_t n, std::align_val_t a) {
    return every_new::or_throw(every_new::take(n, a));
}
EVERY_NEW operator new(std::size_t n, std::align_val_t a, std::nothrow_t const&) noexcept {
    return every_new::take(n, a);
}
EVERY_NEW operator new[](std::size_t n, std::align_val_t a, std::nothrow_t const&) noexcept {
    return every_new::take(n, a);
}
EVERY_DELETE operator delete(void* p) noexcept { std::free(p); }
EVERY_DELETE operator delete[](void* p) noexcept { std::free(p); }
EVERY_DELETE operator delete(void* p, std::size_t) noexcept { std::free(p); }
EVERY_DELETE operator delete[](void* p, std::size_t) noexcept { std::free(p); }
EVERY_DELETE operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
EVERY_DELETE operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
EVERY_DELETE operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
EVERY_DELETE operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
EVERY_DELETE operator delete(void* p, std::nothrow_t const&) noexcept { std::free(p); }
EVERY_DELETE operator delete[](void* p, std::nothrow_t const&) noexcept { std::free(p); }
EVERY_DELETE operator delete(void* p, std::align_val_t, std::nothrow_t const&) noexcept { std::free(p); }
EVERY_DELETE operator delete[](void* p, std::align_val_t, std::nothrow_t const&) noexcept { std::free(p); }
#undef EVERY_NEW
#undef EVERY_DELETE

#endif // HERRING_TESTS_EVERY_NEW_HPP

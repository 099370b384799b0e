// herring: keys in memory that core dumps leave out, erased after use; comparison in constant time.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_SECRET_KEY_HPP
#define HERRING_CRYPTO_SECRET_KEY_HPP

#include "herring/base/config.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>

#include <sys/mman.h>

namespace HERRING_NAMESPACE::detail {

/// Overwrites memory with zeroes, also where nothing reads it afterwards. Does not reach copies in registers.
inline void erase(void* from, std::size_t bytes) noexcept {
    std::memset(from, 0, bytes);
    asm volatile("" : : "r"(from) : "memory"); // the compiler must assume that the memory is read
}

/// A page of 63 places for keys, and the list of all such pages, which grows and is never freed. Lock-free: a
/// child that is forked while other threads run finds the list intact.
class key_page {
  public:
    static constexpr std::size_t bytes = 4096, place_bytes = 64;

    /// Returns a place of zeroes; nullptr where the kernel has no page.
    HERRING_SETUP static void* take() noexcept {
        key_page* page = recent_.load(std::memory_order_acquire);
        void* place = page == nullptr ? nullptr : page->take_here();
        for (std::atomic<key_page*>* link = &first_; place == nullptr; link = &page->next_) {
            page = link->load(std::memory_order_acquire);
            if (page == nullptr && (page = append(*link)) == nullptr) return nullptr;
            place = page->take_here();
            if (place != nullptr) recent_.store(page, std::memory_order_release);
        }
        return place;
    }
    /// Returns a place of take() to its page, already erased.
    HERRING_SETUP static void give_back(void* place) noexcept {
        std::size_t const at = reinterpret_cast<std::uintptr_t>(place) % bytes;
        auto* const page = reinterpret_cast<key_page*>(static_cast<std::byte*>(place) - at);
        page->taken_.fetch_and(~(std::uint64_t{1} << at / place_bytes), std::memory_order_release);
        recent_.store(page, std::memory_order_release);
    }

  private:
    void* take_here() noexcept {
        for (std::uint64_t taken = taken_.load(std::memory_order_relaxed); ~taken != 0;) {
            auto const free = static_cast<std::size_t>(std::countr_one(taken));
            if (taken_.compare_exchange_weak(taken, taken | std::uint64_t{1} << free,
                                             std::memory_order_acquire))
                return reinterpret_cast<std::byte*>(this) + free * place_bytes;
        }
        return nullptr;
    }
    HERRING_SETUP static key_page* append(std::atomic<key_page*>& to) noexcept {
        void* const memory =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        (void)::madvise(memory, bytes, MADV_DONTDUMP);
        auto* const page = ::new (memory) key_page;
        key_page* other = nullptr;
        if (to.compare_exchange_strong(other, page, std::memory_order_acq_rel)) return page;
        ::munmap(memory, bytes);
        return other;
    }

    std::atomic<std::uint64_t> taken_{1}; // bit i: place i; the members of the page are in place 0
    std::atomic<key_page*> next_{nullptr};

    inline static constinit std::atomic<key_page*> first_{nullptr}, recent_{nullptr};
};

/// A Value that core dumps leave out (MADV_DONTDUMP): zero at first, erased when it is moved from and at its
/// end.
///
/// Cost:     64 bytes; some 20 ns to construct and to destroy.
/// Lifetime: where the kernel has no page the Value lies in this object, and is erased in the same way.
template <class Value> class key_place {
    static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= key_page::place_bytes);

  public:
    key_place() noexcept {
        if (void* const place = key_page::take()) at_ = ::new (place) Value{};
    }
    key_place(key_place&& other) noexcept : key_place() { *this = static_cast<key_place&&>(other); }
    key_place& operator=(key_place&& other) noexcept {
        if (this == &other) return *this;
        *at_ = *other.at_;
        erase(other.at_, sizeof(Value));
        return *this;
    }
    ~key_place() {
        erase(at_, sizeof(Value));
        if (at_ != &own_) key_page::give_back(at_);
    }

    Value& operator*() noexcept { return *at_; }
    Value const& operator*() const noexcept { return *at_; }
    Value* operator->() noexcept { return at_; }

  private:
    Value own_{};
    Value* at_ = &own_;
};

/// True if both are equal; takes a time that depends on their sizes only.
inline bool equal_in_constant_time(std::span<std::byte const> a, std::span<std::byte const> b) noexcept {
    if (a.size() != b.size()) return false;
    unsigned char differs = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        differs = static_cast<unsigned char>(differs | static_cast<unsigned char>(a[i] ^ b[i]));
        asm("" : "+r"(differs)); // opaque to the compiler, so that it cannot stop early
    }
    return differs == 0;
}

/// The bytes of a text.
inline std::span<std::byte const> bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span<char const>(text.data(), text.size()));
}

/// A secret key of 32 bytes, left out of core dumps.
///
/// Lifetime: movable, not copyable; erases what it moves from.
class secret_key {
  public:
    static constexpr std::size_t size = 32;

    secret_key() noexcept = default;
    explicit secret_key(std::span<std::byte const, size> bytes) noexcept {
        std::memcpy(bytes_->data(), bytes.data(), size);
    }

    std::span<std::byte const, size> bytes() const noexcept { return *bytes_; }
    std::span<std::byte, size> bytes() noexcept { return *bytes_; }

  private:
    key_place<std::array<std::byte, size>> bytes_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_SECRET_KEY_HPP

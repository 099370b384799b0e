// herring: where keys lie: in pages that no core dump has, wiped as soon as a key is not needed any more.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_KEY_PLACE_HPP
#define HERRING_CRYPTO_KEY_PLACE_HPP

#include "herring/base/config.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include <sys/mman.h>

namespace HERRING_NAMESPACE::detail {

/// Overwrites memory with zeroes, also where nothing reads it afterwards. Copies in registers are beyond its reach.
inline void erase(void* from, std::size_t bytes) noexcept {
    std::memset(from, 0, bytes);
    asm volatile("" : : "r"(from) : "memory"); // the compiler has to believe that somebody reads it
}

/// 63 places for keys, and a list of such pages, which grows and is never freed. Without a lock: a thread that forks beside others
/// finds it as it is.
class key_page {
  public:
    static constexpr std::size_t bytes = 4096, place_bytes = 64;

    /// A place of zeroes; nullptr where the kernel has no page.
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
    /// `place`: of take(), wiped.
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
        auto* const made = ::new (memory) key_page;
        key_page* other = nullptr;
        if (to.compare_exchange_strong(other, made, std::memory_order_acq_rel)) return made;
        ::munmap(memory, bytes);
        return other;
    }

    std::atomic<std::uint64_t> taken_{1}; // bit i: place i; this head is in place 0
    std::atomic<key_page*> next_{nullptr};

    inline static constinit std::atomic<key_page*> first_{nullptr}, recent_{nullptr};
};

/// A Value that is left out of core dumps (MADV_DONTDUMP), zeroes at first, and wiped when it is moved from and at its end.
///
/// Cost:     64 bytes; some 20 ns to make and to end.
/// Lifetime: where the kernel has no page the Value lies in this object, and is wiped in the same way.
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

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_KEY_PLACE_HPP

// herring: what core dumps have of this process's memory, and whether a key is in it, for tests.
// SPDX-License-Identifier: Apache-2.0
#ifndef UNIT_CRYPTO_MEMORY_OF_PROCESS_HPP
#define UNIT_CRYPTO_MEMORY_OF_PROCESS_HPP

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

/// A mapping of /proc/self/smaps that may be written.
struct mapping {
    std::uintptr_t begin = 0, end = 0;
    bool dumped = true; // without the flag «dd»: do not dump
    bool stack = false; // of the main thread
};

inline std::vector<mapping> writable_memory() {
    std::vector<mapping> found;
    std::ifstream smaps("/proc/self/smaps");
    bool writable = false;
    for (std::string line; std::getline(smaps, line);) {
        mapping one;
        char rights[8] = {};
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %7s", &one.begin, &one.end, rights) == 3) {
            writable = rights[0] == 'r' && rights[1] == 'w';
            one.stack = line.ends_with("[stack]");
            if (writable) found.push_back(one);
        } else if (writable && line.starts_with("VmFlags:")) {
            found.back().dumped = line.find(" dd") == std::string::npos;
        }
    }
    return found;
}

inline bool is_dumped(void const* at) {
    auto const place = reinterpret_cast<std::uintptr_t>(at);
    for (mapping const& one : writable_memory())
        if (one.begin <= place && place < one.end) return one.dumped;
    return true;
}

inline constexpr std::byte mask_of_needle{0x5a};

/// Calls `what` with its frame far below that of the caller, whose next calls do not reach it.
template <class What> [[gnu::noinline]] void far_below(What const& what) {
    char between[8192];
    asm volatile("" : : "r"(between) : "memory");
    what();
    asm volatile("" : : "r"(between) : "memory");
}
[[gnu::noinline]] inline void clear_stack() {
    char below[16'384];
    std::memset(below, 0, sizeof below);
    asm volatile("" : : "r"(below) : "memory");
}

/// Whether bytes are below the caller's frames: what calls that have returned left there. `masked`: as below.
[[gnu::noinline]] inline bool are_left_on_stack(std::span<std::byte const> masked) {
    static std::vector<std::byte> left(16'384);
    auto const here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    int const memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ssize_t const got = ::pread(memory, left.data(), left.size(), static_cast<off_t>(here - left.size()));
    ::close(memory);
    for (std::size_t i = 0; got > 0 && i + masked.size() <= static_cast<std::size_t>(got); ++i) {
        std::size_t same = 0;
        while (same < masked.size() && (left[i + same] ^ masked[same]) == mask_of_needle) ++same;
        if (same == masked.size()) return true;
    }
    return false;
}

/// How often bytes are in the memory that a core dump has. `masked`: each byte xor mask_of_needle, so that the needle itself is not
/// found. Left out: the main thread's stack, where a call that the loader binds lazily saves what vector registers still have; and
/// mappings of more than 1 GiB, shadows of sanitizers.
inline int times_in_dump(std::span<std::byte const> masked) {
    int found = 0;
    int const memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    std::vector<std::byte> piece(1 << 16);
    for (mapping const& one : writable_memory()) {
        if (!one.dumped || one.stack || one.end - one.begin > (std::uintptr_t{1} << 30)) continue;
        // Pieces overlap by the needle's size, less one.
        for (std::uintptr_t at = one.begin; at < one.end; at += piece.size() - masked.size() + 1) {
            ssize_t const got = ::pread(memory, piece.data(), piece.size(), static_cast<off_t>(at));
            auto const own = reinterpret_cast<std::uintptr_t>(piece.data());
            for (std::size_t i = 0; got > 0 && i + masked.size() <= static_cast<std::size_t>(got); ++i) {
                std::size_t same = 0;
                while (same < masked.size() && (piece[i + same] ^ masked[same]) == mask_of_needle) ++same;
                bool const in_piece = at + i >= own && at + i < own + piece.size(); // what was read before
                found += same == masked.size() && !in_piece;
            }
        }
    }
    ::close(memory);
    for (std::byte volatile& b : piece) b = std::byte{0};
    return found;
}

#endif // UNIT_CRYPTO_MEMORY_OF_PROCESS_HPP

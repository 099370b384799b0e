// herring: many copies within a device as one kernel: chunks of copies, and one thread's share of a chunk.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNEL_BATCHED_COPY_HPP
#define HERRING_GPU_KERNEL_BATCHED_COPY_HPP

#include "herring/base/config.hpp"
#include "herring/gpu/kernel/slices.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::gpu {

/// Bytes that a block of threads copies at a time: four 16-byte accesses of each of 512 threads.
inline constexpr std::size_t copy_chunk_bytes = std::size_t{32} << 10;

/// One of many copies within a device.
struct copy_item {
    void* to = nullptr;
    void const* from = nullptr;
    std::size_t bytes = 0;

    friend bool operator==(copy_item const&, copy_item const&) = default;
};

/// One copy as a kernel reads it from its list.
struct listed_copy {
    std::byte* to = nullptr;
    std::byte const* from = nullptr;
    std::size_t bytes = 0;
    std::size_t end_chunk = 0; ///< chunks of this copy and of all before it in the list
};

/// Returns the number of chunks of a copy of `bytes` bytes to `to`. All chunks but the first begin on a
/// 16-byte boundary of the target, so only head and tail of a copy, not of each chunk, go byte by byte.
HERRING_HOST_DEVICE inline std::size_t copy_chunks(void const* to, std::size_t bytes) noexcept {
    if (bytes == 0) return 0; // the formula gives 1 where `to` is off a boundary
    return (detail::address(to) % access_bytes + bytes + copy_chunk_bytes - 1) / copy_chunk_bytes;
}

/// Writes the list of `copies`. Its first n entries are the list of the first n copies.
inline void write_list(listed_copy* list, std::span<copy_item const> copies) noexcept {
    std::size_t chunks = 0;
    for (copy_item const& one : copies) {
        chunks += copy_chunks(one.to, one.bytes);
        *list++ = {static_cast<std::byte*>(one.to), static_cast<std::byte const*>(one.from), one.bytes,
                   chunks};
    }
}

namespace detail {

// Plain accesses. On an H200 they are 4 % faster than the streaming ones of the k-way sum.
HERRING_HOST_DEVICE inline vec16 copied_load(std::byte const* from) noexcept {
#if defined(__CUDA_ARCH__)
    return *reinterpret_cast<vec16 const*>(from); // nvcc makes byte accesses of a memcpy
#else
    vec16 word;
    std::memcpy(&word, __builtin_assume_aligned(from, access_bytes), sizeof word);
    return word;
#endif
}
HERRING_HOST_DEVICE inline void copied_store(std::byte* to, vec16 const& word) noexcept {
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<vec16*>(to) = word;
#else
    std::memcpy(__builtin_assume_aligned(to, access_bytes), &word, sizeof word);
#endif
}

/// Returns bytes [shift, shift + 16) of two neighbouring vectors; shift < 16. Little-endian, as devices are.
HERRING_HOST_DEVICE inline vec16 joined(vec16 const& low, vec16 const& high, unsigned shift) noexcept {
    std::uint32_t const all[8] = {low.words[0],  low.words[1],  low.words[2],  low.words[3],
                                  high.words[0], high.words[1], high.words[2], high.words[3]};
    bool const by_two = (shift & 8u) != 0, by_one = (shift & 4u) != 0;
    unsigned const bits = (shift & 3u) * 8;
    std::uint32_t pair[6], word[5]; // selects keep them in registers; a run-time index would not
    HERRING_UNROLL
    for (int i = 0; i < 6; ++i) pair[i] = by_two ? all[i + 2] : all[i];
    HERRING_UNROLL
    for (int i = 0; i < 5; ++i) word[i] = by_one ? pair[i + 1] : pair[i];
    vec16 result;
    HERRING_UNROLL
    for (int i = 0; i < 4; ++i) {
#if defined(__CUDA_ARCH__)
        result.words[i] = __funnelshift_r(word[i], word[i + 1], bits);
#else
        std::uint64_t const both = std::uint64_t{word[i + 1]} << 32 | word[i];
        result.words[i] = static_cast<std::uint32_t>(both >> bits);
#endif
    }
    return result;
}

/// A part of a copy, cut for aligned stores: `head` bytes, `vectors`, and a tail. Head and tail go byte by
/// byte. If there is a vector, each of them has fewer than 32 bytes.
struct vectors_of_copy {
    std::size_t head = 0;
    std::size_t vectors = 0;
    unsigned shift = 0; ///< bytes of the source behind a 16-byte boundary, after the head

    /// `begin`, `end`: the source of the whole copy. If `shift` is not 0, `vectors` + 1 aligned vectors are
    /// read; all of them lie in [begin, end).
    HERRING_HOST_DEVICE static vectors_of_copy of(std::byte const* to, std::byte const* from,
                                                  std::size_t bytes, std::byte const* begin,
                                                  std::byte const* end) noexcept {
        vectors_of_copy cut;
        cut.head = (access_bytes - address(to) % access_bytes) % access_bytes;
        cut.shift = static_cast<unsigned>((address(from) + cut.head) % access_bytes);
        if (cut.shift != 0 && address(from) + cut.head - cut.shift < address(begin)) cut.head += access_bytes;
        if (cut.head >= bytes) return {bytes, 0, 0};
        cut.vectors = (bytes - cut.head) / access_bytes;
        if (cut.vectors > 0 && cut.shift != 0 &&
            address(from) + cut.head - cut.shift + (cut.vectors + 1) * access_bytes > address(end))
            --cut.vectors;
        return cut;
    }
};

/// Copies one thread's share of `vectors` vectors, between addresses on 16-byte boundaries.
HERRING_HOST_DEVICE inline void copy_aligned(std::byte* to, std::byte const* from, std::size_t vectors,
                                             std::size_t thread, std::size_t threads) noexcept {
    constexpr std::size_t depth = 4; // accesses in flight
    std::size_t v = thread;
    for (; v + (depth - 1) * threads < vectors; v += depth * threads) {
        vec16 got[depth];
        HERRING_UNROLL
        for (std::size_t d = 0; d < depth; ++d) got[d] = copied_load(from + (v + d * threads) * access_bytes);
        HERRING_UNROLL
        for (std::size_t d = 0; d < depth; ++d) copied_store(to + (v + d * threads) * access_bytes, got[d]);
    }
    for (; v < vectors; v += threads)
        copied_store(to + v * access_bytes, copied_load(from + v * access_bytes));
}

/// Does the same for a source that begins `shift` bytes behind `from`, which is on a boundary; 0 < shift <
/// 16. A stored vector is joined from two neighbours. A thread loads the first and gets the second by a
/// shuffle from the next thread of its warp; the warp's last thread loads both.
///
/// Cost:    a warp loads 33 vectors for 32; in its last, incomplete round, two for each.
/// Threads: on a device, all threads of a warp; `threads` is a multiple of 32, and `thread` one of the block.
HERRING_HOST_DEVICE inline void copy_shifted(std::byte* to, std::byte const* from, unsigned shift,
                                             std::size_t vectors, std::size_t thread,
                                             std::size_t threads) noexcept {
    std::size_t v = thread;
#if defined(__CUDA_ARCH__)
    constexpr std::size_t depth = 4; // accesses in flight
    constexpr unsigned warp = 32, all = ~0u;
    bool const last = thread % warp == warp - 1;
    // All threads of a warp or none: the condition is that of the warp's last thread.
    for (; (v | (warp - 1)) + (depth - 1) * threads < vectors; v += depth * threads) {
        vec16 got[depth], behind[depth];
        HERRING_UNROLL
        for (std::size_t d = 0; d < depth; ++d) got[d] = copied_load(from + (v + d * threads) * access_bytes);
        if (last) {
            HERRING_UNROLL
            for (std::size_t d = 0; d < depth; ++d)
                behind[d] = copied_load(from + (v + d * threads + 1) * access_bytes);
        }
        HERRING_UNROLL
        for (std::size_t d = 0; d < depth; ++d) {
            vec16 next;
            HERRING_UNROLL
            for (int i = 0; i < 4; ++i) {
                next.words[i] = __shfl_down_sync(all, got[d].words[i], 1);
                if (last) next.words[i] = behind[d].words[i];
            }
            copied_store(to + (v + d * threads) * access_bytes, joined(got[d], next, shift));
        }
    }
#endif
    for (; v < vectors; v += threads)
        copied_store(to + v * access_bytes, joined(copied_load(from + v * access_bytes),
                                                   copied_load(from + (v + 1) * access_bytes), shift));
}

/// Copies one thread's share of a part of a copy, between any addresses. `begin`, `end`: the whole source.
HERRING_HOST_DEVICE inline void copy_part(std::byte* to, std::byte const* from, std::size_t bytes,
                                          std::byte const* begin, std::byte const* end, std::size_t thread,
                                          std::size_t threads) noexcept {
    vectors_of_copy const cut = vectors_of_copy::of(to, from, bytes, begin, end);
    std::size_t const rest = cut.head + cut.vectors * access_bytes;
    for (std::size_t i = thread; i < cut.head; i += threads) to[i] = from[i];
    for (std::size_t i = rest + thread; i < bytes; i += threads) to[i] = from[i];
    std::byte* const into = to + cut.head;
    std::byte const* const low = from + cut.head - cut.shift;
    if (cut.shift == 0)
        copy_aligned(into, low, cut.vectors, thread, threads);
    else
        copy_shifted(into, low, cut.shift, cut.vectors, thread, threads);
}

} // namespace detail

/// Copies one thread's share of chunk `chunk` of `count` copies.
///
/// Cost:    each byte read and written once, 16 bytes at a time, whatever the addresses; if source and target
///          are not aligned alike, a warp reads 33 vectors for 32. Bisection finds the copy.
/// Threads: on a device, all threads of a block, with the same chunk; `threads` is a multiple of 32.
HERRING_HOST_DEVICE inline void copy_chunk(listed_copy const* list, std::size_t count, std::size_t chunk,
                                           std::size_t thread, std::size_t threads) noexcept {
    std::size_t first = 0, end = count; // the first copy with end_chunk > chunk is in [first, end)
    while (first + 1 < end) {
        std::size_t const middle = first + (end - first) / 2;
        if (list[middle - 1].end_chunk > chunk)
            end = middle;
        else
            first = middle;
    }
    listed_copy const what = list[first];
    std::size_t const over = detail::address(what.to) % access_bytes;
    std::size_t const number = chunk - (what.end_chunk - copy_chunks(what.to, what.bytes));
    std::size_t const at = number == 0 ? 0 : number * copy_chunk_bytes - over;
    std::size_t const stop = (number + 1) * copy_chunk_bytes - over;
    detail::copy_part(what.to + at, what.from + at, (stop < what.bytes ? stop : what.bytes) - at, what.from,
                      what.from + what.bytes, thread, threads);
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_KERNEL_BATCHED_COPY_HPP

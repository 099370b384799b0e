// herring: many copies within a device as one kernel: how they are cut into chunks, and one thread's share of a chunk.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNEL_BATCHED_COPY_HPP
#define HERRING_GPU_KERNEL_BATCHED_COPY_HPP

#include "herring/base/config.hpp"
#include "herring/gpu/kernel/slices.hpp"
#include "herring/gpu/kernel/vec16.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::gpu {

/// What a block of threads copies at a time: four 16-byte accesses of each of 512 threads.
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

/// Chunks of a copy of so many bytes.
HERRING_HOST_DEVICE constexpr std::size_t copy_chunks(std::size_t bytes) noexcept {
    return (bytes + copy_chunk_bytes - 1) / copy_chunk_bytes;
}

/// Writes the list of these copies. Its first n entries are the list of the first n copies.
inline void write_list(listed_copy* list, std::span<copy_item const> copies) noexcept {
    std::size_t chunks = 0;
    for (copy_item const& one : copies) {
        chunks += copy_chunks(one.bytes);
        *list++ = {static_cast<std::byte*>(one.to), static_cast<std::byte const*>(one.from), one.bytes,
                   chunks};
    }
}

namespace detail {

// Plain accesses: on an H200 faster by 4 % than those of the k-way sum, which ask the cache not to keep what was read.
// nvcc copies byte by byte what is read by memcpy.
template <class Word> HERRING_HOST_DEVICE Word load_word(std::byte const* from) noexcept {
#if defined(__CUDA_ARCH__)
    return *reinterpret_cast<Word const*>(from);
#else
    Word word;
    std::memcpy(&word, __builtin_assume_aligned(from, sizeof(Word)), sizeof word);
    return word;
#endif
}
template <class Word> HERRING_HOST_DEVICE void store_word(std::byte* to, Word const& word) noexcept {
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<Word*>(to) = word;
#else
    std::memcpy(__builtin_assume_aligned(to, sizeof(Word)), &word, sizeof word);
#endif
}

/// One thread's share of a copy by words, between addresses that are a multiple of its size apart.
template <class Word>
HERRING_HOST_DEVICE void copy_by_words(std::byte* to, std::byte const* from, std::size_t bytes,
                                       std::size_t thread, std::size_t threads) noexcept {
    constexpr std::size_t size = sizeof(Word), depth = 4; // accesses in flight
    std::size_t const gap = (size - address(to) % size) % size;
    std::size_t const head = gap < bytes ? gap : bytes;
    std::size_t const words = (bytes - head) / size, rest = head + words * size;
    for (std::size_t i = thread; i < head; i += threads) to[i] = from[i];
    std::size_t w = thread;
    for (; w + (depth - 1) * threads < words; w += depth * threads) {
        Word got[depth];
        HERRING_UNROLL
        for (std::size_t d = 0; d < depth; ++d)
            got[d] = load_word<Word>(from + head + (w + d * threads) * size);
        HERRING_UNROLL
        for (std::size_t d = 0; d < depth; ++d)
            store_word<Word>(to + head + (w + d * threads) * size, got[d]);
    }
    for (; w < words; w += threads)
        store_word<Word>(to + head + w * size, load_word<Word>(from + head + w * size));
    for (std::size_t i = rest + thread; i < bytes; i += threads) to[i] = from[i];
}

} // namespace detail

/// One thread's share of chunk `chunk` of `count` copies.
///
/// Cost: each byte read and written once, 16 bytes at a time where source and target are aligned alike, else by the
///       largest word to which they are. The copy that has the chunk is found by bisection.
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
    std::size_t const at = (chunk - (what.end_chunk - copy_chunks(what.bytes))) * copy_chunk_bytes;
    std::size_t const left = what.bytes - at, bytes = left < copy_chunk_bytes ? left : copy_chunk_bytes;
    std::byte* const to = what.to + at;
    std::byte const* const from = what.from + at;
    std::uintptr_t const apart = detail::address(to) ^ detail::address(from);
    if (apart % access_bytes == 0)
        return detail::copy_by_words<detail::vec16>(to, from, bytes, thread, threads);
    if (apart % 8 == 0) return detail::copy_by_words<std::uint64_t>(to, from, bytes, thread, threads);
    if (apart % 4 == 0) return detail::copy_by_words<std::uint32_t>(to, from, bytes, thread, threads);
    if (apart % 2 == 0) return detail::copy_by_words<std::uint16_t>(to, from, bytes, thread, threads);
    detail::copy_by_words<std::uint8_t>(to, from, bytes, thread, threads);
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_KERNEL_BATCHED_COPY_HPP

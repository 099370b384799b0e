// herring: copies between cores: past the caches, out of another core's cache, and lines claimed for one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_COPIES_HPP
#define HERRING_KERNEL_COPIES_HPP

#include "herring/base/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace HERRING_NAMESPACE::kernel {

inline constexpr std::size_t line_bytes = 64;
#ifdef __SSE2__
inline constexpr bool can_stream = true;
#else
inline constexpr bool can_stream = false;
#endif

/// Returns the bytes from `at` to the next cache line.
inline std::size_t bytes_to_line(std::byte const* at) noexcept {
    return (line_bytes - reinterpret_cast<std::uintptr_t>(at) % line_bytes) % line_bytes;
}

/// Copies whole cache lines past the caches, where the processor can. `to` begins a line, `bytes` is a
/// multiple of a line. Other cores see the lines after `end_stream`.
inline void stream_lines(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
#ifdef __SSE2__
    for (std::size_t i = 0; i < bytes; i += sizeof(__m128i))
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(reinterpret_cast<__m128i const*>(from + i)));
#else
    std::memcpy(to, from, bytes);
#endif
}
/// Orders stores past the caches before later stores; a release alone does not.
inline void end_stream() noexcept {
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/// Copies bytes to memory that other cores have read and will read, or that is too large for the caches. An
/// ordinary store to a line in another core's cache first fetches it from there, at the latency between the
/// cores; a store past the caches only discards it there. A line that is in no cache is not read before it is
/// overwritten.
///
/// Shape:    any sizes and places.
/// Cost:     relative to an ordinary copy of 64 KiB and its reading by the other core: 0.6 between cores that
///           share a third-level cache, 0.16 between others (`herring_bench --operation broadcast`); more
///           than 2 where the writer has the lines.
/// Threads:  visible to every thread that sees a later release of this thread.
inline void stream_copy(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
    std::size_t const head = bytes_to_line(to);
    if (!can_stream || bytes < head + line_bytes) {
        if (bytes > 0) std::memcpy(to, from, bytes);
        return;
    }
    if (head > 0) std::memcpy(to, from, head);
    std::size_t const whole = (bytes - head) / line_bytes * line_bytes, tail = bytes - head - whole;
    stream_lines(to + head, from + head, whole);
    end_stream();
    if (tail > 0) std::memcpy(to + head + whole, from + head + whole, tail);
}

/// Copies lines that another core has written, and overwrites them with `next`. The lines arrive with the
/// latency of that core's cache, and the hardware prefetcher has too few of them in flight, so they are
/// prefetched here. Once read they are in this core's cache, where `next` is written.
///
/// Shape: `next` has no more than `bytes` bytes; nothing overlaps. `streams`: `to` is written past the
///        caches, by whole lines.
/// Cost:  reads `from` and `next` once, writes `to` and the place of `next` once.
inline void fetch_copy(std::byte* to, std::byte* from, std::size_t bytes, bool streams,
                       std::span<std::byte const> next = {}) noexcept {
    constexpr std::size_t block = 4 * line_bytes, ahead = 1024;
    streams = streams && can_stream;
    std::size_t at = streams ? std::min(bytes_to_line(to), bytes) : 0;
    if (at > 0) std::memcpy(to, from, at);
    std::size_t filled = 0; // bytes overwritten with `next`
    for (; bytes - at >= block; at += block) {
        if (bytes - at >= block + ahead)
            for (std::size_t i = 0; i < block; i += line_bytes) __builtin_prefetch(from + at + ahead + i);
        if (streams)
            stream_lines(to + at, from + at, block);
        else
            std::memcpy(to + at, from + at, block);
        if (at + block > next.size()) continue;
        std::memcpy(from + filled, next.data() + filled, at + block - filled);
        filled = at + block;
    }
    if (at < bytes) std::memcpy(to + at, from + at, bytes - at);
    if (streams) end_stream();
    if (filled < next.size()) std::memcpy(from + filled, next.data() + filled, next.size() - filled);
}

/// Rewrites one byte of every line, unchanged. A line that one core has written and another has read is in
/// both caches, and its next writer must have the other copy discarded: 15 to 65 ns a line between cores that
/// share no third-level cache, which prefetching does not hide. A line that its reader has written is in the
/// reader's cache only, and moves to the next writer as to a reader, in 2 to 8 ns.
///
/// Threads:  no other thread reads or writes the bytes meanwhile; this one has just read them.
/// Cost:     a load and a store a line, in this core's cache.
inline void claim_lines(std::byte* at, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; i += line_bytes) {
        auto* const one = static_cast<std::byte volatile*>(at + i);
        *one = *one;
    }
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_COPIES_HPP

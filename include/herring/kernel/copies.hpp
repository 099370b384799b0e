// herring: a copy past the caches, for memory that another core reads next.
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

/// Bytes from `at` to the next cache line.
inline std::size_t bytes_to_line(std::byte const* at) noexcept {
    return (line_bytes - reinterpret_cast<std::uintptr_t>(at) % line_bytes) % line_bytes;
}

/// Copies whole cache lines past the caches, where the processor can. `to` begins a line, `bytes` is a multiple of one. Other cores see
/// them after `end_stream`.
inline void stream_lines(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
#ifdef __SSE2__
    for (std::size_t i = 0; i < bytes; i += sizeof(__m128i))
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(reinterpret_cast<__m128i const*>(from + i)));
#else
    std::memcpy(to, from, bytes);
#endif
}
/// Such stores are not ordered by a release alone.
inline void end_stream() noexcept {
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/// Copies bytes to memory that other cores have read and will read, or that is too large for the caches. A core that writes a line
/// which another core has read has to take it from there first, at the latency between the two; written past the caches it
/// is only discarded there. A line that is in no cache need not be read before it is overwritten.
///
/// Shape:    any sizes and places.
/// Cost:     two cores that share a third-level cache: 0.6 of an ordinary copy and the other's reading of 64 KiB; two that
///           do not: 0.16 (`herring_bench --operation broadcast`). Where the writer has the lines: more than twice of it.
/// Threads:  what was written is seen by whoever sees a later release of this thread.
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

/// Copies what another core has written, and puts `next` in its place. The lines come at the latency of that core's cache, and the
/// processor's own prefetching has too few of them under way: they are asked for ahead. Once read they are in this core's cache, where
/// `next` is written.
///
/// Shape: `next` has no more than `bytes` bytes; nothing overlaps. `streams`: `to` is written past the caches, by whole lines.
/// Cost:  reads `from` and `next` once, writes `to` and the place of `next` once.
inline void fetch_copy(std::byte* to, std::byte* from, std::size_t bytes, bool streams,
                       std::span<std::byte const> next = {}) noexcept {
    constexpr std::size_t block = 4 * line_bytes, ahead = 1024;
    streams = streams && can_stream;
    std::size_t at = streams ? std::min(bytes_to_line(to), bytes) : 0;
    if (at > 0) std::memcpy(to, from, at);
    std::size_t filled = 0; // with `next`
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

/// Writes one byte of every line as it is. A line that one core has written and another one has read is in both caches, and its next
/// writer has to have the other copy discarded: 15 to 65 ns a line between cores that share no third-level cache, and
/// prefetching does not hide it. A line that was written by its reader is in that cache alone, and moves to the next writer as any line
/// moves to a reader, in 2 to 8 ns.
///
/// Shape:    nobody else reads or writes the bytes meanwhile; they were read just now.
/// Cost:     a load and a store a line, in this core's cache.
inline void claim_lines(std::byte* at, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; i += line_bytes) {
        auto* const one = static_cast<std::byte volatile*>(at + i);
        *one = *one;
    }
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_COPIES_HPP

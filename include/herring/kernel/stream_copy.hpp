// herring: a copy past the caches, for memory that another core reads next.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_STREAM_COPY_HPP
#define HERRING_KERNEL_STREAM_COPY_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

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

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_STREAM_COPY_HPP

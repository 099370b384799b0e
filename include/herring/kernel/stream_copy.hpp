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

/// Copies bytes to memory that other cores have read and will read. A core that writes such a line by its cache has to take it
/// from theirs first, at the latency between the two; written past the caches it is only discarded there.
///
/// Shape:    any sizes; where `to` begins at a multiple of 16 bytes and the processor can, else an ordinary copy.
/// Cost:     two cores that share a third-level cache: 0.6 of an ordinary copy and the other's reading of 64 KiB; two that
///           do not: 0.16 (`herring_bench --operation broadcast`). Where the writer has the lines: more than twice of it.
/// Threads:  what was written is seen by whoever sees a later release of this thread.
inline void stream_copy(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
#ifdef __SSE2__
    constexpr std::size_t lane = sizeof(__m128i), line = 64;
    if (reinterpret_cast<std::uintptr_t>(to) % lane == 0) {
        std::size_t const whole = bytes / line * line;
        for (std::size_t at = 0; at < whole; at += line)
            for (std::size_t i = at; i < at + line; i += lane)
                _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                                 _mm_loadu_si128(reinterpret_cast<__m128i const*>(from + i)));
        _mm_sfence(); // such stores are not ordered by a release alone
        to += whole;
        from += whole;
        bytes -= whole;
    }
#endif
    if (bytes > 0) std::memcpy(to, from, bytes);
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_STREAM_COPY_HPP

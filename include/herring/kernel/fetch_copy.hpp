// herring: a copy of what another core has written, which may leave other bytes in its place.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_FETCH_COPY_HPP
#define HERRING_KERNEL_FETCH_COPY_HPP

#include "herring/base/config.hpp"
#include "herring/kernel/stream_copy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::kernel {

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

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_FETCH_COPY_HPP

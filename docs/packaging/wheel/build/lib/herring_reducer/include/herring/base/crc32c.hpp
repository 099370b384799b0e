// herring: CRC-32C, the check that frames carry.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_CRC32C_HPP
#define HERRING_BASE_CRC32C_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::detail {

/// Tables for eight bytes a step: entry [k][b] is the remainder of byte b followed by k zero bytes.
struct crc32c_tables {
    std::uint32_t of[8][256] = {};
};

constexpr crc32c_tables make_crc32c_tables() noexcept {
    crc32c_tables tables;
    // One bit at a time, then the known bytes with that bit set: remainders add up.
    std::uint32_t crc = 1;
    for (std::uint32_t bit = 128; bit != 0; bit /= 2) {
        crc = crc >> 1 ^ (crc & 1 ? 0x82f6'3b78u : 0u); // Castagnoli, reflected
        for (std::uint32_t byte = 0; byte < 256; byte += 2 * bit)
            tables.of[0][byte + bit] = crc ^ tables.of[0][byte];
    }
    for (std::size_t k = 1; k < 8; ++k)
        for (std::size_t byte = 0; byte < 256; ++byte)
            tables.of[k][byte] = tables.of[k - 1][byte] >> 8 ^ tables.of[0][tables.of[k - 1][byte] & 0xff];
    return tables;
}

inline constexpr crc32c_tables crc32c_table = make_crc32c_tables();

/// CRC-32C by table; also in constant expressions.
constexpr std::uint32_t crc32c_by_table(std::span<std::byte const> data, std::uint32_t crc = 0) noexcept {
    auto const& of = crc32c_table.of;
    auto const at = [&](std::size_t i) { return static_cast<std::uint32_t>(data[i]); };
    crc = ~crc;
    std::size_t i = 0;
    for (; i + 8 <= data.size(); i += 8) {
        std::uint32_t const low = crc ^ (at(i) | at(i + 1) << 8 | at(i + 2) << 16 | at(i + 3) << 24);
        crc = of[7][low & 0xff] ^ of[6][low >> 8 & 0xff] ^ of[5][low >> 16 & 0xff] ^ of[4][low >> 24] ^
              of[3][at(i + 4)] ^ of[2][at(i + 5)] ^ of[1][at(i + 6)] ^ of[0][at(i + 7)];
    }
    for (; i < data.size(); ++i) crc = crc >> 8 ^ of[0][(crc ^ at(i)) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)

/// The factor x^(8·bytes − 33): multiplied by it and reduced by crc32, a register has `bytes` zero bytes
/// appended.
constexpr std::uint32_t crc32c_zeroes(std::size_t bytes) noexcept {
    std::uint32_t power = 1u << 24; // x^7, reflected
    for (std::size_t i = 5; i < bytes; ++i) power = power >> 8 ^ crc32c_table.of[0][power & 0xff];
    return power;
}

/// The register after the zero bytes that the factor of `crc32c_zeroes` stands for.
[[gnu::target("sse4.2,pclmul")]] inline std::uint64_t crc32c_moved(std::uint64_t crc,
                                                                   std::uint32_t zeroes) noexcept {
    using words = long long __attribute__((vector_size(16)));
    words const product = __builtin_ia32_pclmulqdq128(words{static_cast<long long>(crc), 0},
                                                      words{static_cast<long long>(zeroes), 0}, 0);
    return __builtin_ia32_crc32di(0, static_cast<unsigned long long>(product[0]));
}

/// Takes all whole pieces of 3 · Lane bytes; with Copies also copies them to `to`. The instruction has a
/// latency of three cycles and a throughput of one a cycle, so three thirds are read side by side and joined
/// afterwards.
template <std::size_t Lane, bool Copies>
[[gnu::target("sse4.2,pclmul")]] inline std::uint64_t
crc32c_lanes(std::byte*& to, std::byte const*& from, std::size_t& size, std::uint64_t crc) noexcept {
    static constexpr std::uint32_t once = crc32c_zeroes(Lane), twice = crc32c_zeroes(2 * Lane);
    for (; size >= 3 * Lane; size -= 3 * Lane) {
        std::uint64_t second = 0, third = 0;
        for (std::byte const* const end = from + Lane; from != end; from += 8) {
            std::uint64_t word[3];
            for (std::size_t i = 0; i < 3; ++i) std::memcpy(&word[i], from + i * Lane, 8);
            crc = __builtin_ia32_crc32di(crc, word[0]);
            second = __builtin_ia32_crc32di(second, word[1]);
            third = __builtin_ia32_crc32di(third, word[2]);
            if constexpr (Copies) {
                for (std::size_t i = 0; i < 3; ++i) std::memcpy(to + i * Lane, &word[i], 8);
                to += 8;
            }
        }
        crc = crc32c_moved(crc, twice) ^ crc32c_moved(second, once) ^ third;
        from += 2 * Lane;
        if constexpr (Copies) to += 2 * Lane;
    }
    return crc;
}

/// CRC-32C by instructions; only where crc32c_by_hardware(). With Copies also copies the data to `to`.
template <bool Copies>
[[gnu::target("sse4.2,pclmul")]] inline std::uint32_t
crc32c_by_instruction(std::byte* to, std::byte const* from, std::size_t size, std::uint32_t before) noexcept {
    std::uint64_t crc = ~before;
    if (size >= 192) {
        crc = crc32c_lanes<4096, Copies>(to, from, size, crc);
        crc = crc32c_lanes<512, Copies>(to, from, size, crc);
        crc = crc32c_lanes<64, Copies>(to, from, size, crc);
    }
    for (; size >= 8; size -= 8, from += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, from, 8);
        crc = __builtin_ia32_crc32di(crc, word);
        if constexpr (Copies) {
            std::memcpy(to, &word, 8);
            to += 8;
        }
    }
    auto narrow = static_cast<std::uint32_t>(crc);
    for (; size != 0; --size, ++from) {
        narrow = __builtin_ia32_crc32qi(narrow, static_cast<unsigned char>(*from));
        if constexpr (Copies) *to++ = *from;
    }
    return ~narrow;
}

#endif

/// True if this processor has the instructions: two tests of what the compiler's library found at start.
inline bool crc32c_by_hardware() noexcept {
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
#else
    return false;
#endif
}

/// CRC-32C of the data. In pieces: crc32c(b, crc32c(a)) is the CRC of a followed by b.
///
/// Cost:    30 GB/s for 4 KiB or more in cache, 2 to 4 ns for a frame header of 40 bytes; by table (other
///          processors than x86-64 with the instructions) 2.8 GB/s and 9 to 14 ns (bench/kernel_bench.cpp).
/// Source:  RFC 3720, appendix B.4.
constexpr std::uint32_t crc32c(std::span<std::byte const> data, std::uint32_t crc = 0) noexcept {
#if defined(__x86_64__)
    if (!std::is_constant_evaluated() && crc32c_by_hardware())
        return crc32c_by_instruction<false>(nullptr, data.data(), data.size(), crc);
#endif
    return crc32c_by_table(data, crc);
}

/// Copies the data to `to` and returns crc32c(data, crc). The two do not overlap.
///
/// Cost:    25 to 29 GB/s for 64 KiB in cache; memcpy followed by crc32c has 23 (bench/kernel_bench.cpp).
inline std::uint32_t crc32c_copy(std::byte* to, std::span<std::byte const> data,
                                 std::uint32_t crc = 0) noexcept {
#if defined(__x86_64__)
    if (crc32c_by_hardware()) return crc32c_by_instruction<true>(to, data.data(), data.size(), crc);
#endif
    if (!data.empty()) std::memcpy(to, data.data(), data.size());
    return crc32c_by_table(data, crc);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_CRC32C_HPP

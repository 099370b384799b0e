// herring: SHA-256, HMAC and HKDF: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_SHA256_IMPL_HPP
#define HERRING_CRYPTO_SHA256_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

inline constexpr std::uint32_t sha256_constants[64] = {
    0x428a'2f98, 0x7137'4491, 0xb5c0'fbcf, 0xe9b5'dba5, 0x3956'c25b, 0x59f1'11f1, 0x923f'82a4, 0xab1c'5ed5,
    0xd807'aa98, 0x1283'5b01, 0x2431'85be, 0x550c'7dc3, 0x72be'5d74, 0x80de'b1fe, 0x9bdc'06a7, 0xc19b'f174,
    0xe49b'69c1, 0xefbe'4786, 0x0fc1'9dc6, 0x240c'a1cc, 0x2de9'2c6f, 0x4a74'84aa, 0x5cb0'a9dc, 0x76f9'88da,
    0x983e'5152, 0xa831'c66d, 0xb003'27c8, 0xbf59'7fc7, 0xc6e0'0bf3, 0xd5a7'9147, 0x06ca'6351, 0x1429'2967,
    0x27b7'0a85, 0x2e1b'2138, 0x4d2c'6dfc, 0x5338'0d13, 0x650a'7354, 0x766a'0abb, 0x81c2'c92e, 0x9272'2c85,
    0xa2bf'e8a1, 0xa81a'664b, 0xc24b'8b70, 0xc76c'51a3, 0xd192'e819, 0xd699'0624, 0xf40e'3585, 0x106a'a070,
    0x19a4'c116, 0x1e37'6c08, 0x2748'774c, 0x34b0'bcb5, 0x391c'0cb3, 0x4ed8'aa4a, 0x5b9c'ca4f, 0x682e'6ff3,
    0x748f'82ee, 0x78a5'636f, 0x84c8'7814, 0x8cc7'0208, 0x90be'fffa, 0xa450'6ceb, 0xbef9'a3f7, 0xc671'78f2};

HERRING_ALWAYS_INLINE std::uint32_t sha256_word(std::byte const* from) noexcept {
    std::uint32_t word = 0;
    std::memcpy(&word, from, sizeof word);
    return std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
}

/// One round; the caller rotates the names of the words. `sum`: the word of the message plus the constant.
HERRING_ALWAYS_INLINE void sha256_round(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t& d,
                                        std::uint32_t e, std::uint32_t f, std::uint32_t g, std::uint32_t& h,
                                        std::uint32_t sum) noexcept {
    h += (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + (g ^ (e & (f ^ g))) + sum;
    d += h;
    h += (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) | (c & (a | b)));
}

/// The 64 rounds of one block. `w`: room for the words of the message.
[[gnu::hot]] inline void sha256_rounds(sha256_state& state, std::byte const* block,
                                       std::uint32_t (&w)[16]) noexcept {
    for (std::size_t i = 0; i < 16; ++i) w[i] = sha256_word(block + 4 * i);
    auto [a, b, c, d, e, f, g, h] = state;
    auto const next = [&](std::size_t i)
        __attribute__((always_inline)) { // word i + 16, in the place of word i
        std::uint32_t const early = w[(i + 1) % 16], late = w[(i + 14) % 16];
        w[i] += (std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3) + w[(i + 9) % 16] +
                (std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10);
        return w[i];
    };
    for (std::size_t at = 0; at < 64; at += 16) {
        auto const sum = [&](std::size_t i) __attribute__((always_inline)) {
            return (at == 0 ? w[i] : next(i)) + sha256_constants[at + i];
        };
        for (std::size_t i = 0; i < 16; i += 8) { // after eight rounds every word has its old name
            sha256_round(a, b, c, d, e, f, g, h, sum(i));
            sha256_round(h, a, b, c, d, e, f, g, sum(i + 1));
            sha256_round(g, h, a, b, c, d, e, f, sum(i + 2));
            sha256_round(f, g, h, a, b, c, d, e, sum(i + 3));
            sha256_round(e, f, g, h, a, b, c, d, sum(i + 4));
            sha256_round(d, e, f, g, h, a, b, c, sum(i + 5));
            sha256_round(c, d, e, f, g, h, a, b, sum(i + 6));
            sha256_round(b, c, d, e, f, g, h, a, sum(i + 7));
        }
    }
    std::uint32_t const last[8] = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state[i] += last[i];
}

HERRING_SEPARABLE void sha256_blocks(sha256_state& state, std::byte const* blocks,
                                     std::size_t count) noexcept {
    std::uint32_t w[16];
    for (; count != 0; --count, blocks += sha256_block_bytes) sha256_rounds(state, blocks, w);
    erase(w, sizeof w);
}

HERRING_SEPARABLE sha256& sha256::update(std::span<std::byte const> data) noexcept {
    std::size_t const held = bytes_ % sha256_block_bytes;
    bytes_ += data.size();
    if (held != 0) {
        std::size_t const more = std::min(sha256_block_bytes - held, data.size());
        std::copy_n(data.begin(), more, held_.begin() + held);
        if (held + more < sha256_block_bytes) return *this;
        sha256_blocks(state_, held_.data(), 1);
        data = data.subspan(more);
    }
    if (std::size_t const blocks = data.size() / sha256_block_bytes; blocks != 0) {
        sha256_blocks(state_, data.data(), blocks);
        data = data.subspan(blocks * sha256_block_bytes);
    }
    std::copy(data.begin(), data.end(), held_.begin());
    return *this;
}

HERRING_SEPARABLE sha256_digest sha256::finish() noexcept {
    std::uint64_t const bits = bytes_ * 8;
    std::size_t held = bytes_ % sha256_block_bytes;
    held_[held++] = std::byte{0x80};
    if (held > sha256_block_bytes - 8) { // no room for the length
        std::memset(held_.data() + held, 0, sha256_block_bytes - held);
        sha256_blocks(state_, held_.data(), 1);
        held = 0;
    }
    std::memset(held_.data() + held, 0, sha256_block_bytes - held);
    for (std::size_t i = 0; i < 8; ++i)
        held_[sha256_block_bytes - 1 - i] = static_cast<std::byte>(bits >> 8 * i);
    sha256_blocks(state_, held_.data(), 1);
    sha256_digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i)
        digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
}

HERRING_SEPARABLE hmac_sha256::hmac_sha256(std::span<std::byte const> key) noexcept {
    std::array<std::byte, sha256_block_bytes> block{};
    sha256_digest digest{};
    if (key.size() > block.size()) {
        digest = sha256().update(key).finish();
        key = digest;
    }
    std::copy(key.begin(), key.end(), block.begin());
    for (std::byte& b : block) b ^= std::byte{0x36};
    auto& [inner, outer] = *states_;
    inner = outer = sha256_start;
    sha256_blocks(inner, block.data(), 1);
    for (std::byte& b : block) b ^= std::byte{0x36 ^ 0x5c};
    sha256_blocks(outer, block.data(), 1);
    running_ = sha256(inner, sha256_block_bytes);
    erase(&block, sizeof block);
    erase(&digest, sizeof digest);
}

HERRING_SEPARABLE sha256_digest hmac_sha256::finish() noexcept {
    sha256_digest inside = running_.finish();
    running_ = sha256(inner(), sha256_block_bytes);
    sha256_digest const all = sha256(outer(), sha256_block_bytes).update(inside).finish();
    erase(&inside, sizeof inside);
    return all;
}

HERRING_SEPARABLE secret_key hkdf_extract(std::span<std::byte const> salt,
                                          std::span<std::byte const> material) noexcept {
    sha256_digest digest = hmac_sha256(salt).update(material).finish();
    secret_key key(digest);
    erase(&digest, sizeof digest);
    return key;
}

HERRING_SEPARABLE void hkdf_expand(secret_key const& key,
                                   std::initializer_list<std::span<std::byte const>> info,
                                   std::span<std::byte> to) noexcept {
    assert(to.size() <= 255 * sizeof(sha256_digest));
    hmac_sha256 mac(key.bytes());
    sha256_digest part{};
    for (unsigned char number = 1; !to.empty(); ++number) {
        if (number > 1) mac.update(part);
        for (std::span<std::byte const> const piece : info) mac.update(piece);
        std::byte const counter{number};
        part = mac.update({&counter, 1}).finish();
        std::size_t const now = std::min(to.size(), part.size());
        std::copy_n(part.begin(), now, to.begin());
        to = to.subspan(now);
    }
    erase(&part, sizeof part);
}

HERRING_SEPARABLE secret_key hkdf_key(secret_key const& key, std::string_view label,
                                      std::span<std::byte const> context) noexcept {
    std::byte const zero{};
    secret_key derived;
    hkdf_expand(key, {bytes_of(label), {&zero, 1}, context}, derived.bytes());
    return derived;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_SHA256_IMPL_HPP

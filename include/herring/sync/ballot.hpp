// herring: a ballot: one bit a bucket, by which ranks agree on what a step exchanges.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_BALLOT_HPP
#define HERRING_SYNC_BALLOT_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::sync {

/// 512 bits, 64 bytes: what a rank votes for, or what any rank voted for. Buckets from 512 on share the bits of those before.
struct ballot {
    static constexpr std::size_t bits = 512;
    std::uint64_t words[bits / 64] = {};

    static constexpr ballot all() noexcept {
        ballot result;
        for (std::uint64_t& word : result.words) word = ~std::uint64_t{0};
        return result;
    }
    constexpr void set(std::size_t bucket) noexcept {
        words[bucket % bits / 64] |= std::uint64_t{1} << bucket % 64;
    }
    constexpr bool has(std::size_t bucket) const noexcept {
        return (words[bucket % bits / 64] >> bucket % 64 & 1) != 0;
    }
    constexpr bool any() const noexcept {
        std::uint64_t all = 0;
        for (std::uint64_t const word : words) all |= word;
        return all != 0;
    }
    friend constexpr bool operator==(ballot const&, ballot const&) = default;
};
static_assert(sizeof(ballot) == 64);

} // namespace HERRING_NAMESPACE::sync

#endif // HERRING_SYNC_BALLOT_HPP

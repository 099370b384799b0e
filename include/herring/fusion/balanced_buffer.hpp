// herring: fusion into buckets of a least size, which grows with the servers, if asked, so that no shard becomes too small.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_FUSION_BALANCED_BUFFER_HPP
#define HERRING_FUSION_BALANCED_BUFFER_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/fusion/fusion.hpp"

namespace HERRING_NAMESPACE::detail {

// A need, so that a pack prints one sentence: with an assertion in the class itself clang prints more.
template <std::size_t Bytes> struct buffer_above_zero {
    template <class Pack> struct check {
        static constexpr bool value = Bytes > 0;
        static_assert(value,
                      "[HRG-F02] fusion: balanced_buffer needs a size above 0; a common slip is 0 for no "
                      "fusion; name herring::fusion::per_tensor");
    };
};

inline constexpr std::size_t no_size_named = ~std::size_t{0};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::fusion {

/// Closes a bucket once it holds `Bytes`. `balanced_buffer<>` takes 25 MiB, or more where so many servers and ranks share a bucket
/// that each would get less than 128 KiB of it; a size that is named is kept, unless `MinShard` is named too.
///
/// Shape:   tensors in layout order → buckets of at least `Bytes`, or servers × local ranks × `MinShard` where that is more; the last
///          one holds the rest. A tensor is never split between buckets. `to_string(plan)` says what the threshold became.
/// Cost:    fewer, larger messages; the first bucket leaves after `Bytes` of gradients.
/// Source:  Herring, SC'20 (25 MB buffers); the growth keeps a shard F/(n·g) from falling under MinShard.
template <std::size_t Bytes = detail::no_size_named,
          std::size_t MinShard = Bytes == detail::no_size_named ? 128_KiB : 0>
struct balanced_buffer {
    using axis = axes::fusion;
    static constexpr char const* name = "balanced_buffer";
    static constexpr std::size_t bytes = Bytes == detail::no_size_named ? 25_MiB : Bytes;
    static constexpr std::size_t min_shard_bytes = MinShard;
    using needs = herring::needs<detail::buffer_above_zero<Bytes>>;

    /// The threshold for a world of this shape, in bytes.
    static constexpr std::size_t threshold(int servers, int local_ranks) noexcept {
        std::size_t const grown =
            static_cast<std::size_t>(servers) * static_cast<std::size_t>(local_ranks) * MinShard;
        return servers > 1 && grown > bytes ? grown : bytes;
    }

    static constexpr bool closes(fusion_state const& state) noexcept {
        return state.bucket_bytes >= threshold(state.servers, state.local_ranks);
    }
};
static_assert(fusion_policy<balanced_buffer<>>);

} // namespace HERRING_NAMESPACE::fusion

#endif // HERRING_FUSION_BALANCED_BUFFER_HPP

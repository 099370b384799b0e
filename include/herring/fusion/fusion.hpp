// herring: fusion policies, which close a bucket of tensors: the concept and its models.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_FUSION_FUSION_HPP
#define HERRING_FUSION_FUSION_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstddef>

namespace HERRING_NAMESPACE {

/// The open bucket after a tensor has been added to it.
struct fusion_state {
    std::size_t bucket_bytes = 0;   ///< bytes in the open bucket, including the tensor just added
    std::size_t bucket_tensors = 0; ///< tensors in it
    std::size_t next_bytes = 0;     ///< bytes of the tensor that comes next (0: none, or empty)
    int servers = 1;                ///< servers that share a bucket
    int local_ranks = 1;            ///< ranks of the largest node
    /// By declared links: bytes of a bucket that its messages pay for; 0: no links.
    std::size_t links_bytes = 0;
};

template <class Policy>
concept fusion_named = requires {
    { Policy::name } -> std::convertible_to<char const*>;
};
template <class Policy>
concept fusion_closes = requires(fusion_state const& state) {
    { Policy::closes(state) }
    noexcept->std::same_as<bool>;
};

/// A fusion policy is one pure function over `fusion_state`, the same on every rank.
///
/// Errors:  `bad_argument` from the reducer's constructor if two calls with the same argument differ: each
///          call is made twice and compared.
template <class Policy>
concept fusion_policy =
    std::same_as<typename Policy::axis, axes::fusion> && fusion_named<Policy> && fusion_closes<Policy>;

template <class Policy> struct check<axes::fusion, Policy> {
    static constexpr int broken = first_broken({fusion_named<Policy>, fusion_closes<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-F01] fusion: needs 'static constexpr char const* name'; a common slip is to "
                  "leave it out; give it the name of your type");
    static_assert(broken != 1,
                  "[HRG-F03] fusion: needs 'static bool closes(fusion_state const&) noexcept'; a common "
                  "slip is to forget static or noexcept; add both");
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail {

// A need, so that a pack prints one sentence: an assertion in the class itself makes clang print more.
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

/// Closes a bucket once it holds `Bytes`. `balanced_buffer<>` takes 25 MiB, or more where so many servers and
/// ranks share a bucket that each would get less than 128 KiB of it. A named size is kept, unless `MinShard`
/// is named too. With declared links (`herring::links`) the size follows from the rate and the cost of a
/// message, unless one is named.
///
/// Shape:   tensors in layout order → buckets of at least `Bytes`, or servers × local ranks × `MinShard`
///          where that is more; the last bucket holds the rest. A tensor is never split between buckets.
///          `to_string(plan)` prints the threshold.
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
    static constexpr std::size_t threshold(int servers, int local_ranks, std::size_t by_links = 0) noexcept {
        if (Bytes == detail::no_size_named && by_links > 0) return by_links;
        std::size_t const grown =
            static_cast<std::size_t>(servers) * static_cast<std::size_t>(local_ranks) * MinShard;
        return servers > 1 && grown > bytes ? grown : bytes;
    }

    static constexpr bool closes(fusion_state const& state) noexcept {
        return state.bucket_bytes >= threshold(state.servers, state.local_ranks, state.links_bytes);
    }
};
static_assert(fusion_policy<balanced_buffer<>>);

/// Every tensor leaves as soon as it is ready.
///
/// Shape:   n tensors → n buckets.
/// Cost:    earliest start, most messages: each of a model's many tiny tensors costs a round trip.
struct per_tensor {
    using axis = axes::fusion;
    static constexpr char const* name = "per_tensor";
    static constexpr bool closes(fusion_state const&) noexcept { return true; }
};
static_assert(fusion_policy<per_tensor>);

/// All tensors leave together, when the last one is ready.
///
/// Shape:   n tensors → 1 bucket.
/// Cost:    fewest messages, no overlap with the caller's compute.
struct whole_model {
    using axis = axes::fusion;
    static constexpr char const* name = "whole_model";
    static constexpr bool closes(fusion_state const&) noexcept { return false; }
};
static_assert(fusion_policy<whole_model>);

} // namespace HERRING_NAMESPACE::fusion

#endif // HERRING_FUSION_FUSION_HPP

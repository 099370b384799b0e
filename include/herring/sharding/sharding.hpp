// herring: the concept of sharding policies: the rule that gives every element of a bucket a server.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SHARDING_SHARDING_HPP
#define HERRING_SHARDING_SHARDING_HPP

#include "herring/base/config.hpp"
#include "herring/model/roles.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE {

/// Where a tensor lies in its bucket, in elements from the bucket's start.
struct bucket_tensor {
    std::size_t index = 0;    ///< in the layout
    std::size_t offset = 0;   ///< a multiple of the bucket's line_elements
    std::size_t elements = 0; ///< with its padding to a cache line, but for the last one of a bucket
};

/// A bucket as a sharding policy sees it.
struct bucket_view {
    std::size_t elements = 0;               ///< with padding between tensors
    std::size_t line_elements = 1;          ///< elements to a cache line; a range begins at a multiple of it
    std::span<bucket_tensor const> tensors; ///< in order; they cover the bucket
};

namespace clauses::sharding {
// A name, not a lambda: nvcc takes no lambda in a requirement.
struct assign {
    void operator()(std::size_t /*offset*/, std::size_t /*elements*/, server_id /*server*/) const noexcept {}
};
} // namespace clauses::sharding

template <class Policy>
concept sharding_named = requires {
    { Policy::name } -> std::convertible_to<char const*>;
};
template <class Policy>
concept sharding_assigns = requires(bucket_view const& bucket, roles const& nodes,
                                    clauses::sharding::assign const& assign) {
    Policy::shard(bucket, nodes, assign);
};

/// A sharding policy assigns ranges in ascending order that cover the bucket once: `assign(offset, elements, server)` with a
/// `server_id` below `nodes.server_count()`, and `offset` a multiple of the bucket's line_elements. Pure: the same on every rank.
///
/// `nodes.share(server)` is the server's share of a bucket according to the placement. A policy may ignore it.
///
/// Errors: `bad_argument` on every rank if a bucket is not covered so, from the reducer's constructor (and from
///         `all_reduce`, whose buffers are divided at the call); the text names the policy, the bucket and the range.
template <class Policy>
concept sharding_policy =
    std::same_as<typename Policy::axis, axes::sharding> && sharding_named<Policy> && sharding_assigns<Policy>;

template <class Policy> struct check<axes::sharding, Policy> {
    static constexpr int broken = first_broken({sharding_named<Policy>, sharding_assigns<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-S01] sharding: needs 'static constexpr char const* name'; a common slip is to "
                  "leave it out; give it the name of your type");
    static_assert(
        broken != 1,
        "[HRG-S02] sharding: needs 'template <class Assign> static void shard(bucket_view const&, "
        "herring::roles const&, Assign&& assign)'; a common slip is to return the ranges, or to take "
        "the number of servers; call assign(offset, elements, herring::server_id) for each");
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_SHARDING_SHARDING_HPP

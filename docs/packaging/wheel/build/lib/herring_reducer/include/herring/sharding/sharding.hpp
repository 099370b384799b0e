// herring: sharding policies, which give every element of a bucket a server: the concept and its models.
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
    std::size_t elements = 0; ///< with padding to a cache line, except for the last tensor of a bucket
};

/// A bucket as a sharding policy sees it.
struct bucket_view {
    std::size_t elements = 0;      ///< with padding between tensors; bytes, in a call that combines nothing
    std::size_t line_elements = 1; ///< elements to a cache line; a range begins at a multiple of it
    std::span<bucket_tensor const> tensors; ///< in order; they cover the bucket
};

namespace clauses::sharding {
// A named type: nvcc takes no lambda in a requirement.
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

/// A sharding policy assigns ranges in ascending order that cover the bucket once: `assign(offset, elements,
/// server)` with a `server_id` below `nodes.server_count()`, and `offset` a multiple of the bucket's
/// line_elements. Pure: the same on every rank.
///
/// `nodes.share(server)` is the server's share of a bucket according to the placement. A policy may ignore
/// the shares.
///
/// Errors:  `bad_argument` on every rank if the ranges do not cover a bucket in this way, from the reducer's
///          constructor (and from `all_reduce`, which divides its buffers at the call). The text names
///          policy, bucket and range.
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

namespace HERRING_NAMESPACE::sharding {

/// Cuts every bucket into one range a server, in proportion to the server's share, whatever tensors the
/// bucket holds.
///
/// Shape:   bucket of B lines, S servers of equal share → S ranges of ⌈B/S⌉ or ⌊B/S⌋ lines, in order. A
///          server of share h of H: ⌊B·h/H⌋ lines or one more. Empty ranges are left out.
/// Cost:    max/mean load of servers with equal shares < 1 + S/B.
/// Source:  Herring, SC'20: balanced fusion buffers.
struct balanced {
    using axis = axes::sharding;
    static constexpr char const* name = "balanced";

    template <class Assign>
    static constexpr void shard(bucket_view const& bucket, roles const& nodes, Assign&& assign) {
        std::size_t const count = nodes.servers.size();
        std::size_t const all = nodes.all_shares();
        std::size_t const lines = (bucket.elements + bucket.line_elements - 1) / bucket.line_elements;
        // ⌊lines · share / all⌋, by factors that do not overflow.
        auto const lines_of = [whole = lines / all, rest = lines % all, all](std::size_t share) {
            return whole * share + rest * share / all;
        };
        std::size_t more = lines; // the first `more` servers hold one line more
        for (std::size_t server = 0; server < count; ++server)
            more -= lines_of(nodes.share(server_id::at(server)));
        std::size_t at = 0;
        for (std::size_t server = 0; server < count; ++server) {
            server_id const id = server_id::at(server);
            std::size_t const wanted =
                (lines_of(nodes.share(id)) + (server < more ? 1 : 0)) * bucket.line_elements;
            std::size_t const size = wanted < bucket.elements - at ? wanted : bucket.elements - at;
            if (size > 0) assign(at, size, id);
            at += size;
        }
    }
};
static_assert(sharding_policy<balanced>);

/// Assigns tensor i as a whole to server i mod S, whatever the server's share: a baseline, not a
/// recommendation.
///
/// Shape:   bucket of t tensors → t ranges.
/// Cost:    the server of the largest tensor carries all of it: max/mean load up to S.
/// Source:  the baseline of Herring, SC'20.
struct whole_tensor {
    using axis = axes::sharding;
    static constexpr char const* name = "whole_tensor";

    template <class Assign>
    static constexpr void shard(bucket_view const& bucket, roles const& nodes, Assign&& assign) {
        for (bucket_tensor const& tensor : bucket.tensors)
            if (tensor.elements > 0)
                assign(tensor.offset, tensor.elements, server_id::at(tensor.index % nodes.servers.size()));
    }
};
static_assert(sharding_policy<whole_tensor>);

} // namespace HERRING_NAMESPACE::sharding

#endif // HERRING_SHARDING_SHARDING_HPP

// herring: `scatter(reduce, in, out, root)`: every rank gets its block from the root.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_SCATTER_HPP
#define HERRING_COLLECTIVES_SCATTER_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/blocks.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE {

namespace detail {
template <class Pack, class Element>
auto scatter_blocks(basic_reducer<Pack>& reduce, std::span<Element const> in, std::span<Element> out,
                    int root, time_point deadline) {
    return block_call::run<Pack, Element>(
        reduce, block_call::kind::scatter, in, out, root, deadline,
        [&](auto& core, block_sizes& sizes, std::size_t ranks) {
            if (core.session_.ranks().rank() == root) {
                if (in.size() != out.size() * ranks)
                    throw_not_blocks(core.calls_, "scatter", in.size(), out.size(), ranks);
                check_blocks(core.calls_, "scatter", std::as_bytes(in), std::as_bytes(out),
                             static_cast<std::size_t>(root) * out.size_bytes());
            }
            sizes.each = out.size_bytes();
            sizes.from = root;
            return status();
        });
}
} // namespace detail

/// Gives every rank its block of the root's buffer. Collective: the same size and root on every rank, between
/// steps. The update rule is not used; the elements are of any trivially copyable type, whatever the
/// reducer's.
///
/// Shape:    R ranks: `in`: R·n elements at the root, blocks in the order of ranks; elsewhere it is not
///           looked at, and may be empty. `out`: n elements.
/// Cost:     each block out of the root's node once. Small blocks of N nodes, 32 KiB of all together at most,
///           go through one server: 2(N−1) messages in two hops. On one node the root copies all in, and each
///           rank its block out. The root's own block is copied once, unless it is where it belongs.
/// Blocks:   until this rank's part is done: its block is there, and at the root `in` is not read any more.
///           No rank returns before all have called. At most `world::default_timeout()`, or until a deadline
///           behind the arguments, milliseconds or a time: then a failure is returned, as a `status`, and a
///           misuse thrown. A passed deadline ends the world.
/// Lifetime: until it has returned. At the root `out` may be its block of `in`, and must not overlap it
///           otherwise. After an error the content of `out` is undefined.
/// Errors:   as `reducer::all_reduce`; `bad_argument`, of a root that is no rank, a size that is not R·n at
///           the root, buffers that overlap; `bad_state`, in the middle of a step; `mismatch`, of sizes or
///           roots that differ between ranks. A placement with servers is a sentence of the compiler,
///           [HRG-C13].
/// Example:  `herring::scatter(reduce, shards, mine, 0); // std::vector<float> shards(rank == 0 ? ranks * n :
///           0)`
template <class Pack, class Range, class Results, class... Until>
requires detail::takes_any<detail::takes_rooted_blocks, Pack, Range, Results, int, Until...>
auto scatter(basic_reducer<Pack>& reduce, Range&& in, Results&& out, int root, Until... until) {
    using access = detail::collective_call;
    return access::ended<Until...>(detail::scatter_blocks<Pack, detail::element_in<Range>>(
        reduce, in, out, root, access::deadline_of(reduce, until...)));
}
/// The same with blocks of given sizes, which may be 0: `counts[r]` elements to rank r, at the root;
/// elsewhere `counts` is not looked at, and may be empty.
///
/// Shape:    `in`: the sum of `counts`, at the root; `out`: this rank's count.
/// Cost:     all ranks tell each other their counts first: an all_gather of 16·R² bytes, and as much memory
///           for the time of the call; then as above, of blocks as large as the largest.
/// Errors:   as above; `mismatch` on all ranks, if the root's counts are not what the others have, or they
///           name other roots: it names two ranks and their counts, nothing was moved, and the world goes on.
template <class Pack, class Range, class Results, class Counts, class... Until>
requires detail::takes_any<detail::takes_counted_rooted_blocks, Pack, Range, Results, Counts, int, Until...>
auto scatter(basic_reducer<Pack>& reduce, Range&& in, Results&& out, Counts const& counts, int root,
             Until... until) {
    using access = detail::collective_call;
    return access::ended<Until...>(detail::block_call::run_counted<Pack, detail::element_in<Range>>(
        reduce, detail::block_call::kind::scatter, in, counts, out, {}, root,
        access::deadline_of(reduce, until...)));
}

/// Any other call is one sentence of the compiler, [HRG-C01]. The reducer of a refused pack takes all.
template <class Pack, class... Arguments>
requires(detail::accepted<Pack> && !detail::takes_any<detail::takes_rooted_blocks, Pack, Arguments...> &&
         !detail::takes_any<detail::takes_counted_rooted_blocks, Pack, Arguments...>) detail::inert_result
    scatter(basic_reducer<Pack>&, Arguments&&...) {
    return detail::collective_call::refuse<detail::takes_rooted_blocks, Pack>();
}
template <class Element, class... Arguments>
detail::inert_result scatter(basic_reducer<rejected<Element>>&, Arguments&&...) {
    return {};
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_COLLECTIVES_SCATTER_HPP

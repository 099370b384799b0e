// herring: `gather(reduce, in, out, root)`: every rank's block, at the root.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_GATHER_HPP
#define HERRING_COLLECTIVES_GATHER_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/blocks.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE {

namespace detail {
template <class Pack, class Element>
auto gather_blocks(basic_reducer<Pack>& reduce, std::span<Element const> in, std::span<Element> out, int root,
                   time_point deadline) {
    return block_call::run<Pack, Element>(
        reduce, block_call::kind::gather, in, out, root, deadline,
        [&](auto& core, block_sizes& sizes, std::size_t ranks) {
            if (core.session_.ranks().rank() == root) {
                if (out.size() != in.size() * ranks)
                    throw_not_blocks(core.calls_, "gather", in.size(), out.size(), ranks);
                check_blocks(core.calls_, "gather", std::as_bytes(out), std::as_bytes(in),
                             static_cast<std::size_t>(root) * in.size_bytes());
            }
            sizes.each = in.size_bytes();
            sizes.to = root;
            return status();
        });
}
} // namespace detail

/// Puts a block of every rank together at the root. Collective: the same size and root on every rank, between
/// steps. The update rule is not used; the elements are of any trivially copyable type, whatever the
/// reducer's.
///
/// Shape:    R ranks: `in`: n elements; `out`: R·n elements at the root, blocks in the order of ranks;
///           elsewhere it is not looked at, and may be empty.
/// Cost:     each block out of its node once, and into the root's. Small blocks of N nodes, 32 KiB of all
///           together at most, go through one server: 2(N−1) messages in two hops. On one node one copy in on
///           each rank, and one out at the root. The root's own block is copied once, unless it is where it
///           belongs.
/// Blocks:   until this rank's part is done: the root has all blocks, and elsewhere `in` is not read any
///           more. No rank returns before all have called. At most `world::default_timeout()`, or until a
///           deadline behind the arguments, milliseconds or a time: then a failure is returned, as a
///           `status`, and a misuse thrown. A passed deadline ends the world.
/// Lifetime: until it has returned. At the root `in` may be its block of `out`, and must not overlap it
///           otherwise. After an error the content of `out` is undefined.
/// Errors:   as `reducer::all_reduce`; `bad_argument`, of a root that is no rank, a size that is not R·n at
///           the root, buffers that overlap; `bad_state`, in the middle of a step; `mismatch`, of sizes or
///           roots that differ between ranks. A placement with servers is a sentence of the compiler,
///           [HRG-C13].
/// Example:  `herring::gather(reduce, losses, all, 0); // std::vector<float> all(rank == 0 ? ranks * n : 0)`
template <class Pack, class Range, class Results, class... Until>
requires detail::takes_any<detail::takes_rooted_blocks, Pack, Range, Results, int, Until...>
auto gather(basic_reducer<Pack>& reduce, Range&& in, Results&& out, int root, Until... until) {
    using access = detail::collective_call;
    return access::ended<Until...>(detail::gather_blocks<Pack, detail::element_in<Range>>(
        reduce, in, out, root, access::deadline_of(reduce, until...)));
}
/// The same with blocks of given sizes, which may be 0: `counts[r]` elements from rank r, at the root;
/// elsewhere `counts` is not looked at, and may be empty.
///
/// Shape:    `in`: this rank's count; `out`: the sum of `counts`, at the root.
/// Cost:     all ranks tell each other their counts first: an all_gather of 16·R² bytes, and as much memory
///           for the time of the call; then as above, of blocks as large as the largest.
/// Errors:   as above; `mismatch` on all ranks, if the root's counts are not what the others have, or they
///           name other roots: it names two ranks and their counts, nothing was moved, and the world goes on.
template <class Pack, class Range, class Results, class Counts, class... Until>
requires detail::takes_any<detail::takes_counted_rooted_blocks, Pack, Range, Results, Counts, int, Until...>
auto gather(basic_reducer<Pack>& reduce, Range&& in, Results&& out, Counts const& counts, int root,
            Until... until) {
    using access = detail::collective_call;
    return access::ended<Until...>(detail::block_call::run_counted<Pack, detail::element_in<Range>>(
        reduce, detail::block_call::kind::gather, in, {}, out, counts, root,
        access::deadline_of(reduce, until...)));
}

/// Any other call is one sentence of the compiler, [HRG-C01]. The reducer of a refused pack takes all.
template <class Pack, class... Arguments>
requires(detail::accepted<Pack> && !detail::takes_any<detail::takes_rooted_blocks, Pack, Arguments...> &&
         !detail::takes_any<detail::takes_counted_rooted_blocks, Pack, Arguments...>) detail::inert_result
    gather(basic_reducer<Pack>&, Arguments&&...) {
    return detail::collective_call::refuse<detail::takes_rooted_blocks, Pack>();
}
template <class Element, class... Arguments>
detail::inert_result gather(basic_reducer<rejected<Element>>&, Arguments&&...) {
    return {};
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_COLLECTIVES_GATHER_HPP

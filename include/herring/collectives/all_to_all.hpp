// herring: `all_to_all(reduce, in, out)`: every rank gives a block to every rank.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_ALL_TO_ALL_HPP
#define HERRING_COLLECTIVES_ALL_TO_ALL_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/blocks.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE {

namespace detail {
template <class Pack, class Element>
auto exchange_blocks(basic_reducer<Pack>& reduce, std::span<Element const> in, std::span<Element> out,
                     time_point deadline) {
    return block_call::run<Pack, Element>(
        reduce, block_call::kind::all_to_all, in, out, -1, deadline,
        [&](auto& core, block_sizes& sizes, std::size_t ranks) {
            if (in.size() != out.size() || in.size() % ranks != 0)
                throw_not_blocks(core.calls_, "all_to_all", in.size(), out.size(), ranks);
            check_blocks(core.calls_, "all_to_all", std::as_bytes(in), std::as_bytes(out), in.size_bytes());
            sizes.each = in.size_bytes() / ranks;
            return status();
        });
}
} // namespace detail

/// Gives a block to each rank, and gets one from each. Collective: the same size on every rank, between
/// steps. The update rule is not used; the elements are of any trivially copyable type, whatever the
/// reducer's.
///
/// Shape:    R ranks, blocks of n elements: `in`, `out`: R·n elements, blocks in the order of ranks. Block r
///           of `in` is block s of `out` on rank r, from rank s.
/// Cost:     on one node a rank copies its blocks in, and those for it out. Over N nodes, blocks for other
///           nodes out, as many in; small ones in one message to every other node. Its own block is copied
///           once.
/// Blocks:   until this rank has all blocks, and so all ranks have called: at most
///           `world::default_timeout()`, or until a deadline behind the arguments, milliseconds or a time:
///           then a failure is returned, as a `status`, and a misuse thrown. A passed deadline ends the
///           world.
/// Lifetime: until it has returned. `in` and `out` must not overlap. After an error the content of `out` is
///           undefined.
/// Errors:   as `reducer::all_reduce`; `bad_argument`, of sizes that differ, or are no multiple of R, and of
///           buffers that overlap; `bad_state`, in the middle of a step; `mismatch`, of sizes that differ
///           between ranks. A placement with servers is a sentence of the compiler, [HRG-C13].
/// Example:  `herring::all_to_all(reduce, routed, received); // std::vector<token>, 64 for each rank`
template <class Pack, class Range, class Results, class... Until>
requires detail::takes_any<detail::takes_blocks, Pack, Range, Results, Until...>
auto all_to_all(basic_reducer<Pack>& reduce, Range&& in, Results&& out, Until... until) {
    using access = detail::collective_call;
    return access::ended<Until...>(detail::exchange_blocks<Pack, detail::element_in<Range>>(
        reduce, in, out, access::deadline_of(reduce, until...)));
}
/// The same with blocks of given sizes, which may be 0: `send_counts[r]` elements to rank r,
/// `receive_counts[s]` from rank s.
///
/// Shape:    `in`: the sum of `send_counts`; `out`: the sum of `receive_counts`.
/// Cost:     all ranks tell each other their counts first: an all_gather of 16·R² bytes, and as much memory
///           for the time of the call; then as above, of R blocks as large as the largest.
/// Errors:   as above; `mismatch` on all ranks, if one sends what the other does not expect: it names both
///           and their counts, nothing was moved, and the world goes on.
template <class Pack, class Range, class SendCounts, class Results, class ReceiveCounts, class... Until>
requires detail::takes_any<detail::takes_counted_blocks, Pack, Range, SendCounts, Results, ReceiveCounts,
                           Until...>
auto all_to_all(basic_reducer<Pack>& reduce, Range&& in, SendCounts const& send_counts, Results&& out,
                ReceiveCounts const& receive_counts, Until... until) {
    using access = detail::collective_call;
    return access::ended<Until...>(detail::block_call::run_counted<Pack, detail::element_in<Range>>(
        reduce, detail::block_call::kind::all_to_all, in, send_counts, out, receive_counts, -1,
        access::deadline_of(reduce, until...)));
}

/// Any other call is one sentence of the compiler, [HRG-C01]. The reducer of a refused pack takes all.
template <class Pack, class... Arguments>
requires(detail::accepted<Pack> && !detail::takes_any<detail::takes_blocks, Pack, Arguments...> &&
         !detail::takes_any<detail::takes_counted_blocks, Pack, Arguments...>) detail::inert_result
    all_to_all(basic_reducer<Pack>&, Arguments&&...) {
    return detail::collective_call::refuse<detail::takes_blocks, Pack>();
}
template <class Element, class... Arguments>
detail::inert_result all_to_all(basic_reducer<rejected<Element>>&, Arguments&&...) {
    return {};
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_COLLECTIVES_ALL_TO_ALL_HPP

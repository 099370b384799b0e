// herring: `reduce_scatter(reduce, in, mine)`: combines the ranks' buffers; each rank gets its range.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_REDUCE_SCATTER_HPP
#define HERRING_COLLECTIVES_REDUCE_SCATTER_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/call.hpp"
#include "herring/machine/time.hpp"

#include <chrono>
#include <span>

namespace HERRING_NAMESPACE {

/// Combines a buffer of n elements over all ranks by the reducer's rule; each rank gets its own range of the
/// result. Collective: the same n on every rank, between steps. The pack has to name the rule ([HRG-C03]).
///
/// Shape:    `in`: n elements; `mine`: reduce.owned(n).elements.
/// Result:   the bits that all_reduce has there.
/// Cost:     over N nodes (N−1)/N of the buffer out and in: half of all_reduce's. Small ones: one message to
///           every other node, one way. On one node a rank copies in what others own, and reads what it owns.
/// Blocks:   until this rank has its range, and so all ranks have called: at most `world::default_timeout()`.
/// Lifetime: until it has returned. `mine` may be where it belongs in `in`, and must not overlap it
///           otherwise. After an error its content is undefined.
/// Errors:   as `reducer::all_reduce`; `bad_argument`, of a range of another size, or one that overlaps the
///           buffer elsewhere; `bad_state`, in the middle of a step; `mismatch`, of sizes that differ between
///           ranks.
template <detail::accepted Pack>
void reduce_scatter(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                    std::span<detail::element_of<Pack>> mine) {
    reduce_scatter(reduce, in, mine, detail::collective_call::timeout_of(reduce)).value();
}
/// The same with a timeout from now on: a failure is returned, a misuse thrown. A passed deadline ends the
/// world.
template <detail::accepted Pack>
status reduce_scatter(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                      std::span<detail::element_of<Pack>> mine, std::chrono::milliseconds timeout) {
    return reduce_scatter(reduce, in, mine, detail::deadline_in(timeout));
}
/// The same with a time at which the deadline passes.
template <detail::accepted Pack>
status reduce_scatter(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                      std::span<detail::element_of<Pack>> mine, time_point deadline) {
    using access = detail::collective_call;
    (void)holds<detail::collective_on_host<access::on_device<Pack>>>;
    (void)holds<detail::collective_rule<access::rule_is_named<Pack>>>;
    return access::run(reduce,
                       {.operation = access::number_of<Pack, access::reduce_scatter<Pack>>(),
                        .name = "reduce_scatter",
                        .takes = access::share::owned},
                       std::as_bytes(in), std::as_bytes(mine), deadline);
}

/// Any other call is one sentence of the compiler, [HRG-C01]. The reducer of a refused pack takes all.
template <class Pack, class... Arguments>
requires detail::no_form<detail::takes_ranges, Pack, Arguments...> detail::inert_result
reduce_scatter(basic_reducer<Pack>&, Arguments&&...) {
    return detail::collective_call::refuse<detail::takes_ranges, Pack>();
}
template <class Element, class... Arguments>
detail::inert_status<Arguments...> reduce_scatter(basic_reducer<rejected<Element>>&, Arguments&&...) {
    return detail::inert_status<Arguments...>();
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_COLLECTIVES_REDUCE_SCATTER_HPP

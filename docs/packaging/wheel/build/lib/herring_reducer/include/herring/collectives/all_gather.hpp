// herring: `all_gather(reduce, mine, out)`: every rank gets the ranges that all ranks own, in one buffer.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_ALL_GATHER_HPP
#define HERRING_COLLECTIVES_ALL_GATHER_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/call.hpp"
#include "herring/engine/operations/all_gather.hpp"
#include "herring/machine/time.hpp"

#include <chrono>
#include <span>

namespace HERRING_NAMESPACE {

namespace detail {
template <class Pack, class Element>
status gather_all(basic_reducer<Pack>& reduce, std::span<Element const> mine, std::span<Element> out,
                  time_point deadline) {
    using access = collective_call;
    (void)holds<collective_on_host<access::on_device<Pack>>>;
    return access::run(reduce,
                       {.operation = access::number_of<Pack, operations::all_gather>(),
                        .name = "all_gather",
                        .gives = access::share::owned,
                        .moved_bytes = sizeof(Element)},
                       std::as_bytes(out), std::as_bytes(mine), deadline);
}
} // namespace detail

/// Puts the ranges that the ranks own together: a buffer of n elements, the same on every rank. Collective:
/// the same n on every rank, between steps. The update rule is not used.
///
/// Shape:    `mine`: reduce.owned(n).elements; `out`: n elements.
/// Cost:     over N nodes (N−1)/N of the buffer out and in: half of all_reduce's; received where it belongs.
///           Small ones: one message to every other node, one way, or ⌈log2 N⌉ one after the other where
///           these cost less. On one node a rank copies in its range, and copies out all.
/// Blocks:   until this rank has all ranges, and so all ranks have called: at most
///           `world::default_timeout()`.
/// Lifetime: until it has returned. `mine` may be where it belongs in `out`, and must not overlap it
///           otherwise. After an error the content of `out` is undefined.
/// Errors:   as `reducer::all_reduce`; `bad_argument`, of a range of another size, or one that overlaps the
///           buffer elsewhere; `bad_state`, in the middle of a step; `mismatch`, of sizes that differ between
///           ranks.
template <detail::accepted Pack>
void all_gather(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> mine,
                std::span<detail::element_of<Pack>> out) {
    all_gather(reduce, mine, out, detail::collective_call::timeout_of(reduce)).value();
}
/// The same with a timeout from now on: a failure is returned, a misuse thrown. A passed deadline ends the
/// world.
template <detail::accepted Pack>
status all_gather(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> mine,
                  std::span<detail::element_of<Pack>> out, std::chrono::milliseconds timeout) {
    return all_gather(reduce, mine, out, detail::deadline_in(timeout));
}
/// The same with a time at which the deadline passes.
template <detail::accepted Pack>
status all_gather(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> mine,
                  std::span<detail::element_of<Pack>> out, time_point deadline) {
    return detail::gather_all<Pack, detail::element_of<Pack>>(reduce, mine, out, deadline);
}
/// The same with elements of any other trivially copyable type, in spans or other contiguous ranges, whatever
/// the reducer's elements: bytes, numbers, structs. They are divided between the ranks as the reducer's are.
///
/// Errors:  `mismatch` too, of element sizes that differ between ranks.
/// Example: `herring::all_gather(reduce, std::as_bytes(own), all); // std::vector<std::byte> all(n)`
template <class Pack, class Range, class Results, class... Until>
requires detail::moves_form<detail::takes_moved_ranges, Pack, Range, Results, Until...>
auto all_gather(basic_reducer<Pack>& reduce, Range&& mine, Results&& out, Until... until) {
    using access = detail::collective_call;
    return access::ended<Until...>(detail::gather_all<Pack, detail::element_in<Range>>(
        reduce, mine, out, access::deadline_of(reduce, until...)));
}

/// Any other call is one sentence of the compiler, [HRG-C01]. The reducer of a refused pack takes all.
template <class Pack, class... Arguments>
requires detail::no_moved_form<detail::takes_moved_ranges, Pack, Arguments...> detail::inert_result
all_gather(basic_reducer<Pack>&, Arguments&&...) {
    return detail::collective_call::refuse<detail::takes_moved_ranges, Pack>();
}
template <class Element, class... Arguments>
detail::inert_status<Arguments...> all_gather(basic_reducer<rejected<Element>>&, Arguments&&...) {
    return detail::inert_status<Arguments...>();
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_COLLECTIVES_ALL_GATHER_HPP

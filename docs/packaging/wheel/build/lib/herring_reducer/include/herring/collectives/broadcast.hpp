// herring: `broadcast(reduce, inout, root)`: every rank gets the root's buffer.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_BROADCAST_HPP
#define HERRING_COLLECTIVES_BROADCAST_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/call.hpp"
#include "herring/engine/operations/broadcast.hpp"
#include "herring/machine/time.hpp"

#include <chrono>
#include <span>

namespace HERRING_NAMESPACE {

namespace detail {
template <class Pack, class Element>
status spread_from(basic_reducer<Pack>& reduce, std::span<Element> inout, int root, time_point deadline) {
    using access = collective_call;
    (void)holds<collective_on_host<access::on_device<Pack>>>;
    return access::run(reduce,
                       {.operation = access::number_of<Pack, operations::broadcast>(),
                        .name = "broadcast",
                        .gives = access::share::root,
                        .takes = access::share::not_root,
                        .root = root,
                        .moved_bytes = sizeof(Element)},
                       std::as_bytes(inout), {}, deadline);
}
} // namespace detail

/// Copies the root's buffer to all ranks. Collective: the same size and root on every rank, between steps.
/// The update rule is not used.
///
/// Shape:    n elements; the root's are read, the others' written.
/// Cost:     over N nodes at most 2(N−1)/N of the buffer out of the root's node and (N−2)/N out of each other
///           one. Small ones: one message from the root's node to every other. On one node one copy in and,
///           on each rank, one out.
/// Blocks:   until this rank's part is done: elsewhere the buffer is there, and at the root it is not read
///           any more. No rank returns before all have called, and one may return before others do. At most
///           `world::default_timeout()`.
/// Lifetime: until it has returned; after an error the content is undefined, but for the root's.
/// Errors:   as `reducer::all_reduce`; `bad_argument`, of a root that is no rank; `bad_state`, in the middle
///           of a step; `mismatch`, of sizes or roots that differ between ranks.
template <detail::accepted Pack>
void broadcast(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack>> inout, int root) {
    broadcast(reduce, inout, root, detail::collective_call::timeout_of(reduce)).value();
}
/// The same with a timeout from now on: a failure is returned, a misuse thrown. A passed deadline ends the
/// world.
template <detail::accepted Pack>
status broadcast(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack>> inout, int root,
                 std::chrono::milliseconds timeout) {
    return broadcast(reduce, inout, root, detail::deadline_in(timeout));
}
/// The same with a time at which the deadline passes.
template <detail::accepted Pack>
status broadcast(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack>> inout, int root,
                 time_point deadline) {
    return detail::spread_from<Pack, detail::element_of<Pack>>(reduce, inout, root, deadline);
}
/// The same with elements of any other trivially copyable type, in a span or another contiguous range,
/// whatever the reducer's elements: bytes, numbers, structs.
///
/// Errors:  `mismatch` too, of element sizes that differ between ranks.
/// Example: `herring::broadcast(reduce, name, 0); // std::string name, as long on every rank`
template <class Pack, class Range, class... Until>
requires detail::moves_form<detail::takes_root, Pack, Range, int, Until...>
auto broadcast(basic_reducer<Pack>& reduce, Range&& inout, int root, Until... until) {
    using access = detail::collective_call;
    return access::ended<Until...>(detail::spread_from<Pack, detail::element_in<Range>>(
        reduce, inout, root, access::deadline_of(reduce, until...)));
}

/// Any other call is one sentence of the compiler, [HRG-C01]. The reducer of a refused pack takes all.
template <class Pack, class... Arguments>
requires detail::no_moved_form<detail::takes_root, Pack, Arguments...> detail::inert_result
broadcast(basic_reducer<Pack>&, Arguments&&...) {
    return detail::collective_call::refuse<detail::takes_root, Pack>();
}
template <class Element, class... Arguments>
detail::inert_status<Arguments...> broadcast(basic_reducer<rejected<Element>>&, Arguments&&...) {
    return detail::inert_status<Arguments...>();
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_COLLECTIVES_BROADCAST_HPP

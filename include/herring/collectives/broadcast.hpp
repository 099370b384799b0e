// herring: `broadcast(reduce, inout, root)`: every rank gets the root's buffer.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_BROADCAST_HPP
#define HERRING_COLLECTIVES_BROADCAST_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/door.hpp"
#include "herring/engine/operations/broadcast.hpp"

#include <chrono>
#include <span>

namespace HERRING_NAMESPACE {

/// Copies the root's buffer to all ranks. Collective: the same size and root on every rank, between steps. No rule is asked.
///
/// Shape:    n elements; the root's are read, the others' written. With n = 0, on all ranks, nothing is done.
/// Cost:     over N nodes at most 2(N−1)/N of the buffer out of the root's node and (N−2)/N out of each other one. Small ones:
///           one message from the root's node to every other. On one node one copy in and, on each rank, one out.
/// Blocks:   until done on all ranks, at most `world::default_timeout()`.
/// Lifetime: until it has returned; after an error the content is undefined, but for the root's.
/// Errors:   as `reducer::all_reduce`; `bad_argument`, of a root that is no rank; `mismatch`, of roots that differ.
template <class Pack>
status broadcast(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack>> inout, int root,
                 time_point deadline) {
    using door = detail::door;
    (void)holds<detail::collective_on_host<door::on_device<Pack>>>;
    return door::run(reduce,
                     {.operation = door::number_of<Pack, operations::broadcast>(),
                      .name = "a broadcast",
                      .gives = door::share::root,
                      .takes = door::share::not_root,
                      .root = root},
                     std::as_bytes(inout), {}, deadline);
}
/// With a timeout from now on; a failure is returned, a misuse thrown. A passed deadline ends the world.
template <class Pack>
status broadcast(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack>> inout, int root,
                 std::chrono::milliseconds timeout) {
    return broadcast(reduce, inout, root, detail::deadline_in(timeout));
}
template <class Pack>
void broadcast(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack>> inout, int root) {
    broadcast(reduce, inout, root, detail::door::timeout_of(reduce)).value();
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_COLLECTIVES_BROADCAST_HPP

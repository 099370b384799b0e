// herring: `all_gather(reduce, mine, out)`: every rank gets the ranges that all ranks own, in one buffer.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_ALL_GATHER_HPP
#define HERRING_COLLECTIVES_ALL_GATHER_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/door.hpp"
#include "herring/engine/operations/all_gather.hpp"

#include <chrono>
#include <span>

namespace HERRING_NAMESPACE {

/// Puts the ranges that the ranks own together: a buffer of n elements, the same on every rank. Collective: the same n on
/// every rank, between steps. No rule is asked.
///
/// Shape:    `mine`: reduce.owned(n, rank).elements; `out`: n elements. With n = 0, on all ranks, nothing is done.
/// Cost:     over N nodes (N−1)/N of the buffer out and in: half of all_reduce's; received where it belongs. Small ones: one
///           message to every other node, one way. On one node a rank copies in its range, and copies out all.
/// Blocks:   until done, at most `world::default_timeout()`.
/// Lifetime: until it has returned. `mine` may be where it belongs in `out`, and must not overlap it otherwise. After an error
///           the content of `out` is undefined.
/// Errors:   as `reducer::all_reduce`; `bad_argument`, of a range of another size.
template <class Pack>
status all_gather(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> mine,
                  std::span<detail::element_of<Pack>> out, time_point deadline) {
    using door = detail::door;
    (void)holds<detail::collective_on_host<door::on_device<Pack>>>;
    return door::run(reduce,
                     {.operation = door::number_of<Pack, operations::all_gather>(),
                      .name = "an all_gather",
                      .gives = door::share::owned},
                     std::as_bytes(out), std::as_bytes(mine), deadline);
}
/// With a timeout from now on; a failure is returned, a misuse thrown. A passed deadline ends the world.
template <class Pack>
status all_gather(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> mine,
                  std::span<detail::element_of<Pack>> out, std::chrono::milliseconds timeout) {
    return all_gather(reduce, mine, out, detail::deadline_in(timeout));
}
template <class Pack>
void all_gather(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> mine,
                std::span<detail::element_of<Pack>> out) {
    all_gather(reduce, mine, out, detail::door::timeout_of(reduce)).value();
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_COLLECTIVES_ALL_GATHER_HPP

// herring: `join(gather, rank, size)`: becomes one rank of a world, by a function that gathers bytes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_GATHER_HPP
#define HERRING_JOIN_GATHER_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/join/gather_call.hpp"
#include "herring/model/join_options.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE {

namespace detail {

/// The source of a gather, in the words of errors.
struct gather_source {
    char const* name = "gather";
    char const* groups = "worlds"; ///< its groups of ranks, each of which joins a world of its own
    /// True: no process outside the job reads what it carries. A secret that it hands out is one that
    /// `join_options::require_secret` asks for.
    bool is_private = false;
};

/// Joins through a gather, which is called twice; not again after it has thrown.
HERRING_SEPARABLE world join_by(gather_call gather, int rank, int size, join_options const& options,
                                gather_source const& source);

} // namespace detail

/// Joins the ranks whose bytes `gather` returns: through a store, a folder, a launcher, or any other library
/// that knows the ranks. Collective over `size` processes, which have the ranks 0 to size − 1.
///
/// `gather` gives number and order of the ranks; all other settings are those of `join()`. Rank 0 listens on
/// HERRING_ADDR if that is set, else on a free port: of HERRING_INTERFACE, of 127.0.0.1 if all ranks are on
/// one node, or of its first address that is not loopback. `gather` carries the address to the others, and,
/// if no rank has a secret of its own, one that rank 0 draws: a process that reads what `gather` carries can
/// then become a rank. With HERRING_SECRET_FILE on every rank no secret travels.
///
/// Shape:    `gather(std::span<std::byte const> mine)` → all ranks' bytes, by rank, this rank's among them: a
///           range of ranges of bytes, such as `std::vector<std::vector<std::byte>>`,
///           `std::vector<std::string>` or `gather_result`. Some 100 bytes a rank, and not the same number of
///           each.
/// Cost:     two calls of `gather` on every rank, also where a rank has failed, so that every rank is told;
///           no second one on a rank on which the first has thrown. Not used after `join` has returned.
/// Blocks:   as long as `gather` does, which needs a deadline of its own; then as `join()`.
/// Errors:   as `join()`. `bad_argument` for a rank outside 0 to size − 1, or as many replies as there are no
///           ranks; `unreachable` where `gather` throws a std::exception that is no `herring::error`;
///           `mismatch` where replies are of another job, call, size or version of Herring, or two processes
///           have one rank.
/// Example:  herring::world world = herring::join(gather, rank, size); // herring/join/gather.hpp
template <class Gather> world join(Gather&& gather, int rank, int size, join_options const& options = {}) {
    if constexpr (detail::gathers_bytes<Gather>) {
        auto const call = [&gather](std::span<std::byte const> mine) -> decltype(auto) {
            return gather(mine);
        };
        return detail::join_by(detail::gather_call::by(call), rank, size, options, {});
    } else {
        static_assert(detail::gathers_bytes<Gather>,
                      "[HRG-J01] join: needs 'gather(std::span<std::byte const>)' that returns the bytes of "
                      "every rank, by rank: a range of ranges of std::byte, unsigned char or char; a common "
                      "slip is to return the bytes of all in one buffer; return a "
                      "std::vector<std::vector<std::byte>>");
        return world();
    }
}

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/join/gather_impl.hpp"
#endif

#endif // HERRING_JOIN_GATHER_HPP

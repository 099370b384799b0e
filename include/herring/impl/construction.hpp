// herring: parts of a session's construction that depend neither on elements nor on policies: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_IMPL_CONSTRUCTION_HPP
#define HERRING_IMPL_CONSTRUCTION_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/error.hpp"
#include "herring/layout.hpp"
#include "herring/session/construction.hpp"
#include "herring/world.hpp"

#include <cstddef>
#include <exception>
#include <new>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void announce_and_rethrow(world& ranks, char const* operation) {
    try {
        throw;
    } catch (error const& failed) {
        failure why = failed.why();
        if (why.reporter < 0) why.reporter = ranks.rank(); // errors of a plan are the same on every rank
        ranks.fail(why);
        throw error(why);
    } catch (std::bad_alloc const&) {
        error const short_of_memory(
            errc::no_resources, ranks.rank(), -1, operation,
            "no memory for the reducer's own tables; raise the limit (ulimit -v, cgroup)");
        ranks.fail(short_of_memory.why());
        throw short_of_memory;
    } catch (std::exception const& failed) { // from a user's policy
        ranks.fail(failure::make(errc::peer_failed, ranks.rank(), -1, operation, failed.what()));
        throw;
    } catch (...) {
        ranks.fail(failure::make(errc::peer_failed, ranks.rank(), -1, operation,
                                 "the program's code threw what is no std::exception"));
        throw;
    }
}

HERRING_SEPARABLE fixed_array<std::size_t> element_counts(layout const& tensors, std::size_t most, int rank) {
    fixed_array<std::size_t> counts(tensors.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
        counts[i] = tensors[i].elements;
        if (counts[i] > most)
            throw error(errc::bad_argument, rank, -1, "construction",
                        {"tensor ", i, " ('", tensors[i].name, "') of ", counts[i],
                         " elements: the layout is larger than any memory; see where its sizes come from"});
        most -= counts[i];
    }
    return counts;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_IMPL_CONSTRUCTION_HPP

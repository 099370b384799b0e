// herring: whether the ranks of a machine have a core each, whatever cores a launcher bound them to.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_CORES_HPP
#define HERRING_SESSION_CORES_HPP

#include "herring/base/config.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/world.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include <sched.h>

namespace HERRING_NAMESPACE::detail {

/// A rank's message to the others: its machine, how many of its threads wait for messages, and on which cores
/// these may run.
struct cores_of_rank {
    std::uint64_t machine = 0;
    std::int64_t threads = 1;
    ::cpu_set_t cores{};

    /// Without the cores behind the last: 16 bytes, and one for eight cores.
    std::span<std::byte const> bytes() const noexcept {
        auto const* const all = reinterpret_cast<std::byte const*>(this);
        std::size_t size = sizeof *this;
        while (size > 16 && all[size - 1] == std::byte{0}) --size;
        return {all, size};
    }
    static constexpr std::int64_t most_threads = 1 << 20;
    /// False: no rank says that.
    HERRING_SEPARABLE bool read(std::span<std::byte const> from) noexcept;
    /// The cores of the calling thread.
    HERRING_SEPARABLE static cores_of_rank here(int threads);
};

/// Ranks that may have to share a core.
struct core_sharing {
    bool mine = false;          ///< this rank
    bool any = false;           ///< the same on every rank
    bool as_one_thread = false; ///< this rank, were each rank one thread
    std::uint32_t all = 0; ///< cores of all ranks, if `any`; 0: of several machines; the same on every rank
};

/// True if a thread of `mine` may have to share a core with another one that waits for messages: its cores
/// are fewer than the threads that may run nowhere else. The same is asked of its cores with those of all
/// ranks that may run on one of them, and so on, until no rank is left that may.
///
/// Cost: of set-up; as many steps as ranks, once or twice where a launcher bound ranks alike, or none.
HERRING_SEPARABLE bool oversubscribed(cores_of_rank const& mine,
                                      std::span<cores_of_rank const> ranks) noexcept;
/// The same for any rank.
///
/// Cost: R·log R for R ranks, and as much as above for each different set of cores of a machine.
HERRING_SEPARABLE bool any_oversubscribed(std::span<cores_of_rank const> ranks);

/// Cores that the ranks may run on, if all are of one machine; else 0.
HERRING_SEPARABLE std::uint32_t cores_of_all(std::span<cores_of_rank const> ranks) noexcept;

/// Collective: tells all ranks of this one's cores, and that `threads` of its threads wait for messages.
HERRING_SEPARABLE core_sharing share_cores(world& ranks, int threads);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/session/cores_impl.hpp"
#endif

#endif // HERRING_SESSION_CORES_HPP

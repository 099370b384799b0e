// herring: one world among those that the control connections carry: the joined one, or a group of its ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_CARRIED_WORLD_HPP
#define HERRING_CONTROL_RENDEZVOUS_CARRIED_WORLD_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/probe_round.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/pending_collective.hpp"
#include "herring/control/split.hpp"
#include "herring/control/world_state.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// The state of one world at one end of the control connections. The connections, and the ranks at their
/// ends, are those of the joined world.
///
/// Threads:  as `endpoint_base`; the board is read without the lock.
struct carried_world {
    /// `ranks`: in the joined world; none: this is that world, of `size` ranks. `self`: this process.
    HERRING_SETUP carried_world(std::uint64_t its_number, std::vector<int> ranks, int its_size, int self)
        : number(its_number), size(its_size), members(std::move(ranks)), rank(rank_of(self)),
          pending(self == 0 ? its_size : 0), left(static_cast<std::size_t>(its_size)), held(rank >= 0),
          here(held) {}

    int joined(int r) const noexcept { return members.empty() ? r : members[static_cast<std::size_t>(r)]; }
    /// The number here of a rank of the joined world; −1: it is not in this world.
    int rank_of(int joined) const noexcept { return members.empty() ? joined : place_in(members, joined); }
    bool has_left(int r) const noexcept { return left[static_cast<std::size_t>(r)]; }
    void leaves(int r) noexcept { left[static_cast<std::size_t>(r)] = any_left = true; }
    /// True if all ranks have left but this one, where it is in this world.
    bool is_deserted() const noexcept {
        for (int r = 0; r < size; ++r)
            if (r != rank && !has_left(r)) return false;
        return true;
    }

    bool failed() const noexcept { return first_failure.load(std::memory_order_relaxed) != 0; }
    control_board board() noexcept { return {&first_failure, &failure_, &probe, &waits}; }
    HERRING_SETUP void throw_if_failed(std::string_view of) const {
        if (failed()) throw error(as_seen_by(failure_, rank, of));
    }
    std::string_view operation_or_control() const noexcept {
        return operation.empty() ? std::string_view("control") : operation;
    }
    /// The reply of this rank's own caller to the last probe.
    wait_report own_wait_report() const noexcept {
        return wait_report::read(waits.load(std::memory_order_acquire),
                                 probe.load(std::memory_order_relaxed));
    }

    std::uint64_t const number; // 0: the joined world
    int const size;
    std::vector<int> const members; // rank → rank of the joined world; empty: the same
    int const rank;                 // of this process; −1: rank 0 carries a group that it is not in

    std::atomic<std::uint32_t> probe{0}; // number of the last probe
    std::atomic<std::uint64_t> waits{wait_report::not_waiting};
    std::atomic<std::uint32_t> first_failure{0};
    failure failure_{};
    world_state* state = nullptr;

    // Collectives.
    std::string_view operation{}; // of the caller's call
    std::uint64_t done = 0;       // number of the last one that is complete
    byte_buffer result{};
    pending_collective pending;     // at rank 0
    bool in_collective = false;     // at another rank: and its result has not come
    bool splits = false;            // the collective is a split, whose result may still come
    carried_world* group = nullptr; // of this rank, by that split
    fixed_array<bool> left;         // rank → it has left this world
    bool any_left = false;          // rank
    bool held;                      // a backend of this process refers to it
    bool here;                      // and has not left

    // The failure detector, at rank 0.
    probe_round probes{};
    bool blames_missing = false; // the suspects are all ranks missing in the pending collective

    // At another rank.
    bool probed = false; // and it has not replied
    failure suspected{};
    time_point suspected_at{}; // since then the decision of rank 0 is awaited
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_CARRIED_WORLD_HPP

// herring: the ranks that work together, as one of them sees them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WORLD_HPP
#define HERRING_CONTROL_WORLD_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/control/control.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/world_state.hpp"
#include "herring/machine/identity.hpp"
#include "herring/model/topology.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE {

/// The ranks that reduce together, seen from one of them: the result of `join()`, `launch()` or
/// `launch_threads()`.
///
/// A default-constructed world is one rank alone.
/// Threads:  collectives from one thread at a time; `failed()` and `fail()` from any thread.
/// Lifetime: movable, also while reducers made from it live: they refer to the ranks, not to this object. A
/// reducer whose world was destroyed refuses every call (`bad_state`); in the middle of a step the other
/// ranks are told. A transport that a program constructs from a world refers to the object, which must not be
/// moved then. The destructor leaves in order, within 5 s, and never throws; where rank 0 carries groups that
/// it is not in, it waits for them before, at most `default_timeout()`.
class world {
  public:
    HERRING_SEPARABLE world();
    /// For backends.
    HERRING_SEPARABLE explicit world(detail::membership joined);
    /// For reducers: another handle on the state of `of`.
    ///
    /// Errors:  `bad_state` where `of` was moved from.
    HERRING_SEPARABLE world(world& of, detail::for_reducer);

    world(world&& other) noexcept
        : rank_(other.rank_), owner_(other.owner_),
          state_(std::exchange(other.state_, detail::world_state::none())) {}
    world& operator=(world&& other) noexcept {
        if (this != &other) {
            leave();
            rank_ = other.rank_;
            owner_ = other.owner_;
            state_ = std::exchange(other.state_, detail::world_state::none());
        }
        return *this;
    }
    ~world() { leave(); }

    int rank() const noexcept { return rank_; }
    /// 0 of a world that was moved from, and where `split` has put this rank into no group.
    int size() const noexcept { return info().map.size(); }
    int node() const noexcept { return size() == 0 ? -1 : info().map.node(rank_); }
    int nodes() const noexcept { return info().map.nodes(); }
    int local_rank() const noexcept { return size() == 0 ? -1 : info().map.local_rank(rank_); }
    int local_size() const noexcept { return size() == 0 ? 0 : info().map.local_size(node()); }

    /// The role of this rank: HERRING_ROLE, `join_options::role`, `launch_options::roles`.
    herring::role role() const noexcept { return info().map.role_of(rank_); }
    /// The number of this rank among the workers, in the order of ranks; −1 on a server.
    int worker() const noexcept { return info().map.worker(rank_); }
    int workers() const noexcept { return info().map.workers(); }
    int servers() const noexcept { return info().map.servers(); }

    /// The deadline of a call that is given none: 30 s, or that of `join_options` or `launch_options`.
    std::chrono::milliseconds default_timeout() const noexcept { return info().times.call; }
    /// The time without a sign of life after which a rank is lost, which ends the world: 5 s, or that of the
    /// options.
    std::chrono::milliseconds peer_timeout() const noexcept { return info().times.detector.peer_timeout; }

    /// The declared or measured figures of the network, from which plans choose: rank 0's HERRING_LINKS or
    /// `join_options::links`.
    herring::links const& links() const noexcept { return state_->links; }

    /// Returns once every rank has called it, servers too: not while they serve.
    ///
    /// Blocks:  until the last rank arrives, at most `timeout`, or `default_timeout()`; a passed timeout ends
    ///          the world for every rank.
    /// Errors:  `timeout` naming the ranks that did not come, `peer_lost`, or what a rank announced by
    ///          `fail`.
    void barrier() { barrier(default_timeout()); }
    HERRING_SEPARABLE void barrier(std::chrono::milliseconds timeout);

    /// Returns the group of the ranks that give the same colour: a world of its own, in which they are
    /// numbered by key, and by their rank here where keys are equal. A rank that gives a negative colour
    /// is in none: it gets a world of size 0, which refuses every call.
    ///
    /// A group has its own nodes, job number, keys and failures. It uses the control connections or the
    /// shared memory of this world and opens none; the failure detector is one for all worlds of a
    /// process. A rank that is lost is lost in every world that it is in; any other failure ends the world
    /// in which it was announced, and no other. Worlds are destroyed in any order; where this one was
    /// joined over a network, its rank 0 carries the control messages of all groups, also of those that it
    /// is not in, and stays for them (docs/design/joining.md).
    ///
    /// Cost:     one `all_gather` of 8 bytes a rank.
    /// Blocks:   as `barrier`.
    /// Threads:  as `all_gather`; worlds that share ranks are split in different threads at once.
    /// Lifetime: the group's own: it may outlive this world, and may be split itself.
    /// Errors:   as `all_gather`; `unsupported` where a rank is a server; `no_resources` on all ranks of a
    ///           launched world without room for more groups, which goes on.
    /// Source:   MPI_Comm_split.
    /// Example:  herring::world row = w.split(w.rank() / columns, w.rank());
    world split(int colour, int key = 0) { return split(colour, key, default_timeout()); }
    HERRING_SEPARABLE world split(int colour, int key, std::chrono::milliseconds timeout);

    // ---- for authors of policies --------------------------------------------------------------------------

    /// The node of each rank.
    herring::topology const& topology() const noexcept { return info().map; }

    /// Gathers the bytes of every rank on every rank; lengths may differ and may be zero.
    ///
    /// Shape:   mine: any number of bytes → result[r]: the bytes of rank r.
    /// Blocks:  as `barrier`.
    /// Errors:  as `barrier`; also `mismatch` when a rank is in another collective.
    HERRING_SEPARABLE gather_result all_gather(std::span<std::byte const> mine);
    HERRING_SEPARABLE gather_result all_gather(std::span<std::byte const> mine,
                                               std::chrono::milliseconds timeout);

    /// The first failure that any rank announced, or nullptr.
    ///
    /// Cost:     two loads.
    /// Lifetime: of the world.
    failure const* failed() const noexcept {
        detail::control_board const& board = info().control.board;
        std::uint32_t const first = board.first_failure->load(std::memory_order_acquire);
        return first == 0 ? nullptr : board.failures + (first - 1);
    }

    /// Announces a failure to every rank; the first one stays, and ends every collective of every rank.
    HERRING_SETUP void fail(failure const& why) noexcept { // a function of its own: hot code ends here
        if (!forked_off()) info().control.table->fail(info().control.self, why);
    }

    /// Throws the failure that `failed()` returns, in the words of this rank; returns when there is none.
    HERRING_SEPARABLE void check() const;

    /// A random number of the world, equal on all its ranks.
    std::uint64_t job() const noexcept { return info().job; }

    /// True if only the ranks know the world's key: they proved to each other that they have a secret, or
    /// were started by `launch`, or a secret came over MPI. Otherwise a key consists of data that any
    /// listener sees.
    bool has_secret() const noexcept { return info().has_secret; }
    /// Derives a key of the pair of this rank and `peer`: equal on both for one label and context, and
    /// different for any other pair, label, context or world. With `has_secret()` only the ranks of the
    /// world, each of them, can know it.
    ///
    /// Shape:   out: up to 8,160 bytes. `label`: without zeroes in it.
    /// Cost:    some microseconds: for set-up.
    /// Errors:  `bad_argument` for a rank that there is not, or too many bytes; `bad_state` when this world
    ///          was moved from.
    HERRING_SEPARABLE void derive_key(std::span<std::byte> out, std::string_view label, int peer,
                                      std::span<std::byte const> context = {}) const;

    /// The IP literal on which the other ranks reach this one.
    std::string const& local_address() const noexcept { return info().local_address; }

    /// How many ranks run on this machine, whatever their nodes: with more ranks than cores, no rank
    /// spins. In a group those of the joined or launched world count.
    int ranks_on_this_machine() const noexcept { return info().ranks_on_this_machine; }

    /// True if the world of this reducer's handle was destroyed, or belongs to another process.
    ///
    /// Cost:    three loads.
    bool ended() const noexcept { return state_->ended(); }
    /// True if this process was forked off after the world was constructed: nothing of the world may be
    /// touched then.
    bool forked_off() const noexcept { return !state_->owner.is_this(); }
    /// For reducers and drivers.
    detail::world_state& state() noexcept { return *state_; }

  private:
    HERRING_SEPARABLE static detail::membership alone();
    /// Takes over one hold on the state; that of no world for a rank that is in no group.
    world(int rank, detail::world_state* state) noexcept : rank_(rank), owner_(true), state_(state) {}

    detail::membership const& info() const noexcept { return state_->info; }

    HERRING_SEPARABLE void usable(char const* operation) const;

    HERRING_SEPARABLE void leave() noexcept;

    int rank_ = 0;
    bool owner_ = false; // false: a reducer's handle
    detail::world_state* state_;
};

namespace detail {

/// Finds the root cause of a wait of this rank in vain.
///
/// Lifetime: of the world's state, which reducers share.
inline failure_detector& detector(world& of) noexcept { return of.state().detector; }

} // namespace detail

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/control/world_impl.hpp"
#endif

#endif // HERRING_CONTROL_WORLD_HPP

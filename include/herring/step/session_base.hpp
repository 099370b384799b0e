// herring: what of a session depends on neither policies nor elements: its world, its plan, its executions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_SESSION_BASE_HPP
#define HERRING_STEP_SESSION_BASE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/world.hpp"
#include "herring/engine/counters.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/state.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/model/layout.hpp"
#include "herring/model/topology.hpp"
#include "herring/plan/collective_division.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy/names.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// The values of a session, and how far its executions are. A program has this class once; steps and buffers
/// see it, and not the session, where nothing is moved.
///
/// Lifetime: holds a handle of the world's, so that the program's may be moved.
class session_base {
  public:
    HERRING_SEPARABLE session_base(world& ranks, layout&& tensors, bool joins_ranks);
    session_base(session_base const&) = delete;
    session_base& operator=(session_base const&) = delete;

    world& ranks() noexcept { return ranks_; }
    world const& ranks() const noexcept { return ranks_; }
    layout const& tensors() const noexcept { return tensors_; }
    herring::plan const& plan() const noexcept { return plan_; }
    memory_map const& memory() const noexcept { return memory_; }
    std::chrono::milliseconds default_timeout() const noexcept { return ranks_.default_timeout(); }
    int local_rank() const noexcept { return topology_.local_rank(ranks_.rank()); }
    topology const& map() const noexcept { return topology_; }
    /// True if this rank serves and has no tensors.
    bool serves() const noexcept { return topology_.is_server(ranks_.rank()); }
    int local_ranks() const noexcept { return topology_.local_size(topology_.node(ranks_.rank())); }

    // ---- executions; once the session is connected --------------------------------------------------------

    /// Executions that are submitted, and those that are over.
    std::uint64_t requested() const noexcept {
        return engine_->ledger.requested().load(std::memory_order_acquire);
    }
    std::uint64_t released() const noexcept {
        return engine_->ledger.released().load(std::memory_order_acquire);
    }
    execution const& ended(std::uint64_t number) noexcept { return engine_->ledger.at(number); }
    failure const* failed() const noexcept { return engine_->failures.seen(); }
    herring::counters counters() const noexcept { return engine_->counters(); }

    /// Divides a buffer, or a piece of one, as a bucket that is no part of the layout. `operation`: the call,
    /// for errors; `twofold`: for two results of each element; `sums`: for a sum; `facts`: of its
    /// elements.
    template <class Sharding>
    void divide(std::size_t elements, bucket& result, std::vector<shard>& shards, char const* operation,
                bool twofold, bool sums, route_limits const& facts) {
        bucket_tensor const whole{0, 0, elements};
        bucket_view const view{elements, facts.line_elements, std::span(&whole, 1)};
        division const how{.rank = ranks_.rank(),
                           .operation = operation,
                           .sums = sums,
                           .unit = facts.element_bytes == 1 ? "bytes" : "elements"};
        shards.clear();
        result = {};
        if (twofold)
            divide_twofold<Sharding>(result, view, facts, shards, how);
        else
            detail::divide<Sharding>(result, view, facts, shards, how);
    }
    /// The same for a bucket of which each rank owns a range.
    HERRING_SEPARABLE void divide_owned(bucket& result, std::size_t elements, std::span<range const> owned,
                                        bool slotted, std::vector<shard>& shards,
                                        route_limits const& facts) const;

  protected:
    ~session_base() = default;

    HERRING_SEPARABLE bool on_loopback() const noexcept;
    /// Compares what all ranks are about to run, and lays out the memory. The plan is there. `attaches`: this
    /// rank's trace.
    HERRING_SEPARABLE void settle(std::string_view element, std::span<policy_fact const> policies,
                                  memory_traits const& traits,
                                  std::size_t (*local_bytes)(std::size_t, std::size_t) noexcept,
                                  bool attaches);
    /// Allocates what messages pass; `filled`: bytes of the node's memory that this rank fills too.
    HERRING_SEPARABLE void make_staging(std::size_t filled);

    world ranks_; // a handle of its own: the program's may be moved
    layout tensors_;
    topology const apart_;     // the world's ranks, each a node, where the node has no reducer of its own
    topology const& topology_; // that one, or the world's
    herring::plan plan_;
    memory_map memory_;
    std::vector<int> peers_; // ranks of other nodes that this rank exchanges chunks with
    private_memory staging_;
    bool all_attach_ = false; // the traces of all ranks
    engine_state* engine_ = nullptr;
};

/// The session's workers tell dedicated servers which call they begin.
template <class Session> inline constexpr bool has_commands = false;
template <class Session>
requires(Session::commands) //
    inline constexpr bool has_commands<Session> = true;

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/step/session_base_impl.hpp"
#endif

#endif // HERRING_STEP_SESSION_BASE_HPP

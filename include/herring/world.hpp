// herring: the ranks that work together, as one of them sees them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WORLD_HPP
#define HERRING_WORLD_HPP

#include "herring/base/config.hpp"
#include "herring/base/identity.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/failure_handler.hpp"
#include "herring/control/failure/liveness.hpp"
#include "herring/control/world_state.hpp"
#include "herring/error.hpp"
#include "herring/gather_result.hpp"
#include "herring/plan/topology.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace HERRING_NAMESPACE {

/// The ranks that reduce together, seen from one of them; made by `join()`, `launch()` or `launch_threads()`.
///
/// A default-constructed world is one rank alone.
/// Threads:  collectives from one thread at a time; `failed()` and `fail()` from any thread.
/// Lifetime: movable, also while reducers made from it live: they keep to the ranks, not to this object. A reducer whose
/// world was destroyed refuses every call (`bad_state`); in the middle of a step the other ranks are told. A transport
/// that a program makes from a world itself refers to the object: that one must stay where it is. The destructor leaves
/// in order, within 5 s, and never throws.
class world {
  public:
    HERRING_SEPARABLE world();
    /// For backends.
    HERRING_SEPARABLE explicit world(detail::membership made);
    /// For reducers: another handle on what `of` stands on.
    ///
    /// Errors:  `bad_state` when `of` was moved from.
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
    int size() const noexcept { return is().map.size(); }
    int node() const noexcept { return is().map.node(rank_); }
    int nodes() const noexcept { return is().map.nodes(); }
    int local_rank() const noexcept { return is().map.local_rank(rank_); }
    int local_size() const noexcept { return is().map.local_size(node()); }

    /// How long a call waits that is given no deadline: 30 s, or what `join_options` or `launch_options` say.
    std::chrono::milliseconds default_timeout() const noexcept { return is().default_timeout; }
    /// For how long a rank may give no sign of life before that ends the world: 5 s, or what they say.
    std::chrono::milliseconds peer_timeout() const noexcept { return is().peer_timeout; }

    /// Returns once every rank has called it.
    ///
    /// Blocks:  until the last rank arrives, at most `timeout`, or `default_timeout()`; a passed timeout ends the world for
    ///          every rank.
    /// Errors:  `timeout` naming the ranks that did not come, `peer_lost`, or what a rank announced by `fail`.
    void barrier() { barrier(default_timeout()); }
    HERRING_SEPARABLE void barrier(std::chrono::milliseconds timeout);

    // What follows is for authors of policies.

    /// Which rank is on which node.
    herring::topology const& topology() const noexcept { return is().map; }

    /// Gathers the bytes of every rank on every rank; lengths may differ and may be zero.
    ///
    /// Shape:   mine: any number of bytes → result[r]: what rank r gave.
    /// Blocks, errors: as `barrier`; also `mismatch` when a rank is in another collective.
    HERRING_SEPARABLE gather_result all_gather(std::span<std::byte const> mine);
    HERRING_SEPARABLE gather_result all_gather(std::span<std::byte const> mine,
                                               std::chrono::milliseconds timeout);

    /// The first failure that any rank announced, or nullptr.
    ///
    /// Cost: two loads.
    /// Lifetime: as the world.
    failure const* failed() const noexcept {
        if (is().by.first_failure == nullptr) return nullptr;
        std::uint32_t const first = is().by.first_failure->load(std::memory_order_acquire);
        return first == 0 ? nullptr : is().by.failures + (first - 1);
    }

    /// Announces a failure to every rank; the first one stays, and ends every collective of every rank.
    HERRING_SETUP void fail(failure const& why) noexcept { // a function of its own: hot code ends here
        if (is().by.fail != nullptr) is().by.fail(is().by.self, why);
    }

    /// Asks who is to blame that this rank waits for `of.why.peer` in vain: the rank itself, or the one at the end of
    /// the chain of those that wait for each other. To be called again until `failed()` tells.
    ///
    /// Cost: of set-up.
    HERRING_SETUP void accuse(detail::accusation& of) noexcept {
        if (is().by.accuse != nullptr) return is().by.accuse(is().by.self, of);
        fail(of.why);
    }

    /// The number of the last question «whom do you wait for?». To be read before the answer is looked for.
    std::uint32_t question() const noexcept {
        return is().by.question == nullptr ? 0 : is().by.question->load(std::memory_order_acquire);
    }
    /// Tells whoever asks that this rank waits, for `other` or (−1) for nobody in particular.
    ///
    /// Cost: one store.
    void waits_for(int other, std::uint32_t question) noexcept {
        if (is().by.testifies != nullptr)
            is().by.testifies->store(detail::testimony::waits_for(other, question),
                                     std::memory_order_release);
    }
    /// Tells them that it waits no more.
    void waits_no_more() noexcept {
        if (is().by.testifies != nullptr)
            is().by.testifies->store(detail::testimony::in_no_call, std::memory_order_release);
    }

    /// Throws what `failed()` tells, in the words of this rank; returns when there is nothing to tell.
    HERRING_SEPARABLE void check() const;

    /// The same on every rank, random for every world.
    std::uint64_t job() const noexcept { return is().job; }

    /// The IP literal on which the other ranks reach this one.
    std::string const& local_address() const noexcept { return is().local_address; }

    /// How many ranks run on this machine, whatever their nodes: more than cores means that nobody may spin.
    int ranks_on_this_machine() const noexcept { return is().ranks_on_this_machine; }

    /// Whether the world that a reducer was made from is gone.
    ///
    /// Cost:    two loads.
    bool ended() const noexcept { return state_->ended(); }
    /// For reducers.
    detail::world_state& state() noexcept { return *state_; }

  private:
    HERRING_SEPARABLE static detail::membership alone();

    detail::membership const& is() const noexcept { return state_->is; }

    HERRING_SEPARABLE void usable(char const* operation) const;

    HERRING_SEPARABLE void leave() noexcept;

    int rank_ = 0;
    bool owner_ = false; // this is the world itself, not a reducer's handle
    detail::world_state* state_;
};

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/impl/world.hpp"
#endif

#endif // HERRING_WORLD_HPP

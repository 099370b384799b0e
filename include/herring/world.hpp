// herring: the ranks that work together, as one of them sees them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WORLD_HPP
#define HERRING_WORLD_HPP

#include "herring/detail/config.hpp"
#include "herring/detail/control.hpp"
#include "herring/detail/failure_handler.hpp"
#include "herring/detail/identity.hpp"
#include "herring/detail/liveness.hpp"
#include "herring/error.hpp"
#include "herring/gathered.hpp"
#include "herring/plan/topology.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace HERRING_NAMESPACE {

namespace detail {

/// What a backend (join, launch) hands to a world; all but the rank and the address are the same on every
/// rank.
struct membership {
    int rank = 0;
    topology map{};
    std::uint64_t job = 0;
    std::string local_address = "127.0.0.1";
    int ranks_on_this_machine = 1;
    std::chrono::milliseconds peer_timeout = liveness{}.dead;
    std::chrono::milliseconds default_timeout = usual_timeout;
    control by{};
};

/// The control of a world of one.
struct control_alone {
    std::atomic<std::uint32_t> claimed{0};
    std::atomic<std::uint32_t> first{0};
    failure cell{};
    failure_handler on_failure{};

    HERRING_SETUP static control make(failure_handler const& called = {}) {
        auto* const made = new control_alone;
        made->on_failure = called;
        control by;
        by.self = made;
        by.first_failure = &made->first;
        by.failures = &made->cell;
        by.all_gather = all_gather;
        by.barrier = barrier;
        by.fail = fail;
        by.destroy = destroy;
        return by;
    }

    static gathered all_gather(void* self, std::string_view, std::span<std::byte const> mine, time_point) {
        check(self);
        table<std::size_t> size(1);
        size[0] = mine.size();
        gathered all(std::move(size));
        if (!mine.empty()) std::memcpy(all[0].data(), mine.data(), mine.size());
        return all;
    }
    static void barrier(void* self, std::string_view, time_point) { check(self); }
    static void fail(void* self, failure const& why) noexcept {
        auto& alone = *static_cast<control_alone*>(self);
        if (alone.claimed.exchange(1) != 0) return;
        alone.cell = why;
        alone.first.store(1, std::memory_order_release);
        alone.on_failure(why);
    }
    static void destroy(void* self) noexcept { delete static_cast<control_alone*>(self); }

    static void check(void* self) {
        auto& alone = *static_cast<control_alone*>(self);
        if (alone.first.load(std::memory_order_acquire) != 0) throw error(as_seen_by(alone.cell, 0));
    }
};

} // namespace detail

/// The ranks that reduce together, seen from one of them; made by `join()`, `launch()` or `launch_threads()`.
///
/// A default-constructed world is one rank alone.
/// Threads:  collectives from one thread at a time; `failed()` and `fail()` from any thread.
/// Lifetime: movable; outlives every reducer made from it. The destructor leaves in order, within 5 s, and
/// never throws.
class world {
  public:
    world() : world(alone()) {}
    /// For backends.
    explicit world(detail::membership made) noexcept : is_(std::move(made)) {}

    world(world&& other) noexcept : is_(std::move(other.is_)) { other.is_.by = {}; }
    world& operator=(world&& other) noexcept {
        if (this != &other) {
            leave();
            is_ = std::move(other.is_);
            other.is_.by = {};
        }
        return *this;
    }
    ~world() { leave(); }

    int rank() const noexcept { return is_.rank; }
    int size() const noexcept { return is_.map.size(); }
    int node() const noexcept { return is_.map.node(is_.rank); }
    int nodes() const noexcept { return is_.map.nodes(); }
    int local_rank() const noexcept { return is_.map.local_rank(is_.rank); }
    int local_size() const noexcept { return is_.map.local_size(node()); }

    /// How long a call waits that is given no deadline: 30 s, or what `join_options` or `launch_options` say.
    std::chrono::milliseconds default_timeout() const noexcept { return is_.default_timeout; }
    /// For how long a rank may give no sign of life before that ends the world: 5 s, or what they say.
    std::chrono::milliseconds peer_timeout() const noexcept { return is_.peer_timeout; }

    /// Returns once every rank has called it.
    ///
    /// Blocks:  until the last rank arrives, at most `timeout`, or `default_timeout()`; a passed timeout ends the world for
    ///          every rank.
    /// Errors:  `timeout` naming the ranks that did not come, `peer_lost`, or what a rank announced by `fail`.
    void barrier() { barrier(default_timeout()); }
    void barrier(std::chrono::milliseconds timeout) {
        usable("barrier");
        is_.by.barrier(is_.by.self, "barrier", detail::deadline_in(timeout));
    }

    // What follows is for authors of policies.

    /// Which rank is on which node.
    topology const& map() const noexcept { return is_.map; }

    /// Gathers the bytes of every rank on every rank; lengths may differ and may be zero.
    ///
    /// Shape:   mine: any number of bytes → result[r]: what rank r gave.
    /// Blocks, errors: as `barrier`; also `mismatch` when a rank is in another collective.
    HERRING_SETUP gathered all_gather(std::span<std::byte const> mine) {
        return all_gather(mine, default_timeout());
    }
    HERRING_SETUP gathered all_gather(std::span<std::byte const> mine, std::chrono::milliseconds timeout) {
        usable("all_gather");
        return is_.by.all_gather(is_.by.self, "all_gather", mine, detail::deadline_in(timeout));
    }

    /// The first failure that any rank announced, or nullptr.
    ///
    /// Cost: two loads.
    /// Lifetime: as the world.
    failure const* failed() const noexcept {
        if (is_.by.first_failure == nullptr) return nullptr;
        std::uint32_t const first = is_.by.first_failure->load(std::memory_order_acquire);
        return first == 0 ? nullptr : is_.by.failures + (first - 1);
    }

    /// Announces a failure to every rank; the first one stays, and ends every collective of every rank.
    HERRING_SETUP void fail(failure const& why) noexcept { // a function of its own: hot code ends here
        if (is_.by.fail != nullptr) is_.by.fail(is_.by.self, why);
    }

    /// Asks who is to blame that this rank waits for `of.why.peer` in vain: the rank itself, or the one at the end of
    /// the chain of those that wait for each other. To be called again until `failed()` tells.
    ///
    /// Cost: of set-up.
    HERRING_SETUP void accuse(detail::accusation& of) noexcept {
        if (is_.by.accuse != nullptr) return is_.by.accuse(is_.by.self, of);
        fail(of.why);
    }

    /// The number of the last question «whom do you wait for?». To be read before the answer is looked for.
    std::uint32_t question() const noexcept {
        return is_.by.question == nullptr ? 0 : is_.by.question->load(std::memory_order_acquire);
    }
    /// Tells whoever asks that this rank waits, for `other` or (−1) for nobody in particular.
    ///
    /// Cost: one store.
    void waits_for(int other, std::uint32_t question) noexcept {
        if (is_.by.testifies != nullptr)
            is_.by.testifies->store(detail::testimony::waits_for(other, question), std::memory_order_release);
    }
    /// Tells them that it waits no more.
    void waits_no_more() noexcept {
        if (is_.by.testifies != nullptr)
            is_.by.testifies->store(detail::testimony::in_no_call, std::memory_order_release);
    }

    /// Throws what `failed()` tells, in the words of this rank; returns when there is nothing to tell.
    void check() const {
        if (failure const* const why = failed()) throw error(detail::as_seen_by(*why, rank()));
    }

    /// The same on every rank, random for every world.
    std::uint64_t job() const noexcept { return is_.job; }

    /// The IP literal on which the other ranks reach this one.
    std::string const& local_address() const noexcept { return is_.local_address; }

    /// How many ranks run on this machine, whatever their nodes: more than cores means that nobody may spin.
    int ranks_on_this_machine() const noexcept { return is_.ranks_on_this_machine; }

  private:
    HERRING_SETUP static detail::membership alone() {
        detail::membership made;
        made.by = detail::control_alone::make();
        made.job = detail::random_bits();
        return made;
    }

    HERRING_SETUP void usable(char const* operation) const {
        if (is_.by.self == nullptr)
            throw error(errc::bad_state, is_.rank, -1, operation,
                        "this world was moved from; use the one it was moved to");
    }

    HERRING_SETUP void leave() noexcept {
        if (is_.by.destroy != nullptr) is_.by.destroy(is_.by.self);
        is_.by = {};
    }

    detail::membership is_;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_WORLD_HPP

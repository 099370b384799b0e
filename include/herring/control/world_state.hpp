// herring: the state that a world and its reducers share; it stays in place when the world is moved.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WORLD_STATE_HPP
#define HERRING_CONTROL_WORLD_STATE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/control/world_times.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/machine/forks.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/threads.hpp"
#include "herring/model/links.hpp"
#include "herring/model/topology.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// The values that a backend (join, launch) hands to a world. All but the rank and the address are equal on
/// every rank.
struct membership {
    int rank = 0;
    topology map{};
    std::uint64_t job = 0;
    secret_key key{};        ///< of `world::derive_key`
    bool has_secret = false; ///< only the ranks know the key
    std::string local_address = "127.0.0.1";
    int ranks_on_this_machine = 1;
    world_times times = resolve({});
    herring::links links{};
    control_handle control = absent_control();
    std::uint64_t number = 0; ///< `split_group::number`; 0: not a group
};

/// Asks a world for the handle of a reducer.
struct for_reducer {};

class world_state;

/// The states of a joined or launched world and of the groups that splits have made of it, at one rank: a
/// rank can only wait where it waits in all of them.
///
/// Lifetime: the last state frees it.
struct world_family {
    monitor lock{};
    world_state* first = nullptr;
    std::atomic<int> states{0};
};

/// Returns why a call of a reducer is refused: its world has ended, or belongs to another process.
HERRING_SEPARABLE error ended_world(world_state const& ranks, char const* operation);

/// A thread that waits in a call until the operation is complete.
struct listed_wait {
    blocked_report::entry operation{};
    time_point since{};
    bool used = false;
};

/// The counters of a reducer.
struct reducer_counts {
    std::atomic<std::uint64_t> const& submitted; ///< executions
    std::atomic<std::uint64_t> const& released;
    std::size_t const& ready; ///< tensors that are ready in the current step
};

/// The entry of a reducer in its world, while the reducer lives.
///
/// Threads:  the thread that destroys the world reads the counts.
class reducer_entry {
  public:
    HERRING_SEPARABLE reducer_entry(world_state& with, reducer_counts counts) noexcept;
    HERRING_SEPARABLE ~reducer_entry();
    reducer_entry(reducer_entry const&) = delete;
    reducer_entry& operator=(reducer_entry const&) = delete;

    /// 1 for the world's first reducer: the same on every rank.
    std::uint64_t number() const noexcept { return number_; }

  private:
    friend class world_state;

    bool in_step() const noexcept {
        return counts_.ready > 0 || counts_.submitted.load() != counts_.released.load();
    }

    world_state& with_;
    reducer_counts counts_;
    std::uint64_t number_ = 0;
    reducer_entry* next_ = nullptr;
    reducer_entry* before_ = nullptr;
};

/// How long a leaving rank waits until the other ranks have its last messages.
inline constexpr std::chrono::seconds longest_arrival{5};

/// Shared by the world and each of its reducers, on the heap; the last holder frees it, and the backend with
/// it.
///
/// When the world is destroyed or assigned before its reducers, the rank leaves at that time, the reducers
/// refuse every later call (`ended`), and the backend's board stays valid until the last of them is gone.
class world_state {
  public:
    owner_process const owner{};
    membership const info;
    failure_detector detector{info.control, info.times.detector};
    data_sockets* const data = data_sockets::make(); ///< nullptr without memory
    herring::links links = info.links;               ///< a probe at join changes them

    /// Held once. Takes the backend over, whatever happens. `of`: the world of which this one is a group.
    ///
    /// Errors: `no_resources`.
    HERRING_SEPARABLE static world_state* make(membership&& from, world_state* of = nullptr);
    /// The state of a moved-from world: no backend, no ranks.
    HERRING_SEPARABLE static world_state* none() noexcept;

    void hold() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
    HERRING_SEPARABLE void release() noexcept;

    /// Ends the world, which is destroyed; its reducers may still live.
    HERRING_SEPARABLE void end() noexcept;
    /// True if calls are refused: the world has ended, or belongs to the process from which this one was
    /// forked off.
    bool ended() const noexcept { return ended_.load(std::memory_order_acquire) || !owner.is_this(); }

    // ---- long waits (control/failure/deadlock.hpp) --------------------------------------------------------

    /// Enters the operation that the calling thread waits for. Returns nullptr where there is no room: then
    /// this rank is never part of a deadlock.
    HERRING_SEPARABLE listed_wait* list(blocked_report::entry const& operation) noexcept;
    HERRING_SEPARABLE void unlist(listed_wait& wait) noexcept;
    /// Enters the world's next collective, from the calling thread. Returns its number.
    std::uint64_t enter_collective() noexcept { return collectives_.fetch_add(1, std::memory_order_relaxed); }

    /// Notes that this world has one caller, which makes its calls one after the other, and begins this call.
    /// While it waits, this world goes on in no other thread, whatever other threads the process has.
    ///
    /// Lifetime: `name`, for ever.
    void begin_call(char const* name) noexcept { call_.store(name, std::memory_order_release); }

    /// Reports the waits of this rank; false where a thread of it can still run, or none has waited for long.
    // The order is threads, then begun operations, then threads again: in between none of the threads can
    // have run.
    HERRING_SEPARABLE bool blocked(blocked_report& report) noexcept;
    /// Looks whether the waits of this rank are part of a deadlock.
    HERRING_SETUP void check_deadlock() noexcept { info.control.table->check_deadlock(info.control.self); }

  private:
    friend class reducer_entry;

    explicit world_state(membership&& from) noexcept : info(std::move(from)) {}
    HERRING_SEPARABLE ~world_state();
    HERRING_SEPARABLE void enter(world_family& family) noexcept;
    /// Adds this world's waits and what it has begun. False: there are too many waits for a report.
    HERRING_SEPARABLE bool add_to(blocked_report& report, char const* call, bool& is_long) noexcept;

    world_family* family_ = nullptr;
    world_state* next_ = nullptr; // of the family, under its lock
    std::atomic<int> holders_{1};
    std::atomic<bool> ended_{false};
    monitor lock_; // of the members below
    reducer_entry* first_ = nullptr;
    std::uint64_t constructed_ = 0;
    listed_wait waits_[blocked_report::most_waits];
    std::atomic<std::uint64_t> collectives_{0}; // entered
    std::atomic<char const*> call_{nullptr};    // nullptr: any thread may call
};

/// One thread's wait for a reducer's execution, which is listed when nothing has been released for long.
///
/// Cost:     one comparison a look, until it is listed.
class long_wait {
  public:
    /// `channel` 0: never listed.
    long_wait(world_state& ranks, std::uint64_t channel) noexcept : ranks_(ranks), channel_(channel) {}
    ~long_wait() {
        if (listed_ != nullptr) ranks_.unlist(*listed_);
    }
    long_wait(long_wait const&) = delete;
    long_wait& operator=(long_wait const&) = delete;

    /// Looks at the time: at `now`, so many executions are released. To be called again and again.
    void look(time_point now, std::uint64_t released) noexcept {
        if (due_ == time_point{} || released != released_) {
            released_ = released;
            due_ = now + ranks_.info.times.detector.long_wait;
        } else if (now >= due_ && channel_ != 0) {
            list(now);
        }
    }

  private:
    // A listed wait for an execution that has completed meanwhile proves nothing, so it may stay until the
    // next look.
    HERRING_SEPARABLE void list(time_point now) noexcept;

    world_state& ranks_;
    std::uint64_t channel_;
    std::uint64_t released_ = 0;
    time_point due_{};
    listed_wait* listed_ = nullptr;
};

/// The calling thread's wait in a collective of the world.
class collective_wait {
  public:
    explicit collective_wait(world_state& ranks) noexcept
        : ranks_(ranks), listed_(ranks.list({0, ranks.enter_collective()})) {}
    ~collective_wait() {
        if (listed_ != nullptr) ranks_.unlist(*listed_);
    }
    collective_wait(collective_wait const&) = delete;
    collective_wait& operator=(collective_wait const&) = delete;

  private:
    world_state& ranks_;
    listed_wait* listed_;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/control/world_state_impl.hpp"
#endif

#endif // HERRING_CONTROL_WORLD_STATE_HPP

// herring: a member of an ensemble, as a model's process has it, and its jobs.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_HPP
#define HERRING_ENSEMBLE_MEMBER_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/options.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/machine/forks.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE {

/// State of a member's connection to one of its frontends.
struct frontend_status {
    enum class state : std::uint8_t {
        connecting, ///< the frontend is not there, or no longer: it is dialled again and again
        connected,
        refused ///< for good, as `why` says
    };
    std::string address{}; ///< as in the member's options
    state now = state::connecting;
    std::string why{};       ///< reason why it is not connected, as far as is known
    bool shared = false;     ///< connected by shared memory
    std::uint64_t times = 0; ///< connections so far
};

/// "connecting", "connected", "refused".
constexpr char const* to_string(frontend_status::state s) noexcept {
    constexpr char const* names[] = {"connecting", "connected", "refused"};
    auto const i = static_cast<std::size_t>(s);
    return i < std::size(names) ? names[i] : "unknown";
}

/// End of a job's answer.
enum class job_end : std::uint8_t {
    sent,        ///< the row is on its way
    declined,    ///< by the program
    late,        ///< the deadline had passed: the row was dropped
    bad_row,     ///< the row has NaN, or values that its space does not allow: it was dropped
    disconnected ///< the job's frontend is gone, or has given this member's place to another process
};
inline constexpr int job_ends = 5;

/// "sent", "declined", "late", "bad row", "disconnected".
constexpr char const* to_string(job_end e) noexcept {
    constexpr char const* names[] = {"sent", "declined", "late", "bad row", "disconnected"};
    static_assert(std::size(names) == job_ends);
    auto const i = static_cast<std::size_t>(e);
    return i < std::size(names) ? names[i] : "unknown";
}

/// Counters of a member since its construction.
struct job_counters {
    std::uint64_t asked = 0;    ///< requests that came in
    std::uint64_t taken = 0;    ///< requests that the program took
    std::uint64_t expired = 0;  ///< requests declined because their deadline passed before that
    std::uint64_t sent = 0;     ///< rows, those of `contribute` too
    std::uint64_t declined = 0; ///< by the program, and jobs that it destroyed
    std::uint64_t late = 0;     ///< rows that were dropped: the deadline had passed
    std::uint64_t bad_rows = 0; ///< rows that were dropped: NaN, or values that their space does not allow
    std::uint64_t disconnected = 0; ///< requests and rows that were dropped: their frontend was gone
    std::uint64_t turned_away = 0;  ///< requests that came while the member left
    std::uint64_t connections = 0;  ///< connections to frontends
    std::uint64_t broken = 0;       ///< connections ended by this member, because of what the frontend sent
};

namespace detail::ensembles {

/// A request that the program answers. Moves; destroyed without an answer it declines. `Core`: the member's,
/// which outlives it.
///
/// Threads:  the member's.
/// Lifetime: `input()` and `row()` until it is answered.
template <class Core> class job {
  public:
    using element = typename Core::element;

    /// Empty.
    job() noexcept = default;
    job(Core& core, std::uint32_t slot) noexcept : core_(&core), slot_(slot) {}
    job(job&& other) noexcept : core_(std::exchange(other.core_, nullptr)), slot_(other.slot_) {}
    job& operator=(job&& other) noexcept {
        std::swap(core_, other.core_);
        std::swap(slot_, other.slot_);
        return *this;
    }
    ~job() {
        if (core_ != nullptr) core_->decline(slot_, herring::decline::unspecified);
    }

    /// The request's bytes.
    std::span<std::byte const> input() const { return core().input(slot_); }
    /// The row to be written. It holds the numbers of an earlier row, not zeros.
    std::span<element> row() const { return core().row(slot_); }

    /// Encodes the row now, where it is sent from, so that `send` only publishes it; without it `send` does
    /// both. Later changes of the row are not sent, unless `encode` is called again.
    ///
    /// Returns: false: the row has NaN, or values that its space does not allow. It can be corrected and
    ///          encoded again; `send` drops it as `bad_row`. Only `send` looks at deadline and frontend.
    bool encode() { return core().encode(slot_); }
    /// Answers with the row. Past the deadline, or where the frontend is gone, the row is dropped and
    /// counted.
    ///
    /// Blocks:  for 1 ms at most, while a socket does not take the first bytes at once.
    /// Errors:  `bad_state`: the job is answered; all functions but `operator bool` throw it then.
    job_end send() {
        Core& of = core();
        core_ = nullptr;
        return of.send(slot_);
    }
    /// Answers that there will be no row, so that the frontend does not wait for it.
    job_end decline(herring::decline why = herring::decline::unspecified) {
        Core& of = core();
        core_ = nullptr;
        return of.decline(slot_, why);
    }

    /// Time until the deadline; 0 when it has passed. It counts from when this member read the request.
    std::chrono::nanoseconds remaining() const { return core().remaining(slot_); }
    bool expired() const { return remaining().count() == 0; }
    /// The place of the request's frontend in the options' `frontends`.
    std::size_t frontend() const { return core().frontend(slot_); }
    /// Identifier of the request at that frontend.
    std::uint64_t id() const { return core().id(slot_); }
    /// False: empty, answered, or moved from.
    explicit operator bool() const noexcept { return core_ != nullptr; }

  private:
    Core& core() const {
        if (core_ == nullptr) [[unlikely]]
            is_answered();
        return *core_;
    }
    [[noreturn]] HERRING_SETUP static void is_answered() {
        throw error(errc::bad_state, -1, -1, "job",
                    "it is empty, answered, or was moved away; take the next one");
    }

    Core* core_ = nullptr;
    std::uint32_t slot_ = 0;
};

HERRING_SETUP inline member_options checked(member_options options) {
    check_options(options);
    return options;
}

/// Answers requests of its frontends, in the order in which they are taken, or any other.
///
/// It connects by itself, again and again: a frontend that is not there, or has gone, is dialled with growing
/// pauses (10 ms … 2 s). A second process with its name and replica takes its place, and it is refused
/// (`status`).
///
/// Threads:  one at a time; `leave`, `stop` and `status` from any at any time.
/// Lifetime: outlives its jobs, and calls of other threads: `next` returns while `leave` still waits. It
///           belongs to the process that constructed it: in a forked one later calls throw `bad_state`, or do
///           nothing where they are noexcept, as the destructor does.
template <class Element, class Core> class basic_member {
  public:
    using job = typename Core::job;

    HERRING_SETUP basic_member(member_options const& o, shape const& what) {
        core_.emplace(o.elements, o.concurrency, what, dialling(o));
    }
    basic_member(basic_member const&) = delete;
    basic_member& operator=(basic_member const&) = delete;
    HERRING_SETUP ~basic_member() {
        if (forked_off()) core_.abandon(); // it is the parent's
    }

    /// Returns the next request, of the frontends in turn. Requests whose deadline has passed are declined,
    /// not returned.
    /// Empty: at the timeout, after `stop` or `leave`, or once all frontends have refused this member
    ///        (`status`).
    ///
    /// Blocks:  until then, as the waiting policy does.
    /// Errors:  `bad_state`: the program holds `concurrency` jobs.
    template <class Rep = std::chrono::nanoseconds::rep, class Period = std::nano>
    [[nodiscard]] job next(std::chrono::duration<Rep, Period> timeout) {
        return core_->next(std::chrono::duration_cast<std::chrono::nanoseconds>(timeout));
    }
    [[nodiscard]] job next() { return core_->next(); }
    /// Does not block. Empty also where the program holds `concurrency` jobs.
    [[nodiscard]] job try_next() noexcept { return core_->try_next(); }

    /// For an event loop: readable when `try_next` may have a request. Call `arm` before each wait; false:
    /// there is a request already, which the wait could miss.
    int descriptor() const noexcept { return core_->descriptor(); }
    bool arm() noexcept { return core_->arm(); }

    /// Sends a row that no frontend asked for to each frontend that is connected, under the id that it
    /// expects.
    ///
    /// Shape:   row: `elements`.
    /// Returns: the number of frontends that it was sent to; a frontend where all spare places of the lane
    ///          hold unread rows is left out. 0 also for a row that its space does not allow.
    /// Errors:  `bad_argument`: its size.
    std::size_t contribute(std::uint64_t id, std::span<Element const> row) {
        if (row.size() != core_->elements())
            option_check{"contribute"}.refuse(
                {"the row has ", row.size(), " elements, and the ensemble's have ", core_->elements()});
        return core_->contribute(
            id, [&](std::span<Element> to) { std::copy(row.begin(), row.end(), to.begin()); });
    }
    /// The same; `fill(std::span<Element>)` writes the row in place, if it is sent at all. `fill` calls
    /// neither the member nor its jobs.
    template <class Fill>
    requires std::is_invocable_v<Fill&, std::span<Element>> //
        std::size_t contribute(std::uint64_t id, Fill&& fill) {
        return core_->contribute(id, std::forward<Fill>(fill));
    }

    /// True in a process that was forked off after the construction: it cannot use the member.
    bool forked_off() const noexcept { return !owner_.is_this(); }
    /// True if `next` returns nothing from now on.
    bool is_over() const noexcept { return core_->is_over(); }
    /// Ends `next`, which returns nothing from now on, and wakes its thread. From signal handlers, too.
    void stop() noexcept { core_->stop(); }
    /// Tells all frontends to ask no more, declines requests that wait and that still come, and returns when
    /// each frontend has let this member go. The program can still answer the jobs that it holds. Ends
    /// `next`, as `stop` does.
    ///
    /// Blocks:  for `most` at most; false: not all frontends have let it go, and it can be called again.
    /// Threads: any, also beside `next` and jobs of another one, as a thread that waits for SIGTERM does; not
    ///          signal handlers.
    bool leave(std::chrono::milliseconds most = std::chrono::milliseconds(5000)) {
        return core_->leave(most);
    }

    /// One for each frontend, in the order of the options.
    auto status() const { return core_->status(); }
    auto counters() const noexcept { return core_->counters(); }

    /// Not part of the public interface.
    Core& core() noexcept { return *core_; }

  private:
    HERRING_SETUP static dialler_options dialling(member_options const& o) {
        dialler_options d;
        d.frontends = o.frontends;
        d.name = o.name;
        d.replica = o.replica;
        d.secret = o.secret;
        d.secret_file = o.secret_file;
        d.require_secret = o.require_secret;
        d.lanes = o.lanes;
        d.credits = static_cast<std::uint32_t>(o.credits);
        return d;
    }

    owner_process const owner_{};
    manual_lifetime<Core> core_;
};

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_MEMBER_HPP

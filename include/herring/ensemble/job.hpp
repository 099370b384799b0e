// herring: a request that a member works on, and the row that answers it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_JOB_HPP
#define HERRING_ENSEMBLE_JOB_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/ensemble/outcome.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE {

/// What became of a job's answer.
enum class job_end : std::uint8_t {
    sent,        ///< the row is on its way
    declined,    ///< as the program said
    late,        ///< the deadline had passed: the row was dropped
    bad_row,     ///< the row has NaN, or what its space does not allow: it was dropped
    disconnected ///< the frontend of the job is gone, or has taken this member's place for another's
};
inline constexpr int job_ends = 5;

/// "sent", "declined", "late", "bad row", "disconnected".
constexpr char const* to_string(job_end e) noexcept {
    switch (e) {
    case job_end::sent:
        return "sent";
    case job_end::declined:
        return "declined";
    case job_end::late:
        return "late";
    case job_end::bad_row:
        return "bad row";
    case job_end::disconnected:
        return "disconnected";
    }
    return "unknown";
}

/// What a member has counted since it was made.
struct job_counters {
    std::uint64_t asked = 0;        ///< requests that came in
    std::uint64_t taken = 0;        ///< of them, by the program
    std::uint64_t expired = 0;      ///< of them, declined because their deadline passed before that
    std::uint64_t sent = 0;         ///< rows, those of `contribute` too
    std::uint64_t declined = 0;     ///< by the program, and jobs that it destroyed
    std::uint64_t late = 0;         ///< rows that were dropped: the deadline had passed
    std::uint64_t bad_rows = 0;     ///< rows that were dropped: NaN, or what their space does not allow
    std::uint64_t disconnected = 0; ///< requests and rows that were dropped: their frontend was gone
    std::uint64_t turned_away = 0;  ///< requests that came while it left
    std::uint64_t connections = 0;  ///< that were made
    std::uint64_t broken = 0;       ///< of them, ended here, for what the frontend sent
};

namespace detail::ensembles {

/// Moves; destroyed without an answer it declines at once. `Core` is the member's, which outlives it.
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
    /// Where the row goes. It has the numbers of an earlier row, not zeros.
    std::span<element> row() const { return core().row(slot_); }

    /// Brings the row into its wire form now, where it travels from, so that `send` only publishes it; without it `send` does both.
    /// What changes in the row afterwards is not sent, unless `encode` is called again.
    ///
    /// Returns: false: the row has NaN, or what its space does not allow. It can be corrected and encoded again; `send` drops it as
    ///          `bad_row`. Deadline and frontend are looked at by `send` only.
    bool encode() { return core().encode(slot_); }
    /// Answers with the row. Past the deadline, or where the frontend is gone, the row is dropped and counted.
    ///
    /// Blocks:  for 1 ms at most, while the first bytes that a socket does not take at once have to wait.
    /// Errors:  `bad_state`: it is answered; all functions but `operator bool` throw it then.
    job_end send() {
        Core& of = core();
        core_ = nullptr;
        return of.send(slot_);
    }
    /// Answers that there will be no row, so that nobody waits for it.
    job_end decline(herring::decline why = herring::decline::unspecified) {
        Core& of = core();
        core_ = nullptr;
        return of.decline(slot_, why);
    }

    /// Until the deadline; 0 when it has passed. It counts from when this member read the request.
    std::chrono::nanoseconds remaining() const { return core().remaining(slot_); }
    bool expired() const { return remaining().count() == 0; }
    /// Whose request it is: its place in the options' `frontends`.
    std::size_t frontend() const { return core().frontend(slot_); }
    /// Of the request, at that frontend.
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

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_JOB_HPP

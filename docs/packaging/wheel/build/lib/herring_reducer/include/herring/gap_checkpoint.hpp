// herring: a checkpoint that is written while steps wait: a task for `in_gaps`.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GAP_CHECKPOINT_HPP
#define HERRING_GAP_CHECKPOINT_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/checkpoint.hpp"
#include "herring/gaps/worker.hpp"
#include "herring/in_gaps.hpp"
#include "herring/policy/policy.hpp"
#include "herring/reducer.hpp"
#include "herring/session/saved_in_gaps.hpp"
#include "herring/sync/sync.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

namespace HERRING_NAMESPACE {

namespace detail {
template <bool Trains, bool EveryStep, bool KeepsState> struct saves_in_gaps {
    static constexpr bool value = true;
    static_assert(
        Trains && EveryStep && KeepsState,
        "[HRG-C09] gap_checkpoint: needs a reducer with an optimizer in every step, whose workers "
        "keep the state; common slips are to name no optimizer, a sync policy that skips steps, and "
        "servers of their own, which keep it and have no gaps; name optimizer::adamw, say, "
        "sync::every_step and placement::colocated, or call save");
};
/// Stands for `gap_checkpoint` after a sentence of the compiler.
struct no_gap_checkpoint {
    template <class... Anything> void begin(Anything&&...) noexcept {}
    void finish() noexcept {}
    std::chrono::nanoseconds quantum() const noexcept { return {}; }
    bool next() noexcept { return false; }
};
} // namespace detail

/// The checkpoint of one step, written in the gaps of later ones. Its files have the bytes of `save`'s, and
/// it is as safe (docs/checkpoints.md): what was in force stays so until `finish` has put this one in its
/// place.
///
/// Consistent: `begin` copies what this rank owns, between two steps.
/// Memory:   that copy, from construction on: weights and state of what this rank owns, and a block of 64
///           KiB.
/// Threads:  as the reducer. While the disk is waited for (fsync) there is a thread that does nothing else.
/// Lifetime: not longer than the reducer. One that is destroyed before `finish` leaves a file, which the next
///           save removes.
/// Example:  docs/gaps.md
template <class Reducer> class gap_checkpoint {
    using access = detail::checkpointing<Reducer>;

  public:
    /// Errors: `no_resources`.
    explicit gap_checkpoint(Reducer& of) : of_(of), saved_(access::rank_of(of)) {
        saved_.part().reserve(access::owned_bytes(of));
    }
    gap_checkpoint(gap_checkpoint const&) = delete;
    gap_checkpoint& operator=(gap_checkpoint const&) = delete;
    ~gap_checkpoint() { access::abandon(of_, saved_); }

    /// Begins a checkpoint of the present state, with bytes of the program, those of the lowest worker.
    /// Collective, between steps. No other save may begin in that folder before `finish` has returned; saves
    /// of this reducer are refused.
    ///
    /// Cost:   two small collectives of set-up, and the copy.
    /// Blocks: as `save`.
    /// Errors: on all ranks: `bad_argument`, `no_resources`, of the folder. `bad_state` where one is under
    ///         way already, of this object or into this folder, or before `start` or `load`.
    void begin(std::string const& folder, std::span<std::byte const> bytes = {}) {
        access::begin(of_, saved_, folder, bytes);
    }
    /// Writes what gaps have left, and puts the checkpoint in force. Collective, between steps. When it
    /// returns the checkpoint is whole and durable; afterwards none is under way, also where it throws, but
    /// for `bad_state` in a step and a world that has ended.
    ///
    /// Cost:   two small collectives, and what is left to write: nothing, where all ranks have `written()`.
    /// Blocks: as `save`.
    /// Errors: on all ranks, which go on: what a rank's memory or disk refused since `begin`, as `save`.
    ///         `bad_state` where none is under way.
    void finish() { access::finish(of_, saved_); }

    /// True if a checkpoint has begun and is not in force yet.
    bool under_way() const noexcept { return saved_.under_way(); }
    /// True if this rank's file of the checkpoint under way is on the disk, or could not be written.
    bool written() const noexcept { return saved_.under_way() && saved_.part().done(); }
    /// Why this rank's file could not be written; null: nothing is wrong so far. All ranks hear of it from
    /// `finish`.
    failure const* failed() const noexcept {
        failure const& how = saved_.part().how();
        return how.what == errc::ok ? nullptr : &how;
    }

    // ---- a task -------------------------------------------------------------------------------------------

    /// Writes 64 KiB: a checksum, and a copy into the system's cache of files.
    std::chrono::nanoseconds quantum() const noexcept { return std::chrono::microseconds(100); }
    bool next() noexcept { return saved_.part().next(); }

  private:
    Reducer& of_;
    detail::saved_in_gaps saved_;
};

/// For a reducer that cannot have one: a sentence of the compiler.
template <class Pack>
requires(!detail::optimizes<typename Pack::optimizer> || Pack::placement::facts.dedicated_servers) //
    class gap_checkpoint<basic_reducer<Pack>> : public detail::no_gap_checkpoint {
  public:
    explicit gap_checkpoint(basic_reducer<Pack>&) noexcept {
        (void)holds<detail::saves_in_gaps<detail::optimizes<typename Pack::optimizer>, true,
                                          !Pack::placement::facts.dedicated_servers>>;
    }
};
template <class Pack> class gap_checkpoint<basic_lazy_reducer<Pack>> : public detail::no_gap_checkpoint {
  public:
    explicit gap_checkpoint(basic_lazy_reducer<Pack>&) noexcept {
        (void)holds<detail::saves_in_gaps<true, !detail::skips_steps<typename Pack::sync>, true>>;
    }
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_GAP_CHECKPOINT_HPP

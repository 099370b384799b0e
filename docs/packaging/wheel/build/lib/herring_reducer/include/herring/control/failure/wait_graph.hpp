// herring: the root cause when a rank waits in vain: the end of a chain of ranks that wait. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_FAILURE_WAIT_GRAPH_HPP
#define HERRING_CONTROL_FAILURE_WAIT_GRAPH_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The state of a rank, as a probe shows it.
enum class rank_state : std::uint8_t {
    unknown, ///< there is no reply yet
    idle,    ///< in no call: it has not come yet, or it computes
    waiting, ///< for another rank
    silent,  ///< there was no reply in time
    stopped, ///< its process is stopped
    left     ///< its world was destroyed
};

/// A rank's reply to a probe, in one word that other ranks read: the rank that it waits for, and the probe's
/// number.
///
/// A probe raises the number. A waiting rank reads the number whenever it looks around, and writes its reply
/// with it; a rank in no call has written such a reply when it left its last call. So no clock decides
/// whether a reply is fresh, and a rank that is stopped cannot reply.
struct wait_report {
    rank_state state = rank_state::unknown;
    int awaits = -1; ///< −1: no rank that it knows of

    static constexpr std::uint64_t not_waiting = 0;
    static constexpr std::uint64_t waits_for(int rank, std::uint32_t probe) noexcept {
        return static_cast<std::uint64_t>(probe) << 32 | static_cast<std::uint32_t>(rank + 2);
    }
    /// Returns the reply to `probe` that the word holds.
    static constexpr wait_report read(std::uint64_t word, std::uint32_t probe) noexcept {
        auto const value = static_cast<std::uint32_t>(word);
        if (value == not_waiting) return {rank_state::idle, -1};
        bool const fresh = static_cast<std::int32_t>(static_cast<std::uint32_t>(word >> 32) - probe) >= 0;
        return {fresh ? rank_state::waiting : rank_state::unknown, static_cast<int>(value) - 2};
    }
};

/// The suspicion of a rank that waits for `why.peer` in vain.
struct suspicion_report {
    failure why{};           ///< ends the world if the suspect is the root cause itself
    bool certain = false;    ///< the suspect is lost or has left; only the reason may be with another rank
    std::uint32_t probe = 0; ///< its number; 0: there was no probe yet
    std::chrono::nanoseconds waited{
        0};               ///< since the probe; time in which this rank was stopped does not count
    bool held_up = false; ///< the network may hold up the decision that is due
};

/// The rank at the end of the chain.
struct root_cause {
    int rank = -1; ///< −1: replies are missing that decide it
    rank_state state = rank_state::unknown;
    int before = -1;    ///< the rank that waits for `rank`; −1: `rank` is the suspect
    bool cycle = false; ///< the suspect waits for itself, by way of others

    bool reached() const noexcept { return rank >= 0; }
    /// True if that state rules out waiting for another rank.
    bool plain() const noexcept {
        return state == rank_state::silent || state == rank_state::stopped || state == rank_state::left;
    }
};

/// Follows «waits for» from `suspect` to a rank that waits for no other; in a cycle the suspect is the root
/// cause. `of(rank)` → `wait_report`.
template <class Of> root_cause follow_waits(int reporter, int suspect, int ranks, Of const& of) {
    root_cause found{suspect, rank_state::waiting, -1, true};
    int before = -1, at = suspect;
    for (int steps = 0; steps < ranks && at != reporter; ++steps) {
        wait_report const reply = of(at);
        if (reply.state == rank_state::unknown) return {};
        if (reply.state != rank_state::waiting || reply.awaits < 0 || reply.awaits >= ranks ||
            reply.awaits == at)
            return {at, reply.state, before, false};
        before = at;
        at = reply.awaits;
    }
    return found;
}

/// The root cause of several suspects: a rank that is stopped or gone goes before one that is late. Where
/// ranks wait for each other in a circle, a rank outside it that is stopped or silent goes before all of
/// them: each names only one of the ranks that it waits for, and messages in flight between them arrive, or
/// are sent again. A rank in no call, or that has left, may hold a message that others still wait for.
template <class Of>
root_cause find_root_cause(int reporter, std::span<int const> suspect, int ranks, Of const& of) {
    root_cause best{};
    bool open = false;
    for (int const rank : suspect) {
        root_cause const found = follow_waits(reporter, rank, ranks, of);
        if (found.reached() && found.plain()) return found;
        if (!found.reached()) open = true;
        if (!best.reached()) best = found;
    }
    for (int rank = 0; best.cycle && rank < ranks; ++rank) {
        if (rank == reporter) continue;
        rank_state const state = of(rank).state;
        if (state == rank_state::silent || state == rank_state::stopped) return {rank, state, -1, false};
        open = open || state == rank_state::unknown;
    }
    return open ? root_cause{} : best;
}

/// Returns a failure in words: the reporter's observation, up to the semicolon of its text, and the root
/// cause.
HERRING_SETUP inline failure describe(failure const& why, root_cause const& found) noexcept {
    char const* how = "is in the call, and waits for nobody: is it slow?";
    if (found.cycle)
        how =
            "waits for a rank that waits for it: is the network between them slow, or do not all ranks make "
            "the same calls, in the same order?";
    if (found.state == rank_state::idle) how = "has not called: is it slow, or in another call?";
    if (found.state == rank_state::silent)
        how = "does not answer: is its process stopped or starved, or its host unreachable?";
    if (found.state == rank_state::stopped)
        how = "is stopped: see who sent its process a SIGSTOP or the like";
    if (found.state == rank_state::left)
        how = "has left while others wait for it: let every rank make the same calls";
    char text[sizeof why.text];
    if (found.before >= 0)
        std::snprintf(text, sizeof text, "rank %d waits for rank %d, which %s", found.before, found.rank,
                      how);
    else
        std::snprintf(text, sizeof text, "%.*s; rank %d %s", static_cast<int>(std::strcspn(why.text, ";")),
                      why.text, found.rank, how);
    return failure::make(why.what, why.reporter, found.rank, why.operation, text);
}

/// Returns the failure of `rank`, which has left in order while `reporter` waits for it in `operation`.
/// `how`: for the text.
HERRING_SETUP inline failure departure(int reporter, int rank, std::string_view operation,
                                       std::string_view how) noexcept {
    return failure::make(
        errc::peer_lost, reporter, rank, operation,
        {"it left (", how, ") while others still wait for it; let every rank make the same calls"});
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_FAILURE_WAIT_GRAPH_HPP

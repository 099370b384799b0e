// herring: who is to blame when a rank waits in vain: follows «waits for» to the rank that started it. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_FAILURE_WAIT_GRAPH_HPP
#define HERRING_CONTROL_FAILURE_WAIT_GRAPH_HPP

#include "herring/base/config.hpp"
#include "herring/error.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// What is known of a rank when another one waits in vain.
enum class rank_state : std::uint8_t {
    unheard, ///< it was asked, and has not answered yet
    idle,    ///< it is in no call: it has not come, or it computes
    waiting, ///< for another rank
    silent,  ///< it was asked, and did not answer in time
    stopped, ///< its process is
    left     ///< its world is gone
};

/// What a rank says of itself, in one word that others read: whom it waits for, and which question that answers.
///
/// Who asks raises the number of the question. A rank that waits looks at the number whenever it looks around, and
/// writes its answer beside it; one that is in no call has said so when it left the last one. So whether an answer is
/// fresh is not a matter of clocks, and a rank that is stopped cannot give one.
struct wait_report {
    rank_state how = rank_state::unheard;
    int awaits = -1; ///< −1: nobody that it knows of

    static constexpr std::uint64_t not_waiting = 0;
    static constexpr std::uint64_t waits_for(int rank, std::uint32_t question) noexcept {
        return static_cast<std::uint64_t>(question) << 32 | static_cast<std::uint32_t>(rank + 2);
    }
    /// What the word says to whoever asked `question`.
    static constexpr wait_report read(std::uint64_t word, std::uint32_t question) noexcept {
        auto const said = static_cast<std::uint32_t>(word);
        if (said == not_waiting) return {rank_state::idle, -1};
        bool const fresh = static_cast<std::int32_t>(static_cast<std::uint32_t>(word >> 32) - question) >= 0;
        return {fresh ? rank_state::waiting : rank_state::unheard, static_cast<int>(said) - 2};
    }
};

/// What a rank brings before its world: that it waits for `why.peer` in vain.
struct suspicion_report {
    failure why{};           ///< what ends the world if the accused has to answer for it itself
    bool certain = false;    ///< the accused is lost or has left: only the cause may still be elsewhere
    std::uint32_t probe = 0; ///< number of the question; 0: nobody was asked yet
    std::chrono::nanoseconds waited{0}; ///< since then; time that this rank slept through does not count
};

/// Who it was.
struct root_cause {
    int rank = -1; ///< −1: that depends on answers that have not come
    rank_state how = rank_state::unheard;
    int before = -1;     ///< the rank that waits for it; −1: it is the accused
    bool circle = false; ///< the accused waits for itself, by way of others

    bool reached() const noexcept { return rank >= 0; }
    /// It is nobody's turn but its own: it cannot be waiting for another one.
    bool plain() const noexcept {
        return how == rank_state::silent || how == rank_state::stopped || how == rank_state::left;
    }
};

/// Follows from `accused` along «waits for» to a rank that waits for nobody. `of(rank)` → `wait_report`. Where that leads
/// back, it is the accused.
template <class Of> root_cause follow_waits(int accuser, int accused, int ranks, Of const& of) {
    root_cause found{accused, rank_state::waiting, -1, true};
    int before = -1, at = accused;
    for (int steps = 0; steps < ranks && at != accuser; ++steps) {
        wait_report const heard = of(at);
        if (heard.how == rank_state::unheard) return {};
        if (heard.how != rank_state::waiting || heard.awaits < 0 || heard.awaits >= ranks ||
            heard.awaits == at)
            return {at, heard.how, before, false};
        before = at;
        at = heard.awaits;
    }
    return found;
}

/// The same where several are missing: who is stopped or gone before who is merely late.
template <class Of>
root_cause find_root_cause(int accuser, std::span<int const> accused, int ranks, Of const& of) {
    root_cause best{};
    bool open = false;
    for (int const rank : accused) {
        root_cause const found = follow_waits(accuser, rank, ranks, of);
        if (found.reached() && found.plain()) return found;
        if (!found.reached()) open = true;
        if (!best.reached()) best = found;
    }
    return open ? root_cause{} : best;
}

/// The verdict in words: what the accuser saw, up to the semicolon of its text, and what was found.
HERRING_SETUP inline failure describe(failure const& why, root_cause const& found) noexcept {
    char const* how = "is in the call, and waits for nobody: is it slow?";
    if (found.circle)
        how = "waits for a rank that waits for it: do all ranks make the same calls, in the same order?";
    if (found.how == rank_state::idle) how = "has not called: is it slow, or in another call?";
    if (found.how == rank_state::silent)
        how = "does not answer: is its process stopped or starved, or its host unreachable?";
    if (found.how == rank_state::stopped) how = "is stopped: see who sent its process a SIGSTOP or the like";
    if (found.how == rank_state::left)
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

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_FAILURE_WAIT_GRAPH_HPP

// herring: finds ranks that can never go on: each waits for a call that another of them has not begun. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_FAILURE_DEADLOCK_HPP
#define HERRING_CONTROL_FAILURE_DEADLOCK_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// The report of a rank that can only wait: all threads of its process wait in calls of Herring, or its world
/// has one caller, which waits.
///
/// A channel is a sequence of operations that all ranks run in one order: channel 0 has the world's
/// collectives, channel n the executions of its n-th reducer; those of a group (`world::split`) have its
/// number in front (`channel_in`). An operation needs every rank of its world.
/// Shape:    words only, so that it can lie in memory that others read.
struct blocked_report {
    static constexpr std::size_t most_waits = 4, most_channels = 28, longest_call = 24;
    struct entry {
        std::uint64_t channel = 0;
        std::uint64_t number = 0;
        friend bool operator==(entry const&, entry const&) = default;
    };

    std::uint64_t waits = 0; ///< 0: there is no report
    std::uint64_t channels = 0;
    std::uint64_t waits_of_process = 0;
    entry waiting[most_waits]{};  ///< a thread each: the operation that the thread waits for
    entry begun[most_channels]{}; ///< how many operations of this channel the rank has begun
    std::uint64_t
        call[longest_call / 8]{}; ///< the caller's call, a text without its end: of worlds with one caller

    bool sound() const noexcept { return waits <= most_waits && channels <= most_channels; }
    /// True if the rank is known not to have begun this operation.
    bool lacks(entry const& operation) const noexcept {
        for (std::size_t i = 0; i < channels; ++i)
            if (begun[i].channel == operation.channel) return begun[i].number <= operation.number;
        return false;
    }
    void name_call(char const* text) noexcept {
        std::memset(call, 0, sizeof call);
        std::memcpy(call, text, std::strlen(text) < sizeof call ? std::strlen(text) : sizeof call);
    }
    /// The letters of `call`, as far as they can be printed: another rank may have sent them.
    void read_call(char (&text)[longest_call + 1]) const noexcept {
        std::memcpy(text, call, sizeof call);
        text[longest_call] = 0;
        for (char* at = text; *at != 0; ++at)
            if (*at < ' ' || *at > '~') *at = '?';
    }
    friend bool operator==(blocked_report const&, blocked_report const&) = default;
};

/// The channel of a report that is channel `own` of the world of this number; 0: the joined or launched
/// world.
constexpr std::uint64_t channel_in(std::uint64_t world, std::uint64_t own) noexcept {
    return world << 24 | (own & 0xFFFFFF);
}
constexpr std::uint64_t world_of_channel(std::uint64_t channel) noexcept { return channel >> 24; }

/// Drops the reports with a wait in a world that has failed or is gone, for which `lives(number)` is false:
/// such a wait has ended without its operation, and its rank goes on.
template <class Lives>
HERRING_SETUP void drop_ended_waits(std::span<blocked_report> reports, Lives const& lives) {
    for (blocked_report& one : reports)
        for (std::size_t w = 0; w < one.waits; ++w)
            if (!lives(world_of_channel(one.waiting[w].channel))) one = {};
}

/// A rank that never goes on, and a rank that it waits for.
struct deadlock {
    int rank = -1; ///< −1: no deadlock is proven
    int other = -1;
    std::uint64_t channel = 0, other_channel = 0;           ///< in which the two wait
    char call[blocked_report::longest_call + 1] = {};       ///< of `rank`; empty: see its channel
    char other_call[blocked_report::longest_call + 1] = {}; ///< of the other rank
};

/// Finds the ranks that can never go on. `all`: rank → its last report, of all its worlds, however old.
/// `one_process`: all are threads of one.
///
/// Cost:     E · log E for E waits and channels in all reports.
/// Lifetime: refers to the reports.
// The search finds the largest set of ranks each of whose waits is for an operation that another rank of the
// set has not begun. Correctness: docs/design/failures.md, Crossed calls.
class deadlock_search {
  public:
    HERRING_SETUP deadlock_search(std::span<blocked_report const> all, bool one_process)
        : all_(all), stuck_(all.size()), one_process_(one_process) {
        std::size_t waits = 0, channels = 0; // of the set
        for (std::size_t r = 0; r < all.size(); ++r) {
            stuck_[r] = all[r].waits > 0 && (one_process || all[r].waits == all[r].waits_of_process);
            if (!stuck_[r]) continue;
            waits += all[r].waits;
            channels += all[r].channels;
        }
        fixed_array<place> waiting(waits), begun(channels);
        for (std::size_t r = all.size(); r-- > 0;) {
            for (std::size_t w = 0; stuck_[r] && w < all[r].waits; ++w)
                waiting[--waits] = {all[r].waiting[w].channel, all[r].waiting[w].number, r};
            for (std::size_t c = 0; stuck_[r] && c < all[r].channels; ++c)
                begun[--channels] = {all[r].begun[c].channel, all[r].begun[c].number, r};
        }
        leave_out(waiting, begun);
        for (std::size_t r = 0; r < all.size(); ++r) waits_ += stuck_[r] ? all[r].waits : 0;
    }

    /// Returns a rank that never goes on, and waits in the world of this number.
    HERRING_SETUP deadlock in(std::uint64_t world) const {
        for (std::size_t r = 0; r < all_.size(); ++r) {
            if (!stuck_[r] || (one_process_ && waits_ != all_[r].waits_of_process)) continue;
            for (std::size_t w = 0; w < all_[r].waits; ++w) {
                if (world_of_channel(all_[r].waiting[w].channel) != world) continue;
                std::size_t const other = awaited(all_[r].waiting[w]);
                if (other == all_.size()) continue; // a report that names a channel twice
                deadlock found{static_cast<int>(r), static_cast<int>(other), all_[r].waiting[w].channel,
                               all_[other].waiting[0].channel};
                all_[r].read_call(found.call);
                all_[other].read_call(found.other_call);
                return found;
            }
        }
        return {};
    }

  private:
    // A rank's wait for an operation, or how far it is in a channel.
    struct place {
        std::uint64_t channel = 0, number = 0;
        std::size_t rank = 0;
    };
    // The places of a channel that are not taken out, in the sorted lists.
    struct channel_places {
        std::uint64_t channel = 0;
        std::size_t waiting = 0, waiting_end = 0, begun = 0, begun_end = 0;
        bool is_due = false;
    };
    static void sort(fixed_array<place>& all) noexcept {
        std::qsort(all.data(), all.size(), sizeof(place), [](void const* one, void const* other) {
            place const &a = *static_cast<place const*>(one), &b = *static_cast<place const*>(other);
            if (a.channel != b.channel) return a.channel < b.channel ? -1 : 1;
            return a.number < b.number ? -1 : a.number > b.number;
        });
    }
    // Leaves the ranks out of the set that wait for an operation which all of the set have begun: of each
    // channel those whose number is below the least. A rank that leaves may let others go on, in the channels
    // that it has begun.
    HERRING_SETUP void leave_out(fixed_array<place>& waiting, fixed_array<place>& begun) {
        sort(waiting);
        sort(begun);
        fixed_array<channel_places> channels(waiting.size());
        std::size_t known = 0, due = 0;
        for (std::size_t w = 0, b = 0; w < waiting.size(); ++known) {
            channel_places& at = channels[known];
            at = {waiting[w].channel, w, w, b, b};
            for (; w < waiting.size() && waiting[w].channel == at.channel; ++w) at.waiting_end = w + 1;
            for (; b < begun.size() && begun[b].channel <= at.channel; ++b)
                (begun[b].channel < at.channel ? at.begun : at.begun_end) = b + 1;
        }
        fixed_array<std::size_t> next(known); // channels that are due
        auto const look_at = [&](std::size_t which) noexcept {
            if (!std::exchange(channels[which].is_due, true)) next[due++] = which;
        };
        for (std::size_t i = 0; i < known; ++i) look_at(i);
        while (due > 0) {
            channel_places& at = channels[next[--due]];
            at.is_due = false;
            for (; at.waiting < at.waiting_end; ++at.waiting) {
                while (at.begun < at.begun_end && !stuck_[begun[at.begun].rank]) ++at.begun;
                if (at.begun < at.begun_end && begun[at.begun].number <= waiting[at.waiting].number) break;
                std::size_t const rank = waiting[at.waiting].rank;
                if (!std::exchange(stuck_[rank], false)) continue;
                for (std::size_t c = 0; c < all_[rank].channels; ++c) {
                    channel_places const* const found = std::lower_bound(
                        channels.begin(), channels.begin() + known, all_[rank].begun[c].channel,
                        [](channel_places const& one, std::uint64_t id) { return one.channel < id; });
                    auto const which = static_cast<std::size_t>(found - channels.begin());
                    if (which < known && found->channel == all_[rank].begun[c].channel) look_at(which);
                }
            }
        }
    }
    /// The first rank of the set that has not begun the operation; none: the number of ranks.
    std::size_t awaited(blocked_report::entry const& wait) const noexcept {
        std::size_t p = 0;
        while (p < all_.size() && !(stuck_[p] && all_[p].lacks(wait))) ++p;
        return p;
    }

    std::span<blocked_report const> all_;
    fixed_array<bool> stuck_;
    bool one_process_;
    std::uint64_t waits_ = 0; // of the set
};

/// Returns the deadlock in words, as a failure that its rank reports.
HERRING_SETUP inline failure describe(deadlock const& found) noexcept {
    bool const named = found.call[0] != 0 && found.other_call[0] != 0;
    char digits[2][32];
    auto const place = [&](int which, std::uint64_t channel) -> char const* {
        if (named) return which == 0 ? found.call : found.other_call;
        if (world_of_channel(channel) != world_of_channel(found.channel)) return "a call of another world";
        if (channel_in(0, channel) == 0) return "a barrier or a construction";
        std::snprintf(digits[which], sizeof digits[which], "reducer %llu",
                      static_cast<unsigned long long>(channel_in(0, channel)));
        return digits[which];
    };
    return failure::make(
        errc::mismatch, found.rank, found.other, "wait",
        {"rank ", found.rank, " waits in ", place(0, found.channel), " for rank ", found.other,
         ", which has not made that call and waits in ", place(1, found.other_channel),
         named ? "" : " (reducers in order of construction)",
         ": calls in crossed order, neither can go on; let all ranks make the same calls in the same order"});
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_FAILURE_DEADLOCK_HPP

// herring: counters and latencies of an ensemble's frontend and of each member.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_COUNTERS_HPP
#define HERRING_ENSEMBLE_COUNTERS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/admission_refusal.hpp"
#include "herring/ensemble/outcome.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE {

/// The requests of one member by their fate, since the frontend's start. Counters only grow.
///
/// Requests in flight apart, asked = answered + missed.
struct member_counters {
    std::uint64_t asked = 0;    ///< requests sent to the member, whichever replica
    std::uint64_t answered = 0; ///< requests that the member contributed to
    std::uint64_t missed = 0;   ///< requests that it was asked and that were decided without it
    std::uint64_t late = 0;     ///< good rows that came after the decision, or after another replica's
    std::uint64_t hedged = 0;   ///< second requests to another replica
    std::uint64_t stale =
        0; ///< messages of an earlier incarnation, or for a request that it does not owe; dropped
    std::uint64_t duplicate = 0;      ///< further answers to a request in flight; dropped
    std::uint64_t lost = 0;           ///< connections that ended
    std::uint64_t early = 0;          ///< rows that came before they were expected, and were kept
    std::uint64_t early_answered = 0; ///< early rows that counted
    std::uint64_t early_evicted = 0;  ///< early rows dropped for a newer one, as no place was free
    std::uint64_t early_expired = 0;  ///< early rows dropped as they were not expected in time

    std::uint64_t missing[misses] = {};    ///< requests by `miss`; `none`: answered
    std::uint64_t declined[declines] = {}; ///< answers by `decline`, late ones included
    std::uint64_t refused_rows[6] = {};    ///< rows that came, by fault (`row_check`), late ones included
    static_assert(detail::ensembles::row_checks == 6);

    constexpr std::uint64_t missing_for(miss why) const noexcept {
        return missing[static_cast<std::size_t>(why)];
    }
    constexpr std::uint64_t declined_for(decline why) const noexcept {
        return declined[static_cast<std::size_t>(why)];
    }
    /// Returns the rows that did not pass the check, at the frontend or at the member.
    constexpr std::uint64_t refused() const noexcept {
        std::uint64_t all = declined_for(decline::bad_row);
        for (std::uint64_t const n : refused_rows) all += n;
        return all;
    }

    friend constexpr bool operator==(member_counters const&, member_counters const&) = default;
};

/// The requests of a frontend by their outcome, and refused processes, since its start. Counters only grow.
struct frontend_counters {
    std::uint64_t ended[outcomes] =
        {};                   ///< requests by outcome; `busy` and `closed` also without having begun
    std::uint64_t hedges = 0; ///< second requests to another replica
    std::uint64_t hedges_withheld =
        0; ///< hedges that were due, with another replica at hand, but beyond the budget
    std::uint64_t late_rows = 0;                    ///< sum of the members' `late`
    std::uint64_t refused[admission_refusals] = {}; ///< refused processes by reason

    constexpr std::uint64_t refused_for(admission_refusal why) const noexcept {
        return refused[static_cast<std::size_t>(why)];
    }
    constexpr std::uint64_t ended_as(outcome how) const noexcept {
        return ended[static_cast<std::size_t>(how)];
    }

    friend constexpr bool operator==(frontend_counters const&, frontend_counters const&) = default;
};

/// Percentiles of a window of times, in nanoseconds. −1: no time was measured.
struct time_percentiles {
    std::int64_t p50_ns = -1, p95_ns = -1, p99_ns = -1;

    friend constexpr bool operator==(time_percentiles const&, time_percentiles const&) = default;
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail::ensembles {

/// A histogram of the last 1,024 times.
///
/// Units:   nanoseconds. A bucket is 1/32 of its times wide, so a percentile is at most 3.2 % too high, never
///          too low. Times of 2^42 ns (73 minutes) and more count as 2^42 ns.
/// Cost:    4.5 KB; `add` some 2 ns; a percentile adds up to 1,216 counters, at most some 0.5 µs.
class time_window {
  public:
    static constexpr std::size_t capacity = 1024;

    void add(std::int64_t ns) noexcept {
        std::uint16_t const bucket = bucket_of(ns);
        std::uint16_t& place = window_[added_ % capacity];
        if (added_ >= capacity) --counts_[place];
        place = bucket;
        ++counts_[bucket];
        ++added_;
        sum_ns_ += ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
    }

    std::size_t size() const noexcept {
        return added_ < capacity ? static_cast<std::size_t>(added_) : capacity;
    }
    std::uint64_t added() const noexcept { return added_; }   ///< ever
    std::uint64_t sum_ns() const noexcept { return sum_ns_; } ///< of all times ever added

    /// Returns the ⌈percent · size / 100⌉-th smallest time, rounded up to the end of its bucket; −1: empty.
    std::int64_t percentile(unsigned percent) const noexcept {
        std::size_t const in = size();
        if (in == 0) return -1;
        std::size_t const rank = (in * percent + 99) / 100;
        std::size_t below = 0;
        for (std::size_t b = 0; b < buckets; ++b) {
            below += counts_[b];
            if (below >= rank && below > 0) return end_of(b);
        }
        return end_of(buckets - 1);
    }
    time_percentiles percentiles() const noexcept { return {percentile(50), percentile(95), percentile(99)}; }

    /// Returns the end of the time's bucket, as a percentile shows it.
    static constexpr std::int64_t rounded(std::int64_t ns) noexcept { return end_of(bucket_of(ns)); }

  private:
    static constexpr int octave_bits = 5, most_bits = 42;
    static constexpr std::size_t octave = std::size_t{1} << octave_bits;
    static constexpr std::size_t buckets = (most_bits - octave_bits + 1) * octave;

    // 0 … 63 exactly, then 32 buckets for each power of two.
    static constexpr std::uint16_t bucket_of(std::int64_t ns) noexcept {
        constexpr std::uint64_t most = (std::uint64_t{1} << most_bits) - 1;
        std::uint64_t time = ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
        if (time > most) time = most;
        int const width = static_cast<int>(std::bit_width(time));
        int const shift = width > octave_bits + 1 ? width - octave_bits - 1 : 0;
        return static_cast<std::uint16_t>(static_cast<std::uint64_t>(shift) * octave + (time >> shift));
    }
    static constexpr std::int64_t end_of(std::size_t bucket) noexcept {
        if (bucket < 2 * octave) return static_cast<std::int64_t>(bucket);
        std::size_t const shift = bucket / octave - 1;
        return static_cast<std::int64_t>(((bucket - shift * octave + 1) << shift) - 1);
    }

    std::uint64_t added_ = 0, sum_ns_ = 0;
    std::uint16_t window_[capacity] = {}; // ring of the last times' buckets
    std::uint16_t counts_[buckets] = {};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_COUNTERS_HPP

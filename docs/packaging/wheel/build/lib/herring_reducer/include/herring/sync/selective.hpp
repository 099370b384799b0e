// herring: the sync policy `selective`: ranks exchange when the gradient of any rank changes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_SELECTIVE_HPP
#define HERRING_SYNC_SELECTIVE_HPP

#include "herring/base/config.hpp"
#include "herring/base/lane_math.hpp"
#include "herring/sync/sync.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::sync {

/// Tuning of `selective`.
struct selective_tuning {
    float threshold = 0.3f;  ///< relative change from which on a rank votes for an exchange; 0: every step
    int window = 25;         ///< samples in the mean, 1 to 64; the first `window` + `ahead` steps exchange
    float smoothing = 0.16f; ///< s: the k-th newest sample has the weight (1 − s)^k; 0: equal weights
    int ahead = 1;           ///< see sync_facts; 0 as published, 1 exchanges one step later
    bool per_bucket = false; ///< each bucket by its own gradient; else all buckets by the whole gradient
};

} // namespace HERRING_NAMESPACE::sync

namespace HERRING_NAMESPACE::detail {

// A need, so that a pack prints one sentence.
template <sync::selective_tuning Tuning> struct sound_selective_tuning {
    template <class Pack> struct check {
        static constexpr bool value = Tuning.threshold >= 0 && Tuning.window >= 1 && Tuning.window <= 64 &&
                                      Tuning.smoothing >= 0 && Tuning.smoothing < 1;
        static_assert(value,
                      "[HRG-Y08] sync: selective needs a threshold of 0 or more, a window of 1 to 64 and a "
                      "smoothing from 0 to below 1; a common slip is a smoothing of 1, by which no sample "
                      "counts; leave members out for their defaults");
    };
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::sync {

/// Each rank updates its own weights; when the gradient of one rank changes by the threshold or more, all
/// ranks average.
///
/// The signal of a step is n, the sum of squares of this rank's gradient. N is the mean of n over a window,
/// in which the k-th newest sample has the weight (1 − s)^k, and D = |N − N'| / N', where N' is N of the step
/// before. A rank votes for an exchange in the first `window` steps, where D is not defined yet, and where D
/// ≥ threshold. One vote is enough.
///
/// A gradient that is not finite is a vote, and not a sample.
///
/// The first `window` + `ahead` steps bound the speed-up: a training of n steps is at most n / (window +
/// ahead) times as fast. The larger the window, the less D depends on single batches.
///
/// Cost:    a pass over each gradient in `ready`; a message of 64 bytes a peer and step.
/// Memory:  8 · window bytes; 512 times as much with `per_bucket`.
/// Source:  Tyagi and Swany, "Accelerating Distributed ML Training via Selective Synchronization", CLUSTER
///          2023.
template <selective_tuning Tuning = selective_tuning{}> class selective {
  public:
    using axis = axes::sync;
    static constexpr sync_facts facts{.observes = true, .votes = true, .ahead = Tuning.ahead};
    using needs = herring::needs<detail::sound_selective_tuning<Tuning>>;
    static constexpr selective_tuning tuning = Tuning;

    bool due(std::size_t bucket) const noexcept { return due_.has(bucket); }
    void agreed(ballot const& any) noexcept { due_ = any; }

    void observe(std::size_t bucket, double squares) noexcept {
        std::size_t const at = Tuning.per_bucket ? bucket % ballot::bits : 0;
        signals_[at].now += squares;
        if (at >= used_) used_ = at + 1;
    }
    ballot vote() noexcept {
        ballot wanted;
        for (std::size_t at = 0; at < used_; ++at)
            if (signals_[at].changes()) {
                if (!Tuning.per_bucket) return ballot::all();
                wanted.set(at);
            }
        return wanted;
    }

  private:
    // Avoids an array of a bad size: a window outside 1 to 64 is refused by `needs`.
    static constexpr std::size_t window = Tuning.window > 0 && Tuning.window <= 64 ? Tuning.window : 1;

    struct signal {
        double now = 0;  ///< sum of squares of this step, so far
        double last = 0; ///< N of the step before
        std::uint64_t samples = 0;
        double ring[window] = {};

        /// Ends the step's sample. Returns true if D is not defined yet, or is the threshold or more.
        bool changes() noexcept {
            double const sample = now;
            now = 0;
            if (!(sample - sample == 0)) return true;
            ring[samples++ % window] = sample;
            if (samples < window) return true;
            double const before = last;
            last = smoothed();
            if (samples == window) return true;
            double const change = last > before ? last - before : before - last;
            return change >= lanes::product(before, static_cast<double>(Tuning.threshold));
        }
        double smoothed() const noexcept {
            double sum = 0, weights = 0, weight = 1;
            for (std::size_t k = 1; k <= window; ++k) {
                weight = lanes::product(weight, 1 - static_cast<double>(Tuning.smoothing));
                sum += lanes::product(weight, ring[(samples - k) % window]);
                weights += weight;
            }
            return sum / weights;
        }
    };

    ballot due_ = ballot::all();
    std::size_t used_ = 0;
    signal signals_[Tuning.per_bucket ? ballot::bits : 1];
};
static_assert(sync_policy<selective<>>);

} // namespace HERRING_NAMESPACE::sync

#endif // HERRING_SYNC_SELECTIVE_HPP

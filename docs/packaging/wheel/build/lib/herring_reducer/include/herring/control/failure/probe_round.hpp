// herring: one question «whom do you wait for?» to all ranks, its replies, and the root cause in them. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_FAILURE_PROBE_ROUND_HPP
#define HERRING_CONTROL_FAILURE_PROBE_ROUND_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/machine/time.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Rank 0's book of the first suspicion in a world. The suspicion ends the world in any case; the book
/// decides the rank that the failure names.
class probe_round {
  public:
    bool active() const noexcept { return active_; }
    failure const& suspicion() const noexcept { return why_; }

    /// Begins. `certain`: the suspect is lost. `deadline`: a rank without a reply by then counts as silent.
    HERRING_SETUP void begin(failure const& why, bool certain, int ranks, time_point deadline) {
        active_ = true;
        why_ = why;
        certain_ = certain;
        replies_ = fixed_array<wait_report>(static_cast<std::size_t>(ranks));
        deadline_ = deadline;
    }
    /// Moves the deadline by a time in which this rank was stopped itself.
    void postpone(clock::duration time) noexcept { deadline_ += time; }

    wait_report& reply(int rank) noexcept { return replies_[static_cast<std::size_t>(rank)]; }
    /// True if the deadline, and `more` time behind it, has passed.
    bool expired(time_point now, clock::duration more = {}) const noexcept { return now - more >= deadline_; }

    /// Returns the failure that ends the world, or one without a code while replies are missing that decide
    /// it.
    ///
    /// `missing`: the ranks missing in a collective whose deadline has passed; empty: the suspect is the peer
    /// of the suspicion. `state(rank)` → `wait_report`, with `silent` for a rank that is no longer waited
    /// for.
    template <class State>
    HERRING_SETUP failure verdict(std::span<int const> missing, State const& state) const {
        if (why_.peer < 0) return why_;
        if (certain_) // a rank reports a failure elsewhere before it replies
            return state(why_.peer).state != rank_state::unknown ? why_ : failure{};
        std::span<int const> const suspects = missing.empty() ? std::span<int const>(&why_.peer, 1) : missing;
        root_cause const found =
            find_root_cause(why_.reporter, suspects, static_cast<int>(replies_.size()), state);
        return found.reached() ? describe(why_, found) : failure{};
    }

  private:
    bool active_ = false;
    bool certain_ = false;
    failure why_{};
    fixed_array<wait_report> replies_;
    time_point deadline_{};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_FAILURE_PROBE_ROUND_HPP

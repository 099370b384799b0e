// herring: a rank's gradients where they are not exchanged: their memory, readiness and statistics.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_OWN_GRADIENTS_HPP
#define HERRING_STEP_OWN_GRADIENTS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/kernel/optimise.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/plan/plan.hpp"
#include "herring/step/due_buckets.hpp"
#include "herring/step/ledger.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// `Observes`: the sum of squares of each is taken when it is ready.
///
/// Memory:   that of the tensors; a page that is never written is never allocated.
/// Lifetime: refers to the plan.
template <class Element, bool Observes> class own_gradients {
  public:
    own_gradients(plan const& from, int rank)
        : plan_(from), memory_(from.tensor_bytes(), rank), ready_(from),
          squares_(Observes ? from.tensors.size() : 0) {}

    std::span<Element> tensor(std::size_t i) const noexcept {
        placed_tensor const& at = plan_.tensors[i];
        return {reinterpret_cast<Element*>(memory_.data()) + at.offset, at.elements};
    }
    step_ledger const& ledger() const noexcept { return ready_; }

    /// Tensor i, which was not ready, is, and has this gradient.
    void mark_ready(std::size_t i, std::span<Element const> gradient) noexcept {
        if constexpr (Observes) squares_[i] = kernel::sum_of_squares(gradient.data(), gradient.size());
        ready_.mark_ready(i);
    }
    /// All are ready: calls `observe(group, Σx²)` for each group of buckets, in order.
    template <class Observe>
    void observe(due_buckets const& groups, Observe const& observe) const noexcept requires(Observes) {
        std::size_t i = 0;
        for (std::size_t g = 0; g < groups.groups(); ++g) {
            double sum = 0;
            for (; i < squares_.size() && groups.group(plan_.tensors[i].bucket) == g; ++i) sum += squares_[i];
            observe(g, sum);
        }
    }
    /// Begins a step: no gradient is ready.
    void end_step() noexcept { ready_.begin_step(); }

  private:
    plan const& plan_;
    private_memory memory_;
    step_ledger ready_;
    fixed_array<double> squares_; // of each tensor
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_OWN_GRADIENTS_HPP

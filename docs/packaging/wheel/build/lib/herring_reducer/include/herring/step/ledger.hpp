// herring: the ledger of a step: which tensors are ready, and which bucket leaves next.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_LEDGER_HPP
#define HERRING_STEP_LEDGER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// Counts the tensors that each bucket still misses. A bucket is full when all of its tensors are ready;
/// buckets leave in the plan's order on every rank, so that all ranks count the same executions.
///
/// Cost:     O(1) a tensor, O(tensors + buckets) a step; nothing is allocated after construction.
/// Threads:  one at a time.
/// Lifetime: refers to the plan.
class step_ledger {
  public:
    /// Begins the first step.
    explicit step_ledger(plan const& from)
        : plan_(from), is_ready_(from.tensors.size()), missing_(from.buckets.size()) {
        begin_step();
    }
    step_ledger(step_ledger const&) = delete;
    step_ledger& operator=(step_ledger const&) = delete;

    /// Begins a step: no tensor is ready.
    void begin_step() noexcept {
        std::fill(is_ready_.begin(), is_ready_.end(), std::uint8_t{0});
        for (std::size_t b = 0; b < missing_.size(); ++b) missing_[b] = plan_.buckets[b].tensors;
        ready_ = full_ = 0;
    }

    std::size_t size() const noexcept { return is_ready_.size(); }
    bool is_ready(std::size_t tensor) const noexcept { return is_ready_[tensor] != 0; }

    /// Tensor `i`, which was not ready, is. Returns whether there are more full buckets now.
    bool mark_ready(std::size_t i) noexcept {
        is_ready_[i] = 1;
        ++ready_;
        --missing_[plan_.tensors[i].bucket];
        std::size_t const before = full_;
        while (full_ < missing_.size() && missing_[full_] == 0) ++full_;
        return full_ != before;
    }

    /// Tensors that are ready: 0 between steps. The reference stays valid.
    std::size_t const& ready() const noexcept { return ready_; }
    bool under_way() const noexcept { return ready_ > 0; }
    bool all_ready() const noexcept { return ready_ == size(); }
    /// Its number, or `size()`.
    std::size_t first_unready() const noexcept {
        return static_cast<std::size_t>(std::find(is_ready_.begin(), is_ready_.end(), 0) - is_ready_.begin());
    }

    /// The buckets [0, full_buckets()) may leave: they are full, and so are all before them.
    std::size_t full_buckets() const noexcept { return full_; }
    std::size_t buckets() const noexcept { return missing_.size(); }

  private:
    plan const& plan_;
    fixed_array<std::uint8_t> is_ready_;
    fixed_array<std::uint32_t> missing_; // tensors of a bucket that are not ready
    std::size_t ready_ = 0;
    std::size_t full_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_LEDGER_HPP

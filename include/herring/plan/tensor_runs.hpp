// herring: the memory of a plan's tensors as runs: of one tensor each, or of neighbours in one group.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_TENSOR_RUNS_HPP
#define HERRING_PLAN_TENSOR_RUNS_HPP

#include "herring/base/config.hpp"
#include "herring/model/layout.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// Cuts any range of a rank's tensor memory where the tensor changes, or its group. The gap behind a tensor is of its run.
///
/// Units: elements from the start of the tensor memory, as the plan places tensors.
/// Cost:  O(log runs) and one call a run.
class tensor_runs {
  public:
    enum class of { tensors, groups };
    struct run {
        std::size_t begin = 0;
        std::size_t tensor = 0; ///< its first one
        std::size_t group = 0;
    };

    tensor_runs() = default;
    tensor_runs(plan const& from, layout const& tensors, of what) {
        for (std::size_t i = 0; i < from.tensors.size(); ++i) {
            if (from.tensors[i].elements == 0) continue;
            run const next{runs_.empty() ? 0 : from.tensors[i].offset, i, tensors[i].group};
            if (runs_.empty() || what == of::tensors || next.group != runs_.back().group)
                runs_.push_back(next);
        }
    }

    /// Calls `with(begin, end, run)` for the parts of [begin, end), in order.
    template <class With>
    HERRING_ALWAYS_INLINE void for_each(std::size_t begin, std::size_t end, With const& with) const noexcept {
        auto next = std::upper_bound(runs_.begin(), runs_.end(), begin,
                                     [](std::size_t at, run const& one) { return at < one.begin; });
        while (begin < end) {
            run const& here = *(next - 1);
            std::size_t const stop = next == runs_.end() ? end : std::min(end, (next++)->begin);
            with(begin, stop, here);
            begin = stop;
        }
    }

  private:
    std::vector<run> runs_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_PLAN_TENSOR_RUNS_HPP

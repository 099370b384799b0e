// herring: the update rules `moments` and `sample_moments`: the mean, and with all_moments the deviation.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_MOMENTS_HPP
#define HERRING_UPDATE_MOMENTS_HPP

#include "herring/base/config.hpp"
#include "herring/update/rules.hpp"
#include "herring/update/update.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::update {

/// The mean of all ranks' contributions, and for `all_moments` their standard deviation too: the root of the
/// mean of the squared distances from the mean. A reducer with this rule includes
/// herring/collectives/all_moments.hpp.
///
/// Shape:   floating point only. Tensors made ready, all_reduce and reduce_scatter get the mean.
/// Cost:    as `average`.
struct moments : average {
    static constexpr char const* name = "moments";
    /// The divisor of the sum of the squared distances of `ranks` contributions.
    static constexpr int divisor_of_squares(int ranks) noexcept { return ranks; }
};

/// `moments` with the deviation of a sample: the sum of the squared distances is divided by one less than the
/// ranks.
///
/// Errors:  `all_moments` refuses this rule in a world of one rank, where that divisor is 0.
struct sample_moments : average {
    static constexpr char const* name = "sample_moments";
    static constexpr int divisor_of_squares(int ranks) noexcept { return ranks - 1; }
};

static_assert(update_policy<moments> && update_policy<sample_moments>);
static_assert(herring::detail::gives_deviations<moments> &&
              herring::detail::gives_deviations<sample_moments>);
static_assert(update_supports<moments, float> && !update_supports<moments, std::int32_t>);

} // namespace HERRING_NAMESPACE::update

#endif // HERRING_UPDATE_MOMENTS_HPP

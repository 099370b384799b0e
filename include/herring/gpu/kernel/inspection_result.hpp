// herring: what an inspection of results on a device found.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNEL_INSPECTION_RESULT_HPP
#define HERRING_GPU_KERNEL_INSPECTION_RESULT_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::gpu {

/// What there is in results that were looked at.
struct inspection_result {
    std::uint64_t not_finite = 0; ///< infinite or NaN
    double squares = 0;           ///< sum of all elements' squares; no number where one of them is none

    friend bool operator==(inspection_result const&, inspection_result const&) = default;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_KERNEL_INSPECTION_RESULT_HPP

// herring: the findings of an inspection of results on a device.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNEL_INSPECTION_RESULT_HPP
#define HERRING_GPU_KERNEL_INSPECTION_RESULT_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::gpu {

/// Findings of inspections.
struct inspection_result {
    std::uint64_t not_finite = 0; ///< infinite or NaN
    double squares = 0;           ///< sum of the squares of all elements; infinite or NaN if an element is

    friend bool operator==(inspection_result const&, inspection_result const&) = default;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_KERNEL_INSPECTION_RESULT_HPP

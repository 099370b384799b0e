// herring: what is said where a rank's device does not get at another's.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PEER_ACCESS_HPP
#define HERRING_GPU_PEER_ACCESS_HPP

#include "herring/base/config.hpp"
#include "herring/error.hpp"

#include <string_view>

namespace HERRING_NAMESPACE::gpu {

/// A rank's device as errors name it.
struct device_of_rank {
    int rank;
    int number; ///< in the process that says it; −1: that process does not see it
    std::string_view name;
};

/// The error of the rank of `own`: its device does not reach that of `other`, or the process does not see that one.
///
/// The text names the pair by itself: ranks that are neither of the two are told the same.
HERRING_SETUP inline failure peer_access_error(device_of_rank const& own,
                                               device_of_rank const& other) noexcept {
    if (other.number < 0)
        return failure::make(errc::unsupported, own.rank, other.rank, "construction",
                             {"rank ", own.rank, ", with device ", own.number, " (", own.name,
                              "), does not see the device of rank ", other.rank, " (", other.name,
                              "); widen CUDA_VISIBLE_DEVICES, or use intra_node::pcie_staging"});
    return failure::make(errc::unsupported, own.rank, other.rank, "construction",
                         {"device ", own.number, " (", own.name, ") of rank ", own.rank,
                          " cannot reach device ", other.number, " (", other.name, ") of rank ", other.rank,
                          "; use intra_node::pcie_staging, which needs no device to reach another"});
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PEER_ACCESS_HPP

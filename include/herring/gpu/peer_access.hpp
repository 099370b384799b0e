// herring: the error where a rank's device cannot access another rank's device.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PEER_ACCESS_HPP
#define HERRING_GPU_PEER_ACCESS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"

#include <string_view>

namespace HERRING_NAMESPACE::gpu {

/// A rank's device in the text of an error.
struct device_of_rank {
    int rank;
    int number; ///< in the process that reports the error; −1: not visible there
    std::string_view name;
};

/// The error of rank `own.rank`: its device cannot access the device of `other`, or its process does not see that
/// device.
///
/// The text names both ranks, because all ranks receive it.
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

/// The error of rank `reporter`: the device of rank `who` is said to reach that of rank `whose`, and what it moves there is lost.
/// `how`: "read" or "write".
HERRING_SETUP inline failure peer_loss_error(int who, int whose, char const* how, int reporter) noexcept {
    return failure::make(
        errc::unsupported, reporter, who == reporter ? whose : who, "construction",
        {"the device of rank ", who, " does not ", how, " the memory of rank ", whose,
         "'s, though CUDA says that it reaches it: look for an IOMMU that translates, or for ACS, "
         "between them; or use intra_node::pcie_staging"});
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PEER_ACCESS_HPP

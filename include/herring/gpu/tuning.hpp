// herring: the numbers of intra_node::pcie_staging and nvlink.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_TUNING_HPP
#define HERRING_GPU_TUNING_HPP

#include "herring/base/config.hpp"
#include "herring/units.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::gpu {

/// What may be tuned about staging.
struct staging_tuning {
    std::size_t slot_count =
        4; ///< buckets of a rank's in pinned memory: one on its way in, one out, others being summed
    std::size_t local_chunk_bytes = 64_KiB; ///< as of shared_memory
    std::size_t mailbox_bytes = 4_KiB;
    std::size_t split_bytes =
        4_MiB; ///< of a larger bucket, parts are on their way in, summed and on their way out at once
    bool inspect =
        false; ///< results are read once more: what is infinite or NaN in them, and their squared norm
    bool graphs = false; ///< copies in are captured, a graph a bucket and slot, and replayed

    friend constexpr bool operator==(staging_tuning const&, staging_tuning const&) = default;
};

/// What may be tuned about sums on devices.
struct peer_sums_tuning {
    std::size_t slot_count = 4; ///< buckets of a rank's in pinned memory, where there are several nodes
    std::size_t split_bytes =
        8_MiB; ///< there, of a larger bucket, parts are summed, exchanged and written to all devices at once
    bool inspect =
        false; ///< results are read once more: what is infinite or NaN in them, and their squared norm
    bool graphs = false; ///< packing, sums and results are captured, a graph a bucket and slot, and replayed

    friend constexpr bool operator==(peer_sums_tuning const&, peer_sums_tuning const&) = default;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_TUNING_HPP

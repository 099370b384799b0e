// herring: the tuning of intra_node::pcie_staging, nvlink and nccl.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_GPU_TUNING_HPP
#define HERRING_MODEL_GPU_TUNING_HPP

#include "herring/base/config.hpp"
#include "herring/base/units.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::gpu {

/// `staging_tuning::sum_threads`: up to four on a node, and none that would share a core with a rank.
inline constexpr int by_cores = -1;

/// Tuning of `pcie_staging`.
struct staging_tuning {
    std::size_t slot_count =
        8; ///< buckets of a rank in pinned memory: some coming in, some going out, the others being summed
    std::size_t local_chunk_bytes = 64_KiB; ///< as in shared_memory_tuning
    std::size_t mailbox_bytes = 4_KiB;
    std::size_t split_bytes =
        4_MiB; ///< larger buckets are split: parts come in, are summed and go out as a pipeline
    std::size_t piece_bytes =
        4_MiB; ///< of `all_reduce(device_span)`: the same of the caller's buffer; at most split_bytes
    /// On one node: threads of each rank that sum its chunks of buckets, beside the one that polls. 0: that one sums.
    int sum_threads = by_cores;
    bool inspect =
        false; ///< read results once more: count elements that are infinite or NaN, and compute the squared norm
    bool graphs = false; ///< capture copies in, one graph per bucket and slot, and replay them

    friend constexpr bool operator==(staging_tuning const&, staging_tuning const&) = default;
};

/// Tuning of `nvlink` and `nccl`.
struct peer_sums_tuning {
    std::size_t slot_count = 4; ///< with several nodes: buckets of a rank in pinned memory
    std::size_t split_bytes =
        8_MiB; ///< with several nodes: larger buckets are split; parts are summed, exchanged and written as a pipeline
    std::size_t piece_bytes =
        16_MiB; ///< of `all_reduce(device_span)`: 4 of them in device memory; several nodes: at most split_bytes
    bool inspect =
        false; ///< read results once more: count elements that are infinite or NaN, and compute the squared norm
    bool graphs =
        false; ///< capture packing, sums and results, one graph per bucket and slot; replay them. nccl: packing alone

    friend constexpr bool operator==(peer_sums_tuning const&, peer_sums_tuning const&) = default;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_MODEL_GPU_TUNING_HPP

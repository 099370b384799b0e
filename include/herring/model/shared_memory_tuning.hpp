// herring: the tuning of intra_node::shared_memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_SHARED_MEMORY_TUNING_HPP
#define HERRING_MODEL_SHARED_MEMORY_TUNING_HPP

#include "herring/base/config.hpp"
#include "herring/base/units.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::intra_node {

/// Tuning of shared memory; docs/performance.md has measurements of its settings.
struct shared_memory_tuning {
    std::size_t local_chunk_bytes = 64_KiB; ///< ranks sum interleaved chunks of this size
    std::size_t mailbox_bytes =
        4_KiB; ///< buckets up to this size are copied to mailboxes and summed by every rank: one round instead of two
    std::size_t split_bytes =
        256_KiB; ///< on one node: larger buckets are split, and copied in from the caller's memory part by part

    friend constexpr bool operator==(shared_memory_tuning const&, shared_memory_tuning const&) = default;
};

} // namespace HERRING_NAMESPACE::intra_node

#endif // HERRING_MODEL_SHARED_MEMORY_TUNING_HPP

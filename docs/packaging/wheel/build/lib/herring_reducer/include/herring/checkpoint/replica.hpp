// herring: the section of a checkpoint for a sync policy: its state, and a rank's own weights. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_REPLICA_HPP
#define HERRING_CHECKPOINT_REPLICA_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE::detail::checkpoints {

/// State of a reducer whose steps skip exchanges: of one rank, or of all ranks, where it is equal.
struct replica {
    /// Name of the section, where the state is equal on all ranks; else the rank's number follows the name.
    static constexpr std::string_view section = "sync";

    std::string policy{};               ///< name of the sync policy
    std::uint64_t steps = 0;            ///< steps taken
    std::uint64_t outer_steps = 0;      ///< steps of an outer optimizer
    std::uint64_t groups = 0;           ///< digest of the sets of tensors that are exchanged together
    std::vector<std::byte> state{};     ///< the policy's object
    std::vector<std::byte> exchanged{}; ///< a group → 1 if the last step exchanged it, else 0
    std::uint64_t own_bytes = 0;        ///< of the rank's own weights; 0: the rank has the common weights
    std::span<std::byte const> own{};   ///< the rank's own weights, after reading
};

/// Encodes all but the rank's own weights, which follow in the section.
HERRING_SEPARABLE byte_buffer write_replica(replica const& from);

/// Decodes a whole section. Returns the defect as text, or nullptr.
///
/// Memory:   O(bytes.size()).
/// Lifetime: `to.own` lies in `bytes`.
HERRING_SEPARABLE char const* read_replica(std::span<std::byte const> bytes, replica& to);

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/replica_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_REPLICA_HPP

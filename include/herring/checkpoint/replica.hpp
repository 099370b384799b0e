// herring: what a checkpoint has of a reducer whose steps skip exchanges: the sync policy's state, and a rank's own weights. Pure.
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

/// Of a rank, or of all ranks, where it is alike.
struct replica {
    /// Of the section that has one: this, where all ranks' are alike, else with the rank behind it.
    static constexpr std::string_view section = "sync";

    std::string policy{};               ///< its name
    std::uint64_t steps = 0;            ///< that were taken
    std::uint64_t outer_steps = 0;      ///< of an outer optimizer
    std::uint64_t groups = 0;           ///< digest of which tensors are exchanged together
    std::vector<std::byte> state{};     ///< the policy's object
    std::vector<std::byte> exchanged{}; ///< a group → 1 if the last step exchanged it, else 0
    std::uint64_t own_bytes = 0;        ///< of the rank's own weights; 0: they are the common ones
    std::span<std::byte const> own{};   ///< these, after reading
};

/// All but the rank's own weights, which follow it in the section.
HERRING_SEPARABLE byte_buffer write_replica(replica const& from);

/// Reads a section, to the byte. Returns what is wrong, or nullptr.
///
/// Memory:   O(bytes.size()).
/// Lifetime: `to.own` lies in `bytes`.
HERRING_SEPARABLE char const* read_replica(std::span<std::byte const> bytes, replica& to);

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/replica_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_REPLICA_HPP

// herring: a checkpoint that ranks begin together, write each by itself in pieces, and put in force together.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_SAVED_IN_GAPS_HPP
#define HERRING_SESSION_SAVED_IN_GAPS_HPP

#include "herring/base/config.hpp"
#include "herring/checkpoint/snapshot_part.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/control/world.hpp"
#include "herring/session/checkpoint.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// Checkpoints that are written in gaps, one after the other.
///
/// Errors: of `begin` and `finish`, on all ranks; then none is under way, and the one that was there is in
///         force. Memory that a rank cannot copy, or a file that it cannot write, is an error of `finish`.
class saved_in_gaps {
  public:
    explicit saved_in_gaps(int rank) noexcept : part_(rank) {}

    /// Collective: prepares the folder, and copies what this rank owns.
    HERRING_SEPARABLE void begin(world& ranks, std::string const& path, checkpoint_kind const& kind,
                                 training_values const& values,
                                 std::span<checkpoints::tensor_memory const> owned,
                                 std::span<std::byte const> user);
    /// Collective: writes what is left, and publishes.
    HERRING_SEPARABLE void finish(world& ranks, checkpoint_kind const& kind);

    bool under_way() const noexcept { return begun_.has_value(); }
    /// The folder of the last `begin`.
    std::string const& folder() const noexcept { return folder_; }
    checkpoints::snapshot_part& part() noexcept { return part_; }
    checkpoints::snapshot_part const& part() const noexcept { return part_; }

  private:
    std::optional<begun_save> begun_; // before the part, which refers to its folder
    std::vector<std::byte> user_;
    std::string folder_;
    checkpoints::snapshot_part part_;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/session/saved_in_gaps_impl.hpp"
#endif

#endif // HERRING_SESSION_SAVED_IN_GAPS_HPP

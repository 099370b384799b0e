// herring: saves and loads a checkpoint together with all ranks: sections of each rank, one outcome.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_CHECKPOINT_HPP
#define HERRING_SESSION_CHECKPOINT_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/checkpoint/folder.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/replica.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/control/world.hpp"
#include "herring/model/layout.hpp"
#include "herring/optimizer/optimizer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// The facts that a reducer whose sync policy skips steps must have in common with a checkpoint.
struct replica_kind {
    std::string_view policy;
    std::size_t state_bytes, groups;
    std::uint64_t groups_digest; ///< of which tensors are exchanged together
    std::size_t weight_bytes;    ///< of all weights of a rank, as a section has them
};

/// The facts that a reducer must have in common with a checkpoint.
///
/// Lifetime: refers to the layout.
struct checkpoint_kind {
    std::string_view element, optimizer;
    std::size_t groups, group_values; ///< of tensors; hyper values of each, and whether it is frozen
    layout const& tensors;
    checkpoints::state_shape shape;
    hyper_fault (*fault)(std::span<double const> group) noexcept =
        nullptr;                            ///< what `set` would refuse; null: no hyper values
    replica_kind const* replicas = nullptr; ///< null: all ranks have one model, always
};

/// The values that are the same on all ranks.
struct training_values {
    std::uint64_t steps = 0;
    std::vector<std::vector<double>> groups; ///< hyper values
};

/// With servers of their own, collective: the folder that the lowest worker names; `mine`: this rank's, if it
/// is a worker.
HERRING_SEPARABLE std::string folder_of_workers(world& ranks, std::string const& mine);

/// The section that this rank adds to a checkpoint: its pieces one behind the other.
///
/// Lifetime: refers to the weights.
struct replica_to_save {
    std::string name{}; ///< of the section; empty: none
    byte_buffer head{};
    std::vector<std::span<std::byte const>> weights{};
};

struct replicas_alike {
    bool all = false;  ///< every rank has the common weights and the same state
    bool mine = false; ///< this rank has the common weights
};

/// Collective, before `save_checkpoint`. `weights_key`: a digest of this rank's weights, where rank 0 has the
/// common ones; else 0 if they are the common ones. `state_key`: a digest of the policy's state.
HERRING_SEPARABLE replicas_alike compare_replicas(world& ranks, checkpoint_kind const& kind,
                                                  std::uint64_t weights_key, bool rank_0_has_common,
                                                  std::uint64_t state_key);

/// Collective: `owned` of all ranks are, together, every element of the layout once. The keeper, which is the
/// lowest rank that owns anything, prepares the folder and publishes; every owner writes a file. `user`:
/// those of the lowest worker are saved.
///
/// Blocks: until the slowest rank has written its files, at most `default_timeout()` and a second for 16 MiB
///         of the checkpoint, of all ranks together.
/// Errors: where a rank fails, all throw its failure, and the checkpoint that was there is in force; but
///         where the disk refuses the very last call, either may be.
HERRING_SEPARABLE void save_checkpoint(world& ranks, std::string const& path, checkpoint_kind const& kind,
                                       training_values const& values,
                                       std::span<checkpoints::tensor_memory const> owned,
                                       std::span<std::byte const> user, replica_to_save const& replica = {});

/// The same in three steps, of which the first and the last are collective; between them every owner writes
/// its file.
///
/// Lifetime: stays where it is: writers refer to its folder.
struct begun_save {
    std::optional<checkpoints::folder> where; ///< of the keeper and of owners
    int keeper = 0;
    std::uint64_t generation = 0;
    std::uint64_t bytes = 0; ///< that all ranks write
    training_values values;
    std::span<std::byte const> user;  ///< on the keeper
    std::vector<std::byte> of_lowest; ///< where that is another rank than the one that gave them

    std::string name_of(std::string_view what) const {
        return checkpoints::file_name(values.steps, generation, what);
    }
};
/// Prepares the folder. `user`: has to stay until `end_save`; `section_bytes`: of this rank's section, 0: it
/// has none; `so_far`: how this rank's preparation went.
HERRING_SEPARABLE void begin_save(begun_save& begun, world& ranks, char const* operation,
                                  std::string const& path, checkpoint_kind const& kind,
                                  training_values const& values,
                                  std::span<checkpoints::tensor_memory const> owned,
                                  std::span<std::byte const> user, std::uint64_t section_bytes = 0,
                                  failure const& so_far = {});
/// Publishes. `how`: whether this rank has written its files; `part`: of what it owns, `own`: its section;
/// null: it has none. Where it throws, each rank has removed what it wrote, and the keeper what it sees of
/// others that may have died; but in a world that ended no rank knows whether the keeper got to publish, and
/// none but the keeper removes anything.
HERRING_SEPARABLE void end_save(begun_save& begun, world& ranks, char const* operation,
                                checkpoint_kind const& kind, failure const& how,
                                checkpoints::file_entry const* part,
                                checkpoints::section const* own = nullptr);

struct loaded_checkpoint {
    training_values values;
    std::vector<std::byte> user;      ///< as they were given to `save`
    int keeper = 0;                   ///< the lowest worker
    checkpoints::replica own{};       ///< with `checkpoint_kind::replicas`: this rank's
    std::vector<std::byte> section{}; ///< where its weights lie
};

/// Collective: reads what this rank needs of weights and of the state, on every rank. Returns once all ranks
/// have what they need, and every byte of the checkpoint was compared with its checksum.
///
/// Shape:  `weights`, `state`: sorted; what this rank is to read of the weights, which all ranks together
///         read, and what it keeps. `so_far`: how this rank's preparation went.
/// Blocks: as `save_checkpoint`.
/// Errors: where a rank fails, all throw its failure. The memory of `weights` and `state` is unspecified
///         then.
HERRING_SEPARABLE loaded_checkpoint load_checkpoint(world& ranks, std::string const& path,
                                                    checkpoint_kind const& kind, failure const& so_far,
                                                    std::span<checkpoints::tensor_memory const> weights,
                                                    std::span<checkpoints::tensor_memory const> state);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/session/checkpoint_impl.hpp"
#endif

#endif // HERRING_SESSION_CHECKPOINT_HPP

// herring: one file of a checkpoint that is written piece by piece, from a copy of the weights and the state.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_SNAPSHOT_PART_HPP
#define HERRING_CHECKPOINT_SNAPSHOT_PART_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/checkpoint/file.hpp"
#include "herring/checkpoint/folder.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/machine/forks.hpp"
#include "herring/machine/private_memory.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <pthread.h>

namespace HERRING_NAMESPACE::detail::checkpoints {

/// `open` copies; each `next` writes one block; what brings the file to the disk takes as long as the disk does, in a thread that
/// only waits for it. The file has the bytes of `write_part`.
///
/// Memory:  the copy, kept for the next one; a block.
/// Threads: one at a time.
/// Errors:  kept in `how`; `next` does nothing from then on.
class snapshot_part {
  public:
    explicit snapshot_part(int rank) noexcept : rank_(rank) {}
    snapshot_part(snapshot_part const&) = delete;
    snapshot_part& operator=(snapshot_part const&) = delete;
    ~snapshot_part() {
        if (owner_.is_this()) join(); // a forked child does not have the thread
    }

    /// Gets the memory for a copy of so many bytes.
    ///
    /// Errors: `no_resources`.
    HERRING_SEPARABLE void reserve(std::size_t bytes);
    /// Copies the ranges, and creates the file for the copy. Nothing is being written.
    ///
    /// Lifetime: refers to the folder, until it is written.
    HERRING_SEPARABLE void open(std::span<tensor_memory const> ranges, state_shape const& shape,
                                folder const& where, std::uint64_t steps, std::uint64_t generation) noexcept;

    /// Writes a block. False: there is nothing to do, or nothing now.
    HERRING_SEPARABLE bool next() noexcept;
    /// Does all that is left, and waits for the disk.
    HERRING_SEPARABLE void finish() noexcept;
    /// Closes the file. Nothing is being written.
    void close() noexcept { file_.reset(); }
    /// Whether all of it is durable, or it has failed.
    bool done() const noexcept { return doing_ == stage::nothing || has_synced(); }
    /// Ok, or why it could not be written.
    failure const& how() const noexcept { return has_synced() ? synced_how_ : how_; }
    bool has_file() const noexcept { return file_.has_value(); }
    /// Once it is done, and ok.
    file_entry const& entry() const noexcept { return file_->entry(); }

  private:
    enum class stage : std::uint8_t { nothing, writing, sealing, syncing };

    bool has_synced() const noexcept {
        return doing_ == stage::syncing && synced_.load(std::memory_order_acquire);
    }
    void take(std::span<tensor_memory const> ranges, state_shape const& shape);
    template <class Step> void attempt(stage then, Step const& step) noexcept;
    void sync() noexcept;
    HERRING_SEPARABLE void join() noexcept;

    owner_process const owner_{};
    int rank_;
    private_memory memory_;
    std::span<std::byte const> left_; // of the copy
    std::vector<tensor_range> ranges_;
    std::optional<file_writer> file_;
    stage doing_ = stage::nothing;
    failure how_{};
    bool has_thread_ = false;
    pthread_t thread_{};
    failure synced_how_{}; // of the thread, before synced_
    std::atomic<bool> synced_{false};
};

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/snapshot_part_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_SNAPSHOT_PART_HPP

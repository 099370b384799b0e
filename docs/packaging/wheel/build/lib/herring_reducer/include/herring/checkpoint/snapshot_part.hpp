// herring: writes a file of a checkpoint in pieces, from a copy of the weights and the state.
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

/// A part of a checkpoint that is written in pieces: `open` copies the ranges, each `next` writes one block,
/// a thread waits for the disk. The file has the same bytes as that of `write_part`.
///
/// Memory:  the copy, reused by the next file; a block.
/// Threads: one at a time.
/// Errors:  kept in `how`; after an error `next` does nothing.
class snapshot_part {
  public:
    explicit snapshot_part(int rank) noexcept : rank_(rank) {}
    snapshot_part(snapshot_part const&) = delete;
    snapshot_part& operator=(snapshot_part const&) = delete;
    ~snapshot_part() {
        if (owner_.is_this()) join(); // a forked child does not have the thread
    }

    /// Allocates the memory for a copy of `bytes`.
    ///
    /// Errors: `no_resources`.
    HERRING_SEPARABLE void reserve(std::size_t bytes);
    /// Copies the ranges, and creates the file. Precondition: `done`.
    ///
    /// Lifetime: refers to the folder until the file is durable.
    HERRING_SEPARABLE void open(std::span<tensor_memory const> ranges, state_shape const& shape,
                                folder const& where, std::uint64_t steps, std::uint64_t generation) noexcept;

    /// Writes a block. Returns false if there is nothing to do, or nothing until the disk answers.
    HERRING_SEPARABLE bool next() noexcept;
    /// Writes the rest, and waits for the disk.
    HERRING_SEPARABLE void finish() noexcept;
    /// Closes the file. Precondition: `done`.
    void close() noexcept { file_.reset(); }
    /// True if the file is durable, or an error ended it.
    bool done() const noexcept { return doing_ == stage::nothing || has_synced(); }
    /// Ok, or the error.
    failure const& how() const noexcept { return has_synced() ? synced_how_ : how_; }
    bool has_file() const noexcept { return file_.has_value(); }
    /// The entry for the manifest; after `done` without an error.
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
    failure synced_how_{}; // written by the thread before synced_
    std::atomic<bool> synced_{false};
};

} // namespace HERRING_NAMESPACE::detail::checkpoints

#ifndef HERRING_SEPARATE
#include "herring/checkpoint/snapshot_part_impl.hpp"
#endif

#endif // HERRING_CHECKPOINT_SNAPSHOT_PART_HPP

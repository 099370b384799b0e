// herring: a ring of messages in shared memory, from one process to one other, that a dead writer cannot tear.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_SHARED_RING_HPP
#define HERRING_ENSEMBLE_SHARED_RING_HPP

#include "herring/base/config.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail::ensembles {

/// What a message of a ring has room for.
using ring_message = std::array<std::uint64_t, 4>;

/// Lies in the writer's memory, zeroed at first.
struct alignas(64) ring_cell {
    std::atomic<std::uint64_t> sequence;
    std::atomic<std::uint64_t> words[7];
};
static_assert(sizeof(ring_cell) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

/// The writer's end. Message n lies in cell n mod cells; its sequence, `origin` + n + 1, is released last.
///
/// The ring has no credits of its own: whoever writes has at most as many messages unread as there are cells, because each of
/// them holds a place that the reader gives back after it has read.
///
/// `origin` is random for each writer, so that a reader of a ring that had another reader before takes none of its messages.
class ring_writer {
  public:
    ring_writer() = default;
    /// `cells`: a power of two.
    ring_writer(ring_cell* first, std::size_t cells, std::uint64_t origin) noexcept
        : cells_(first), mask_(cells - 1), origin_(origin) {}

    /// The next message, which nobody sees yet.
    void fill(ring_message const& message) noexcept {
        ring_cell& to = cells_[next_ & mask_];
        for (std::size_t i = 0; i < message.size(); ++i)
            to.words[i].store(message[i], std::memory_order_relaxed);
    }
    /// Shows what was filled, and what was written before. Sequentially consistent, for the sleep flag that is read next.
    void publish() noexcept {
        cells_[next_ & mask_].sequence.store(origin_ + next_ + 1, std::memory_order_seq_cst);
        ++next_;
    }

  private:
    ring_cell* cells_ = nullptr;
    std::uint64_t mask_ = 0, origin_ = 0, next_ = 0;
};

/// The reader's end. It trusts nothing: a cell without the sequence that is due has no message, and what a message says is a
/// copy that does not change.
class ring_reader {
  public:
    ring_reader() = default;
    ring_reader(ring_cell const* first, std::size_t cells, std::uint64_t origin) noexcept
        : cells_(first), mask_(cells - 1), origin_(origin) {}

    /// Cost: a load from a line that the writer writes once.
    bool has_message() const noexcept {
        return cells_[next_ & mask_].sequence.load(std::memory_order_seq_cst) == origin_ + next_ + 1;
    }
    /// After `has_message`.
    ring_message take() noexcept {
        ring_cell const& from = cells_[next_ & mask_];
        ring_message copy;
        for (std::size_t i = 0; i < copy.size(); ++i) copy[i] = from.words[i].load(std::memory_order_relaxed);
        ++next_;
        return copy;
    }
    std::uint64_t taken() const noexcept { return next_; }
    std::uint64_t cells() const noexcept { return mask_ + 1; }

  private:
    ring_cell const* cells_ = nullptr;
    std::uint64_t mask_ = 0, origin_ = 0, next_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_SHARED_RING_HPP

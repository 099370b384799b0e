// herring: a ring of messages in shared memory, and waking the other end only when it says that it sleeps.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_SHARED_RING_HPP
#define HERRING_ENSEMBLE_SHARED_RING_HPP

#include "herring/base/config.hpp"
#include "herring/machine/descriptor.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A message of a ring.
using ring_message = std::array<std::uint64_t, 4>;

/// A place for one message, in the writer's memory, zeroed at first.
struct alignas(64) ring_cell {
    std::atomic<std::uint64_t> sequence;
    std::atomic<std::uint64_t> words[7];
};
static_assert(sizeof(ring_cell) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

/// The writer's end of a ring. Message n lies in cell n mod cells; its sequence, `origin` + n + 1, is
/// released last.
///
/// The ring has no credits of its own: the writer has at most as many unread messages as there are cells,
/// because each message holds a place that the reader gives back after it has read.
///
/// `origin` is random for each writer, so that the reader of a reused ring takes no messages of the ring
/// before.
class ring_writer {
  public:
    ring_writer() = default;
    /// `cells`: a power of two.
    ring_writer(ring_cell* first, std::size_t cells, std::uint64_t origin) noexcept
        : cells_(first), mask_(cells - 1), origin_(origin) {}

    /// Writes the next message, which the reader does not see yet.
    void fill(ring_message const& message) noexcept {
        ring_cell& to = cells_[next_ & mask_];
        for (std::size_t i = 0; i < message.size(); ++i)
            to.words[i].store(message[i], std::memory_order_relaxed);
    }
    /// Publishes the message, and all that was written before. Sequentially consistent, because the sleep
    /// flag is read next.
    void publish() noexcept {
        cells_[next_ & mask_].sequence.store(origin_ + next_ + 1, std::memory_order_seq_cst);
        ++next_;
    }

  private:
    ring_cell* cells_ = nullptr;
    std::uint64_t mask_ = 0, origin_ = 0, next_ = 0;
};

/// The reader's end of a ring. It trusts nothing: a cell without the due sequence has no message, and a
/// message is taken as a copy that does not change.
class ring_reader {
  public:
    ring_reader() = default;
    ring_reader(ring_cell const* first, std::size_t cells, std::uint64_t origin) noexcept
        : cells_(first), mask_(cells - 1), origin_(origin) {}

    /// Cost: one load from a cache line that the writer writes once.
    bool has_message() const noexcept {
        return cells_[next_ & mask_].sequence.load(std::memory_order_seq_cst) == origin_ + next_ + 1;
    }
    /// Takes the next message. Called after `has_message`.
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

/// A connected unix socket of packets (seqpacket) that wakes the other end. A packet means «look at the
/// ring»; its content means nothing.
class wake_up_socket {
  public:
    static constexpr int most_at_once = 16;

    wake_up_socket() = default;
    explicit wake_up_socket(detail::descriptor socket) noexcept : socket_(std::move(socket)) {}

    int descriptor() const noexcept { return socket_.get(); }
    /// True if the other end has closed it, or died.
    bool is_closed() const noexcept { return closed_; }

    /// Sends a wake-up. Does not block: a full socket holds wake-ups already.
    void wake() noexcept {
        std::byte const packet{1};
        ssize_t sent = 0;
        do sent = ::send(socket_.get(), &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (sent < 0 && errno == EINTR);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED)) closed_ = true;
    }

    /// Takes the packets that wait, `most_at_once` at most. Returns their number.
    int drain() noexcept {
        for (int taken = 0; taken < most_at_once;) {
            std::byte packet[8];
            ssize_t const got = ::recv(socket_.get(), packet, sizeof packet, MSG_DONTWAIT);
            if (got > 0) {
                ++taken;
            } else if (got == 0) {
                closed_ = true;
                return taken;
            } else if (errno != EINTR) {
                if (errno != EAGAIN && errno != EWOULDBLOCK) closed_ = true;
                return taken;
            }
        }
        return most_at_once;
    }

  private:
    detail::descriptor socket_{};
    bool closed_ = false;
};

/// Tells whether an end sleeps, in the memory of that end: odd while it sleeps. Grows by one with each
/// change.
struct alignas(64) sleep_flag {
    std::atomic<std::uint32_t> epoch;
};

/// The end that sleeps. Either it sees what was published before it sleeps, or the publisher sees its flag:
/// both store, then load what the other stores, all sequentially consistent (Dekker).
class sleeper {
  public:
    sleeper() = default;
    /// Makes an odd flag, left by an earlier process, even.
    explicit sleeper(sleep_flag& mine) noexcept
        : flag_(&mine), epoch_(mine.epoch.load(std::memory_order_relaxed)) {
        awake();
    }

    /// Announces the sleep, then looks once more. False if `anything()` finds work; the end is awake then.
    template <class Anything> bool try_sleep(Anything&& anything) noexcept {
        if (!sleeps()) flag_->epoch.store(++epoch_, std::memory_order_seq_cst);
        if (!anything()) return true;
        awake();
        return false;
    }
    void awake() noexcept {
        if (sleeps()) flag_->epoch.store(++epoch_, std::memory_order_relaxed);
    }
    bool sleeps() const noexcept { return (epoch_ & 1) != 0; }

  private:
    sleep_flag* flag_ = nullptr;
    std::uint32_t epoch_ = 0;
};

/// The end that publishes.
class waker {
  public:
    waker() = default;
    explicit waker(sleep_flag const& others) noexcept : flag_(&others) {}

    /// True if the other end has to be woken: once for each of its sleeps. Called after each publication.
    bool must_wake() noexcept {
        std::uint32_t const epoch = flag_->epoch.load(std::memory_order_seq_cst);
        if ((epoch & 1) == 0 || epoch == woken_) return false;
        woken_ = epoch;
        return true;
    }

  private:
    sleep_flag const* flag_ = nullptr;
    std::uint32_t woken_ = 0; // epoch for which a wake-up was sent; even: none
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_SHARED_RING_HPP

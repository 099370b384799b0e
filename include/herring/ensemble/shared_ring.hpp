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

/// A connected unix socket of packets (seqpacket). A packet means «look at the ring»; what is in it means nothing.
class wake_up_socket {
  public:
    static constexpr int most_at_once = 16;

    wake_up_socket() = default;
    explicit wake_up_socket(detail::descriptor socket) noexcept : socket_(std::move(socket)) {}

    int descriptor() const noexcept { return socket_.get(); }
    /// The other end has closed it, or died.
    bool is_closed() const noexcept { return closed_; }

    /// Does not block. Where the socket is full, packets wait in it: it is rung already.
    void ring() noexcept {
        std::byte const packet{1};
        ssize_t sent = 0;
        do sent = ::send(socket_.get(), &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (sent < 0 && errno == EINTR);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED)) closed_ = true;
    }

    /// Takes the packets that wait, `most_at_once` at most; how many they were.
    int silence() noexcept {
        for (int heard = 0; heard < most_at_once;) {
            std::byte packet[8];
            ssize_t const got = ::recv(socket_.get(), packet, sizeof packet, MSG_DONTWAIT);
            if (got > 0) {
                ++heard;
            } else if (got == 0) {
                closed_ = true;
                return heard;
            } else if (errno != EINTR) {
                if (errno != EAGAIN && errno != EWOULDBLOCK) closed_ = true;
                return heard;
            }
        }
        return most_at_once;
    }

  private:
    detail::descriptor socket_{};
    bool closed_ = false;
};

/// Lies in the memory of the end that sleeps; odd: it sleeps. Grows by one with each change.
struct alignas(64) sleep_flag {
    std::atomic<std::uint32_t> epoch;
};

/// The end that sleeps. Either it sees what was published before it sleeps, or who published sees its flag: both store, then
/// load what the other stores, all of it sequentially consistent (Dekker).
class sleeper {
  public:
    sleeper() = default;
    /// A flag that was left odd becomes even.
    explicit sleeper(sleep_flag& mine) noexcept
        : flag_(&mine), epoch_(mine.epoch.load(std::memory_order_relaxed)) {
        awake();
    }

    /// Announces the sleep, then looks once more. False: `anything()` says that there is work; it is awake.
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

    /// After each publication: whether the bell has to be rung. True once for each sleep, for one packet wakes.
    bool has_to_ring() noexcept {
        std::uint32_t const epoch = flag_->epoch.load(std::memory_order_seq_cst);
        if ((epoch & 1) == 0 || epoch == rung_) return false;
        rung_ = epoch;
        return true;
    }

  private:
    sleep_flag const* flag_ = nullptr;
    std::uint32_t rung_ = 0; // epoch for which it has rung; even: none
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_SHARED_RING_HPP

// herring: waking the other end of a ring in shared memory, only when it says that it sleeps.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DOORBELL_HPP
#define HERRING_ENSEMBLE_DOORBELL_HPP

#include "herring/base/config.hpp"
#include "herring/machine/descriptor.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A connected unix socket of packets (seqpacket). A packet means «look at the ring»; what is in it means nothing.
class doorbell {
  public:
    static constexpr int most_at_once = 16;

    doorbell() = default;
    explicit doorbell(detail::descriptor socket) noexcept : socket_(std::move(socket)) {}

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

#endif // HERRING_ENSEMBLE_DOORBELL_HPP

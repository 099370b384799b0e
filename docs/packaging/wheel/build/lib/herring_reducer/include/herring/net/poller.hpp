// herring: an epoll set: descriptors, and an event that another thread raises.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_NET_POLLER_HPP
#define HERRING_NET_POLLER_HPP

#include "herring/base/config.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/net/wake_event.hpp"

#include <cstdint>
#include <string_view>

#include <sys/epoll.h>

namespace HERRING_NAMESPACE::detail {

/// An epoll set with a `wake_event` in it; level-triggered.
///
/// Threads: any, at once: a change of the set holds for a `wait` that is under way, too.
class poller {
  public:
    static constexpr std::uint64_t wake_key = ~std::uint64_t{0};

    poller() = default; ///< without descriptors, until `open`
    HERRING_SETUP explicit poller(std::string_view operation) { open(operation); }
    /// Errors: `no_resources`, of this operation and rank.
    HERRING_SETUP void open(std::string_view operation, int rank = -1) {
        event_.open(operation, rank);
        set_ = detail::descriptor(::epoll_create1(EPOLL_CLOEXEC));
        if (set_.get() < 0 || !watch(event_.descriptor(), wake_key, EPOLLIN))
            refuse_to_sleep(operation, rank);
    }
    /// Readable when a descriptor of the set is ready, or after `wake`.
    int descriptor() const noexcept { return set_.get(); }

    /// Adds a descriptor. `key` comes with each event of it; all ones is taken. False: errno has the reason.
    HERRING_SETUP bool watch(int descriptor, std::uint64_t key, std::uint32_t what) noexcept {
        return control(EPOLL_CTL_ADD, descriptor, key, what);
    }
    HERRING_SETUP void rewatch(int descriptor, std::uint64_t key, std::uint32_t what) noexcept {
        (void)control(EPOLL_CTL_MOD, descriptor, key, what);
    }
    void forget(int descriptor) noexcept {
        (void)::epoll_ctl(set_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
    }

    /// Ends a `wait`, or the next one; also from signal handlers.
    void wake() const noexcept { event_.raise(); }
    /// To be called once `wake_key` has come.
    bool woken() const noexcept { return event_.lower(); }

    /// Returns the number of events, at most `most`; −1: a signal came. Blocks for at most `timeout_ms`; −1:
    /// no limit.
    int wait(epoll_event* into, int most, int timeout_ms) const noexcept {
        return ::epoll_wait(set_.get(), into, most, timeout_ms);
    }

  private:
    bool control(int how, int descriptor, std::uint64_t key, std::uint32_t what) noexcept {
        epoll_event event{};
        event.events = what;
        event.data.u64 = key;
        return ::epoll_ctl(set_.get(), how, descriptor, &event) == 0;
    }

    detail::descriptor set_{};
    wake_event event_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_NET_POLLER_HPP

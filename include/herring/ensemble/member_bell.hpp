// herring: what a member sleeps on: its lanes' descriptors, and an event of its own that any thread or signal handler raises.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_BELL_HPP
#define HERRING_ENSEMBLE_MEMBER_BELL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/descriptor.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// An epoll set with an eventfd in it; level-triggered.
///
/// Threads: `wake` from any and from signal handlers; all else one at a time.
class member_bell {
  public:
    /// Errors: `no_resources`.
    HERRING_SETUP member_bell()
        : set_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        if (set_.get() < 0 || wake_.get() < 0 || !control(EPOLL_CTL_ADD, wake_.get(), EPOLLIN))
            throw error(errc::no_resources, -1, -1, "member",
                        {"no descriptors to sleep on: ", std::strerror(errno), "; raise ulimit -n"});
    }

    /// Readable when a descriptor of the set is, or after `wake`.
    int descriptor() const noexcept { return set_.get(); }

    /// False: errno has why.
    bool watch(int descriptor) noexcept { return control(EPOLL_CTL_ADD, descriptor, EPOLLIN); }
    void rewatch(int descriptor, bool also_writable) noexcept {
        (void)control(EPOLL_CTL_MOD, descriptor, also_writable ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    void forget(int descriptor) noexcept { (void)control(EPOLL_CTL_DEL, descriptor, 0); }

    /// Ends the sleep, or the next one.
    void wake() noexcept {
        int const before = errno; // of the code that a signal interrupts
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(wake_.get(), &one, sizeof one);
        errno = before;
    }

    /// Blocks:  until something is there, a signal, or for `most_ms`.
    void sleep(int most_ms) noexcept {
        epoll_event found[8];
        int const count = ::epoll_wait(set_.get(), found, 8, most_ms);
        for (int i = 0; i < count; ++i)
            if (found[i].data.fd == wake_.get()) settle();
    }
    /// Takes the event of `wake` off. What was changed before the `wake` is seen afterwards.
    void settle() noexcept {
        std::uint64_t times = 0;
        [[maybe_unused]] auto const got = ::read(wake_.get(), &times, sizeof times);
    }

  private:
    bool control(int how, int descriptor, std::uint32_t what) noexcept {
        epoll_event event{};
        event.events = what;
        event.data.fd = descriptor;
        return ::epoll_ctl(set_.get(), how, descriptor, &event) == 0;
    }

    detail::descriptor set_, wake_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_MEMBER_BELL_HPP

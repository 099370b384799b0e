// herring: an event on which a thread sleeps, and which others raise.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_NET_WAKE_EVENT_HPP
#define HERRING_NET_WAKE_EVENT_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/descriptor.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <sys/eventfd.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

[[noreturn]] HERRING_SETUP inline void refuse_to_sleep(std::string_view operation, int rank) {
    throw error(errc::no_resources, rank, -1, operation,
                {"no descriptors to sleep on: ", std::strerror(errno),
                 "; raise the limit of open files (ulimit -n)"});
}

/// An eventfd: readable from `raise` to `lower`.
///
/// Threads: `raise` from any, and from signal handlers.
class wake_event {
  public:
    wake_event() = default; ///< without a descriptor, until `open`
    /// Errors: `no_resources`, of this operation and rank.
    HERRING_SETUP void open(std::string_view operation, int rank) {
        event_ = detail::descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
        if (event_.get() < 0) refuse_to_sleep(operation, rank);
    }
    int descriptor() const noexcept { return event_.get(); }

    void raise() const noexcept {
        int const before = errno; // of the code that a signal interrupts
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(event_.get(), &one, sizeof one);
        errno = before;
    }
    /// Returns true if it was raised. Changes made before `raise` are seen afterwards.
    bool lower() const noexcept {
        std::uint64_t times = 0;
        return ::read(event_.get(), &times, sizeof times) > 0;
    }

  private:
    detail::descriptor event_{};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_NET_WAKE_EVENT_HPP

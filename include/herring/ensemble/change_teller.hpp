// herring: calls the program's handler of changes, and knows that it is being called.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_CHANGE_TELLER_HPP
#define HERRING_ENSEMBLE_CHANGE_TELLER_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/change.hpp"

#include <atomic>
#include <utility>

#include <pthread.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Threads: `tell` by one thread; the rest by any.
class change_teller {
  public:
    explicit change_teller(change_handler handler) noexcept : handler_(std::move(handler)) {}

    /// Whether there is a handler.
    explicit operator bool() const noexcept { return static_cast<bool>(handler_); }
    /// Whether this thread is the one that calls it.
    bool is_in_handler() const noexcept {
        return handling_.load(std::memory_order_acquire) && ::pthread_equal(thread_, ::pthread_self());
    }
    HERRING_SETUP void tell(change const& what) {
        thread_ = ::pthread_self();
        handling_.store(true, std::memory_order_release);
        handler_(what);
        handling_.store(false, std::memory_order_release);
    }

  private:
    change_handler handler_;
    std::atomic<bool> handling_{false};
    pthread_t thread_{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_CHANGE_TELLER_HPP

// herring: which thread is in a call of an object that one thread at a time may use.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_CALL_MARK_HPP
#define HERRING_STEP_CALL_MARK_HPP

#include "herring/base/config.hpp"

#include <atomic>

#include <pthread.h>

namespace HERRING_NAMESPACE::detail {

/// Set while a call is under way.
///
/// Threads:  any.
/// Cost:     one exchange a call.
class call_mark {
  public:
    enum class taken {
        yes,           ///< the caller's until `release`
        by_itself,     ///< by a call of the same thread, further up its stack
        by_another_one ///< by a call of another thread
    };

    taken take() noexcept {
        pthread_t const self = ::pthread_self();
        pthread_t there = nobody;
        if (holder_.compare_exchange_strong(there, self, std::memory_order_acquire,
                                            std::memory_order_relaxed))
            return taken::yes;
        return there == self ? taken::by_itself : taken::by_another_one;
    }
    void release() noexcept { holder_.store(nobody, std::memory_order_release); }

  private:
    static constexpr pthread_t nobody{};
    std::atomic<pthread_t> holder_{nobody};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_CALL_MARK_HPP

// herring: the calls of an object that one thread at a time may use, and their misuse.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_CALLS_HPP
#define HERRING_STEP_CALLS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/world.hpp"

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <string_view>

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

/// The call that is under way, and the last one if it was refused for a misuse: when that misuse ends this
/// rank, the others get its text.
///
/// Lifetime: refers to the world's handle.
class calls {
  public:
    explicit calls(world& ranks) noexcept : ranks_(ranks) {}
    calls(calls const&) = delete;
    calls& operator=(calls const&) = delete;

    /// Throws a misuse of this rank's.
    [[noreturn]] HERRING_SEPARABLE void throw_misuse(errc what, char const* operation,
                                                     std::initializer_list<text_part> text);

    // The same for a step; `name`: the tensor's.
    [[noreturn]] HERRING_SEPARABLE void throw_no_such_tensor(char const* operation, std::size_t i,
                                                             std::size_t tensors);
    [[noreturn]] HERRING_SEPARABLE void throw_ready_already(std::size_t i, std::string_view name);
    [[noreturn]] HERRING_SEPARABLE void throw_other_size(std::size_t i, std::string_view name,
                                                         std::size_t elements, std::size_t given);
    [[noreturn]] HERRING_SEPARABLE void throw_not_ready(std::size_t i, std::string_view name);
    [[noreturn]] HERRING_SEPARABLE void throw_step_under_way(char const* operation, std::size_t ready,
                                                             std::size_t tensors, char const* wait_call);

    /// Tells all ranks that this one leaves in the middle of a step: the world fails.
    HERRING_SEPARABLE void announce_abandoned_step() noexcept;
    /// Announces to all ranks that the exception of a misuse ends this one, if it does. Called between steps,
    /// when the object is destroyed. The others may be in the call that was refused here; the world fails.
    HERRING_SEPARABLE void announce_misuse() noexcept;

  private:
    friend class call;
    friend class call_if_free;

    // Throws why no call can begin now; nothing of the object is touched.
    [[noreturn]] HERRING_SEPARABLE void refuse(call_mark::taken taken, char const* operation);

    world& ranks_;
    call_mark mark_;
    failure last_misuse_{}; // of the last call; ok: it was not refused
};

/// One call, from construction to destruction.
///
/// Errors: `bad_state` where another call is under way, which goes on, or the world has ended.
class call {
  public:
    call(calls& of, char const* operation) : mark_(of.mark_) {
        if (auto const taken = mark_.take(); taken != call_mark::taken::yes || of.ranks_.ended()) [[unlikely]]
            of.refuse(taken, operation);
        of.last_misuse_.what = errc::ok;
    }
    ~call() { mark_.release(); }
    call(call const&) = delete;
    call& operator=(call const&) = delete;

  private:
    call_mark& mark_;
};

/// The same for who may not throw: it begins unless another call is under way, or the world has ended.
class call_if_free {
  public:
    explicit call_if_free(calls& of) noexcept : mark_(of.mark_) {
        if (of.ranks_.ended() || mark_.take() != call_mark::taken::yes) return;
        begun_ = true;
    }
    ~call_if_free() {
        if (begun_) mark_.release();
    }
    call_if_free(call_if_free const&) = delete;
    call_if_free& operator=(call_if_free const&) = delete;

    explicit operator bool() const noexcept { return begun_; }

  private:
    call_mark& mark_;
    bool begun_ = false;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/step/calls_impl.hpp"
#endif

#endif // HERRING_STEP_CALLS_HPP

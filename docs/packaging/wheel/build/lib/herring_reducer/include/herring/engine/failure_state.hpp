// herring: the end of an engine: the first failure, the suspected rank, the announcement to all ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_FAILURE_STATE_HPP
#define HERRING_ENGINE_FAILURE_STATE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"

#include <atomic>

namespace HERRING_NAMESPACE {

/// The functions by which an engine announces a failure to all ranks. Pointers: they are called once, at the
/// end.
struct failure_sink {
    void* to = nullptr;
    void (*announce)(void* to, failure const& why) noexcept = nullptr;
    failure const* (*first)(void* to) noexcept = nullptr; ///< that this rank has heard of
};

namespace detail {

/// The first failure stays. The caller's thread sees it when it is published, once nothing touches the
/// caller's memory.
///
/// Threads: `seen`: any; the rest: the one that polls.
class failure_state {
  public:
    explicit failure_state(failure_sink sink) noexcept : sink_(sink) {}
    failure_state(failure_state const&) = delete;
    failure_state& operator=(failure_state const&) = delete;

    bool is_failing() const noexcept { return failing_; }
    /// Returns the failure that this rank has heard of first, where it is announced: this one, or another
    /// rank's. nullptr: not known.
    HERRING_SETUP failure const* fail(failure const& why, bool announce) noexcept {
        if (failing_) return nullptr;
        why_ = why;
        failing_ = true;
        if (!announce) return nullptr;
        sink_.announce(sink_.to, why);
        return sink_.first != nullptr ? sink_.first(sink_.to) : nullptr;
    }
    /// Replaces the failure, which is not published yet.
    void amend(failure const& why) noexcept { why_ = why; }
    bool is_published() const noexcept { return published_.load(std::memory_order_relaxed); }
    void publish() noexcept { published_.store(true, std::memory_order_release); }

    /// The failure that ended the engine, or nullptr.
    failure const* seen() const noexcept {
        return published_.load(std::memory_order_acquire) ? &why_ : nullptr;
    }

    /// A peer that is needed and lost; not a failure yet, for the cause may lie elsewhere.
    failure suspicion{};

  private:
    failure_sink sink_;
    bool failing_ = false;
    std::atomic<bool> published_{false};
    failure why_{};
};

} // namespace detail
} // namespace HERRING_NAMESPACE

#endif // HERRING_ENGINE_FAILURE_STATE_HPP

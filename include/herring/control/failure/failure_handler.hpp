// herring: the function of a program that is called when its world has failed.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_FAILURE_FAILURE_HANDLER_HPP
#define HERRING_CONTROL_FAILURE_FAILURE_HANDLER_HPP

#include "herring/base/config.hpp"
#include "herring/error.hpp"

#include <atomic>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Nothing, or a function object that takes a `failure const&`. Copies share it. No `std::function`, whose header is slow.
class failure_handler {
  public:
    failure_handler() = default;
    template <class Function>
    requires(!std::is_same_v<Function, failure_handler> && std::is_invocable_v<Function&, failure const&>) //
        failure_handler(Function function)
        : held_(new holding<Function>(std::move(function))) {}
    failure_handler(failure_handler const& other) noexcept : held_(other.held_) {
        if (held_ != nullptr) held_->uses.fetch_add(1, std::memory_order_relaxed);
    }
    failure_handler(failure_handler&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
    failure_handler& operator=(failure_handler other) noexcept {
        std::swap(held_, other.held_);
        return *this;
    }
    ~failure_handler() {
        if (held_ != nullptr && held_->uses.fetch_sub(1, std::memory_order_acq_rel) == 1)
            held_->destroy(held_);
    }

    explicit operator bool() const noexcept { return held_ != nullptr; }
    /// An exception that leaves it ends the program.
    HERRING_SETUP void operator()(failure const& why) const noexcept {
        if (held_ != nullptr) held_->call(held_, why);
    }

  private:
    struct base {
        std::atomic<int> uses{1};
        void (*call)(base*, failure const&);
        void (*destroy)(base*) noexcept;
    };
    template <class Function> struct holding : base {
        Function function;
        explicit holding(Function&& from)
            : base{{1},
                   [](base* self, failure const& why) { static_cast<holding*>(self)->function(why); },
                   [](base* self) noexcept { delete static_cast<holding*>(self); }},
              function(std::move(from)) {}
    };

    base* held_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_FAILURE_FAILURE_HANDLER_HPP

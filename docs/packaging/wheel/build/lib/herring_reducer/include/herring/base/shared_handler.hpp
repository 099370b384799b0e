// herring: a function of the program that Herring calls at an event, such as the failure of a world.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_SHARED_HANDLER_HPP
#define HERRING_BASE_SHARED_HANDLER_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"

#include <atomic>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Nothing, or a function object that takes an `Event const&`; copies share it. Not `std::function`, whose
/// header is slow to compile.
template <class Event> class shared_handler {
  public:
    shared_handler() = default;
    template <class Function>
    requires(!std::is_same_v<Function, shared_handler> && std::is_invocable_v<Function&, Event const&>) //
        shared_handler(Function function)
        : held_(new holding<Function>(std::move(function))) {}
    shared_handler(shared_handler const& other) noexcept : held_(other.held_) {
        if (held_ != nullptr) held_->uses.fetch_add(1, std::memory_order_relaxed);
    }
    shared_handler(shared_handler&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
    shared_handler& operator=(shared_handler other) noexcept {
        std::swap(held_, other.held_);
        return *this;
    }
    ~shared_handler() {
        if (held_ != nullptr && held_->uses.fetch_sub(1, std::memory_order_acq_rel) == 1)
            held_->destroy(held_);
    }

    explicit operator bool() const noexcept { return held_ != nullptr; }
    /// Calls the function, if there is one. An exception that leaves the function ends the program.
    HERRING_SETUP void operator()(Event const& what) const noexcept {
        if (held_ != nullptr) held_->call(held_, what);
    }

  private:
    struct base {
        std::atomic<int> uses{1};
        void (*call)(base*, Event const&);
        void (*destroy)(base*) noexcept;
    };
    template <class Function> struct holding : base {
        Function function;
        explicit holding(Function&& from)
            : base{{1},
                   [](base* self, Event const& what) { static_cast<holding*>(self)->function(what); },
                   [](base* self) noexcept { delete static_cast<holding*>(self); }},
              function(std::move(from)) {}
    };

    base* held_ = nullptr;
};

/// The program's function for the failure of its world: nothing, or a function object that takes a `failure
/// const&`.
using failure_handler = shared_handler<failure>;

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_SHARED_HANDLER_HPP

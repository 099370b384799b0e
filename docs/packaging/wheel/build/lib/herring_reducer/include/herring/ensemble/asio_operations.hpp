// herring: operations of an ensemble on an event loop of Boost.Asio: handlers, and the wait for a descriptor.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ASIO_OPERATIONS_HPP
#define HERRING_ENSEMBLE_ASIO_OPERATIONS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/transport/tcp/boost_asio.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include <fcntl.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Waits on an event loop until a descriptor is readable; one wait at a time.
///
/// Threads: any.
class asio_readiness {
  public:
    using executor_type = boost::asio::any_io_executor;

    /// Duplicates the descriptor.
    ///
    /// Errors: `no_resources`.
    HERRING_SETUP asio_readiness(executor_type executor, int descriptor, char const* operation)
        : descriptor_(std::move(executor)) {
        int const own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
        boost::system::error_code problem;
        if (own >= 0) (void)descriptor_.assign(own, problem);
        if (own < 0 || problem)
            throw error(errc::no_resources, -1, -1, operation,
                        {"no descriptor for the event loop: ", std::strerror(errno), "; raise ulimit -n"});
    }

    executor_type get_executor() noexcept { return descriptor_.get_executor(); }

    /// Calls `then` on the event loop once the descriptor is readable. Does nothing during a wait, or after
    /// `cancel`.
    template <class Then> void wait(Then then) {
        std::lock_guard const lock(mutex_);
        if (waits_ || cancelled_) return;
        waits_ = true;
        descriptor_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                               [then = std::move(then)](boost::system::error_code ended) mutable {
                                   if (!ended) then();
                               });
    }
    /// Allows the next wait; to be called in `then`.
    void done() {
        std::lock_guard const lock(mutex_);
        waits_ = false;
    }
    /// Ends a wait without calling its function, and refuses later ones.
    HERRING_SETUP void cancel() {
        std::lock_guard const lock(mutex_);
        cancelled_ = true;
        boost::system::error_code ignored;
        descriptor_.close(ignored);
    }

  private:
    // A descriptor that is only waited for. Asio's own has a destructor for derived classes.
    struct waitable : boost::asio::posix::basic_descriptor<executor_type> {
        using boost::asio::posix::basic_descriptor<executor_type>::basic_descriptor;
    };

    std::mutex mutex_{};
    waitable descriptor_;
    bool waits_ = false;
    bool cancelled_ = false;
};

template <class Handler, class Executor>
using work_of =
    std::optional<boost::asio::executor_work_guard<boost::asio::associated_executor_t<Handler, Executor>>>;

/// Runs `handler(result)` on the handler's associated executor, by way of `otherwise`, never within this
/// call. `keep` lives until the handler has returned; `work`, until the handler is on its executor.
template <class Handler, class Executor, class Result>
void complete_later(Handler handler, Executor const& otherwise, Result result, std::shared_ptr<void> keep,
                    work_of<Handler, Executor> work = {}) {
    // Function objects, because lambdas would not pass the handler's allocator on.
    using allocator = boost::asio::associated_allocator_t<Handler>;
    struct completion {
        std::shared_ptr<void> keep;
        Handler handler;
        Result result;
        using allocator_type = allocator;
        allocator_type get_allocator() const noexcept {
            return boost::asio::get_associated_allocator(handler);
        }
        void operator()() { std::move(handler)(std::move(result)); }
    };
    // The first hop, to `otherwise`, keeps the handler out of this call. Posted to its own executor, the
    // handler of a future would make Asio start a thread for each core.
    struct hop {
        Executor otherwise;
        work_of<Handler, Executor> work;
        completion then;
        using allocator_type = allocator;
        allocator_type get_allocator() const noexcept { return then.get_allocator(); }
        void operator()() {
            auto const executor = boost::asio::get_associated_executor(then.handler, otherwise);
            boost::asio::dispatch(executor, std::move(then));
        }
    };
    boost::asio::post(
        otherwise, hop{otherwise, std::move(work), {std::move(keep), std::move(handler), std::move(result)}});
}

/// Places of handlers. Two pointers a place identify its handler: one indirect call an answer.
///
/// Memory:  `places` · 320 bytes; a handler of more than 256 bytes, with its executor, lies in memory of its
///          allocator.
/// Threads: one at a time.
template <class Result> class asio_operations {
  public:
    static constexpr std::size_t none = ~std::size_t{0};

    HERRING_SETUP explicit asio_operations(std::size_t places) : places_(places) {
        for (std::size_t i = places; i-- > 0;) give(i);
    }
    asio_operations(asio_operations const&) = delete;
    asio_operations& operator=(asio_operations const&) = delete;
    ~asio_operations() {
        for (place& p : places_)
            if (p.held != nullptr) p.held->end(p.held, nullptr, nullptr);
    }

    /// Keeps a handler and returns its place. `none`: all places are taken, and the handler is unchanged.
    template <class Handler, class Executor> std::size_t add(Handler& handler, Executor const& otherwise) {
        if (free_ == none) return none;
        using holding = holding_of<Handler, Executor>;
        std::size_t const at = free_;
        place& p = places_[at];
        if constexpr (fits<holding>) {
            p.held = ::new (static_cast<void*>(p.memory)) holding(std::move(handler), otherwise);
        } else {
            typename holding::allocator allocator(boost::asio::get_associated_allocator(handler));
            holding* const memory =
                std::allocator_traits<typename holding::allocator>::allocate(allocator, 1);
            p.held = ::new (static_cast<void*>(memory)) holding(std::move(handler), otherwise);
        }
        free_ = p.next;
        ++count_;
        return at;
    }
    /// Marks the operation as begun: its executor has work until it ends, and the handler's cancellation slot
    /// calls `cancel` (from Boost 1.77, which has slots).
    template <class Handler, class Executor, class Cancel> void began(std::size_t at, Cancel cancel) {
        auto& held = *static_cast<holding_of<Handler, Executor>*>(places_[at].held);
        held.work.emplace(boost::asio::get_associated_executor(held.handler, held.otherwise));
#if BOOST_VERSION >= 107700
        if (auto slot = boost::asio::get_associated_cancellation_slot(held.handler); slot.is_connected())
            slot.assign([cancel](boost::asio::cancellation_type) { cancel(); });
#else
        (void)cancel;
#endif
    }
    /// Completes an operation and frees its place. `keep` lives until the handler has returned.
    void complete(std::size_t at, Result result, std::shared_ptr<void> keep) { end(at, &result, &keep); }
    /// Frees a place without completing its operation.
    void discard(std::size_t at) { end(at, nullptr, nullptr); }
    /// Completes all operations with results of `make`.
    template <class Make> void complete_all(Make&& make) {
        for (std::size_t at = 0; at < places_.size(); ++at)
            if (places_[at].held != nullptr) complete(at, make(), nullptr);
    }

    /// Returns the number of operations.
    std::size_t count() const noexcept { return count_; }

  private:
    static constexpr std::size_t room = 256;

    // One function for both ways to end: `result` is nullptr where there is none.
    struct held_handler {
        void (*end)(held_handler*, Result* result, std::shared_ptr<void>* keep);
    };
    template <class Handler, class Executor> struct holding_of : held_handler {
        using allocator = typename std::allocator_traits<
            boost::asio::associated_allocator_t<Handler>>::template rebind_alloc<holding_of>;

        holding_of(Handler&& h, Executor const& other)
            : held_handler{&holding_of::end_this}, handler(std::move(h)), otherwise(other) {}

        static void end_this(held_handler* base, Result* result, std::shared_ptr<void>* keep) {
            auto* const self = static_cast<holding_of*>(base);
#if BOOST_VERSION >= 107700
            if (auto slot = boost::asio::get_associated_cancellation_slot(self->handler); slot.is_connected())
                slot.clear();
#endif
            // The place is free before the handler can run, which may ask again.
            Handler moved(std::move(self->handler));
            Executor const other(self->otherwise);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" // g++ 12 at -O2 warns of an empty std::optional
#endif
            work_of<Handler, Executor> work(std::move(self->work));
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
            allocator memory(boost::asio::get_associated_allocator(moved));
            self->~holding_of();
            if constexpr (!fits<holding_of>) std::allocator_traits<allocator>::deallocate(memory, self, 1);
            if (result != nullptr)
                ensembles::complete_later(std::move(moved), other, std::move(*result), std::move(*keep),
                                          std::move(work));
        }

        Handler handler;
        Executor otherwise;
        work_of<Handler, Executor> work{};
    };
    template <class Holding>
    static constexpr bool fits = sizeof(Holding) <= room && alignof(Holding) <= alignof(std::max_align_t);

    struct place {
        alignas(std::max_align_t) std::byte memory[room];
        held_handler* held = nullptr; // nullptr: the place is free
        std::size_t next = none;      // of the free places
    };

    void give(std::size_t at) noexcept {
        places_[at].next = free_;
        free_ = at;
    }
    void end(std::size_t at, Result* result, std::shared_ptr<void>* keep) {
        held_handler* const held = std::exchange(places_[at].held, nullptr);
        --count_;
        give(at);
        held->end(held, result, keep);
    }

    fixed_array<place> places_;
    std::size_t free_ = none;
    std::size_t count_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ASIO_OPERATIONS_HPP

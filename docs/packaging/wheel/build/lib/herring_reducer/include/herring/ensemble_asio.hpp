// herring: ensembles on an event loop of Boost.Asio: requests and jobs as asynchronous operations.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ASIO_HPP
#define HERRING_ENSEMBLE_ASIO_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/ensemble.hpp"
#include "herring/ensemble/asio_operations.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE {

/// A frontend whose requests are asynchronous operations with any completion token.
///
/// Without operations in flight nothing keeps `io_context::run` from returning. `frontend()` is the frontend
/// itself, whose `ask` may be called too.
///
/// Threads:  any, at once.
/// Cost:     that of the frontend, and `in_flight` · 320 bytes; handlers of more than 256 bytes are allocated
///           by their associated allocator.
/// Lifetime: answers may outlive the frontend. The destructor completes operations in flight as `closed`.
template <class Ensemble> class asio_frontend {
  public:
    using answer = typename Ensemble::answer;
    using executor_type = boost::asio::any_io_executor;

    /// Errors: those of the frontend; `no_resources`.
    HERRING_SETUP asio_frontend(executor_type executor, frontend_options options)
        : state_(std::make_shared<state>(std::move(executor), std::move(options))) {}
    asio_frontend(asio_frontend const&) = delete;
    asio_frontend& operator=(asio_frontend const&) = delete;
    ~asio_frontend() { state_->close(); }

    typename Ensemble::frontend& frontend() noexcept { return state_->front; }
    executor_type get_executor() const noexcept { return state_->ready.get_executor(); }

    /// Asks as `frontend::ask` does, and completes with the answer: `void(answer)`. A request that is refused
    /// as busy completes too. A request that has become invalid when the operation begins, because the roster
    /// has grown since this call, fails.
    ///
    /// `id`: if given, the request's number is written there before the operation can complete.
    ///
    /// Threads:  any. The handler runs on its associated executor, never within this call.
    /// Lifetime: input and weights, until the operation has begun: with most tokens, within this call.
    /// Cancels:  by the handler's cancellation slot, if Boost has them (from 1.77); always by
    ///           `frontend().cancel(id)`.
    /// Errors:   `bad_argument`, thrown by this call with any token.
    template <class Token>
    auto async_ask(std::span<std::byte const> input, std::chrono::nanoseconds within, Token&& token,
                   ask_options how = {}, std::uint64_t* id = nullptr) {
        state_->front.core().check_submit(input.size(), within, how);
        return boost::asio::async_initiate<Token, void(answer)>(
            [](auto handler, std::shared_ptr<state> self, std::span<std::byte const> bytes,
               std::chrono::nanoseconds most, ask_options options, std::uint64_t* number) {
                state::begin(self, std::move(handler), number, [&](std::uint64_t cookie) {
                    return self->front.submit(bytes, most, cookie, options);
                });
            },
            token, state_, input, within, std::move(how), id);
    }

    /// Expects answers of members that have their input elsewhere, as `frontend::expect` does; else as
    /// `async_ask`. Fails too if another operation with this id has begun since this call.
    template <class Token>
    auto async_expect(std::uint64_t id, std::chrono::nanoseconds within, Token&& token,
                      ask_options how = {}) {
        state_->front.core().check_submit_expected(id, within, how);
        return boost::asio::async_initiate<Token, void(answer)>(
            [](auto handler, std::shared_ptr<state> self, std::uint64_t number, std::chrono::nanoseconds most,
               ask_options options) {
                state::begin(self, std::move(handler), nullptr, [&](std::uint64_t cookie) {
                    return self->front.submit_expected(number, most, cookie, options);
                });
            },
            token, state_, id, within, std::move(how));
    }

  private:
    struct state {
        HERRING_SETUP state(executor_type executor, frontend_options options)
            : operations(options.in_flight), front(std::move(options)),
              ready(std::move(executor), front.descriptor(), "frontend") {}

        template <class Handler, class Submit>
        static void begin(std::shared_ptr<state> const& self, Handler handler, std::uint64_t* id,
                          Submit submit) {
            typename Ensemble::frontend::ticket ticket;
            {
                std::lock_guard const lock(self->mutex);
                std::size_t const at = self->operations.add(handler, self->ready.get_executor());
                if (at == operations_in_flight::none) { // all `in_flight` operations are in use
                    detail::ensembles::complete_later(std::move(handler), self->ready.get_executor(),
                                                      answer::refused(outcome::busy), nullptr);
                    return;
                }
                try {
                    ticket = submit(at);
                } catch (error const&) { // checked before; many tokens begin where nothing may be thrown
                    ticket = {.refused = outcome::failed};
                }
                if (id != nullptr) *id = ticket.id;
                if (!ticket.accepted()) {
                    self->operations.complete(at, answer::refused(ticket.refused), nullptr);
                    return;
                }
                self->operations.template began<Handler, executor_type>(
                    at, [weak = std::weak_ptr<state>(self), number = ticket.id] {
                        if (auto const alive = weak.lock()) alive->front.cancel(number);
                    });
            }
            watch(self);
        }

        /// Has the event loop call `move` when the frontend has work, as long as operations are in flight.
        static void watch(std::shared_ptr<state> const& self) {
            self->ready.wait([weak = std::weak_ptr<state>(self)] {
                if (auto const alive = weak.lock()) move(alive);
            });
        }
        static void move(std::shared_ptr<state> const& self) {
            self->front.poll();
            while (self->complete_next(self)) {
            }
            self->ready.done();
            if (self->has_operations()) watch(self);
        }
        bool complete_next(std::shared_ptr<void> const& keep) {
            std::lock_guard const lock(mutex);
            answer done;
            std::uint64_t cookie = 0;
            if (!front.next_done(done, cookie)) return false;
            operations.complete(cookie, std::move(done), keep);
            return true;
        }
        bool has_operations() {
            std::lock_guard const lock(mutex);
            return operations.count() != 0;
        }
        HERRING_SETUP void close() {
            if (front.forked_off()) return;
            ready.cancel();
            front.close();
            std::lock_guard const lock(mutex);
            answer undelivered; // holds a place in flight, for which the frontend's end waits
            for (std::uint64_t cookie = 0; front.next_done(undelivered, cookie);) undelivered = {};
            operations.complete_all([] { return answer::refused(outcome::closed); });
        }

        using operations_in_flight = detail::ensembles::asio_operations<answer>;

        std::mutex mutex{};
        operations_in_flight operations;
        typename Ensemble::frontend front;
        detail::ensembles::asio_readiness ready;
    };

    std::shared_ptr<state> state_;
};

/// A member whose jobs are asynchronous operations. `member()` is the member itself.
///
/// Threads:  one at a time, handlers and jobs too: if several threads run the event loop, give it a strand.
/// Lifetime: longer than its jobs. The destructor completes `async_next` with an empty job.
template <class Ensemble> class asio_member {
  public:
    using job = typename Ensemble::job;
    using executor_type = boost::asio::any_io_executor;

    /// Errors: those of the member; `no_resources`.
    HERRING_SETUP asio_member(executor_type executor, member_options options)
        : state_(std::make_shared<state>(std::move(executor), std::move(options))) {}
    asio_member(asio_member const&) = delete;
    asio_member& operator=(asio_member const&) = delete;
    ~asio_member() { state_->close(); }

    typename Ensemble::member& member() noexcept { return state_->me; }
    executor_type get_executor() const noexcept { return state_->ready.get_executor(); }

    /// Completes with the next job: `void(job)`; with an empty job after `stop` or `leave`, or once every
    /// frontend has refused this member. A second operation at a time completes at once with an empty job.
    ///
    /// Threads:  the handler runs on its associated executor, never within this call.
    template <class Token> auto async_next(Token&& token) {
        return boost::asio::async_initiate<Token, void(job)>(
            [](auto handler, std::shared_ptr<state> self) {
                std::size_t const at = self->operations.add(handler, self->ready.get_executor());
                if (at == operations_in_flight::none) {
                    detail::ensembles::complete_later(std::move(handler), self->ready.get_executor(), job(),
                                                      nullptr);
                } else {
                    self->operations.template began<decltype(handler), executor_type>(at, [] {});
                    state::look(self);
                }
            },
            token, state_);
    }

  private:
    using operations_in_flight = detail::ensembles::asio_operations<job>;

    struct state {
        HERRING_SETUP state(executor_type executor, member_options options)
            : me(std::move(options)), ready(std::move(executor), me.descriptor(), "member") {}

        static void look(std::shared_ptr<state> const& self) {
            do {
                if (self->operations.count() == 0) return;
                job next = self->me.try_next();
                if (next || self->me.is_over()) {
                    self->operations.complete(0, std::move(next), self);
                    return;
                }
            } while (!self->me.arm());
            self->ready.wait([weak = std::weak_ptr<state>(self)] {
                auto const alive = weak.lock();
                if (!alive) return;
                alive->ready.done();
                look(alive);
            });
        }
        HERRING_SETUP void close() {
            if (me.forked_off()) return;
            ready.cancel();
            operations.complete_all([] { return job(); });
        }

        operations_in_flight operations{1};
        typename Ensemble::member me;
        detail::ensembles::asio_readiness ready;
    };

    std::shared_ptr<state> state_;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_ASIO_HPP

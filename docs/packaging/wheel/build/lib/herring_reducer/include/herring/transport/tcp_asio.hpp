// herring: lets transport::tcp sleep in a boost::asio::io_context of the program.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_ASIO_HPP
#define HERRING_TRANSPORT_TCP_ASIO_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/transport/tcp.hpp"
#include "herring/transport/tcp/boost_asio.hpp"
#include "herring/transport/tcp/sleep.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <poll.h>

namespace HERRING_NAMESPACE::detail {

/// The pending waits of one transport in an io_context: at most one for each descriptor and direction.
///
/// Cost: arming a wait allocates nothing. The concrete executor costs no indirect call a wait, the default
///       one four.
class asio_loop : public outer_loop {
  public:
    asio_loop(boost::asio::io_context& context, std::size_t descriptors)
        : outer_loop{&asio_loop::watch_in, &asio_loop::sleep_in, &asio_loop::wake_in, &asio_loop::forget_in,
                     &asio_loop::end_in},
          context_(context), places_(descriptors) {}
    asio_loop(asio_loop const&) = delete;
    asio_loop& operator=(asio_loop const&) = delete;

  private:
    /// Memory of the pending wait of one direction.
    struct handler_memory {
        alignas(std::max_align_t) std::byte bytes[256];
    };
    /// A socket that Asio only waits for.
    struct waitable : boost::asio::posix::basic_descriptor<boost::asio::io_context::executor_type> {
        using boost::asio::posix::basic_descriptor<boost::asio::io_context::executor_type>::basic_descriptor;
    };
    struct place {
        manual_lifetime<waitable> socket;
        bool pending[2] = {}; // for reading, for writing
        handler_memory memory[2];
    };
    // Gives Asio one fixed block: at most one wait of a direction is pending.
    template <class Value> struct fixed_allocator {
        using value_type = Value;
        handler_memory* memory;
        explicit fixed_allocator(handler_memory* m) noexcept : memory(m) {}
        template <class Other>
        fixed_allocator(fixed_allocator<Other> const& other) noexcept : memory(other.memory) {}
        Value* allocate(std::size_t count) {
            if (fits(count)) return reinterpret_cast<Value*>(memory->bytes);
            return static_cast<Value*>(::operator new(count * sizeof(Value)));
        }
        void deallocate(Value* p, std::size_t count) noexcept {
            if (!fits(count)) ::operator delete(p);
        }
        static constexpr bool fits(std::size_t count) noexcept {
            return count * sizeof(Value) <= sizeof(handler_memory);
        }
        template <class Other> bool operator==(fixed_allocator<Other> const& other) const noexcept {
            return memory == other.memory;
        }
    };
    /// One pending wait for readiness of one descriptor.
    struct readiness {
        asio_loop* self;
        place* of;
        bool write;
        using allocator_type = fixed_allocator<std::byte>;
        allocator_type get_allocator() const noexcept { return allocator_type(&of->memory[write]); }
        void operator()(boost::system::error_code) const noexcept {
            of->pending[write] = false;
            --self->armed_;
        }
    };
    /// Ends `sleep` from another thread.
    struct awakening {
        asio_loop* self;
        void operator()() const noexcept { self->waking_.store(false); }
    };

    static asio_loop& self(outer_loop& loop) noexcept { return static_cast<asio_loop&>(loop); }

    HERRING_SETUP static void watch_in(outer_loop& loop, std::size_t at, int descriptor, int rank) {
        try {
            manual_lifetime<waitable>& socket = self(loop).places_[at].socket;
            socket.emplace(self(loop).context_);
            socket->assign(descriptor);
        } catch (boost::system::system_error const& failed) { // Asio's own descriptors
            throw error(errc::no_resources, rank, -1, "connect",
                        {failed.what(), "; raise the limit of open files (ulimit -n)"});
        }
    }

    static void sleep_in(outer_loop& loop, std::span<pollfd const> wanted, time_point until) noexcept {
        self(loop).sleep_until(wanted, until);
    }
    void sleep_until(std::span<pollfd const> wanted, time_point until) noexcept {
        for (std::size_t at = 0; at < wanted.size(); ++at) {
            if (wanted[at].fd < 0) continue;
            for (bool const write : {false, true})
                if ((wanted[at].events & (write ? POLLOUT : POLLIN)) != 0) arm(places_[at], write);
        }
        if (context_.stopped()) context_.restart();
        try {
            if (context_.run_one_until(until) == 0 && armed_ == 0 && clock::now() < until)
                ::poll(nullptr, 0, 1); // every peer is lost
        } catch (...) { // a handler of the program has thrown; the operation that runs it goes on
            if (threw.load(std::memory_order_acquire)) return;
            thrown = std::current_exception();
            threw.store(true, std::memory_order_release);
        }
    }
    [[gnu::noinline]] void arm(place& p, bool write) noexcept {
        if (std::exchange(p.pending[write], true)) return;
        ++armed_;
        p.socket->async_wait(write ? boost::asio::posix::descriptor_base::wait_write
                                   : boost::asio::posix::descriptor_base::wait_read,
                             readiness{this, &p, write});
    }

    static void wake_in(outer_loop& loop) noexcept {
        asio_loop& woken = self(loop);
        if (woken.waking_.exchange(true)) return; // a wake-up is pending
        // The same as boost::asio::post, without its includes.
        woken.context_.get_executor()
            .require(boost::asio::execution::blocking.never)
            .require(boost::asio::execution::allocator(fixed_allocator<std::byte>(&woken.wake_memory_)))
            .execute(awakening{&woken});
    }

    HERRING_SETUP static void forget_in(outer_loop& loop, std::size_t at) noexcept {
        manual_lifetime<waitable>& socket = self(loop).places_[at].socket;
        if (socket && socket->is_open()) (void)socket->release();
    }

    HERRING_SETUP static void end_in(outer_loop* loop) noexcept {
        asio_loop& ended = self(*loop);
        ended.drain();
        delete &ended;
    }
    // Cancelled waits refer to this object, so they must run before it is destroyed.
    void drain() noexcept {
        for (std::size_t at = 0; at < places_.size(); ++at) forget_in(*this, at);
        if (armed_ > 0 || waking_.load()) context_.restart();
        while (armed_ > 0 || waking_.load())
            // The waits are ready. poll_one would be one more loop to compile, and a time in the past runs
            // nothing.
            try {
                if (context_.run_one_until(clock::now() + std::chrono::milliseconds(100)) == 0) break;
            } catch (...) {
                throw_later(std::current_exception());
            }
        if (threw.load(std::memory_order_acquire)) throw_later(thrown);
    }
    /// Lets the program's next run of the io_context throw an exception, for no call of the reducer is left
    /// to do so.
    HERRING_SETUP void throw_later(std::exception_ptr late) noexcept {
        try {
            context_.get_executor().require(boost::asio::execution::blocking.never).execute([late] {
                std::rethrow_exception(late);
            });
        } catch (std::bad_alloc const&) {
            std::fputs(
                "herring: an exception of a handler of the io_context is lost: no memory to throw it later\n",
                stderr);
        }
    }

    boost::asio::io_context& context_;
    fixed_array<place> places_;
    std::size_t armed_ = 0;
    handler_memory wake_memory_;
    std::atomic<bool> waking_{false};
};

template <class Loop>
requires std::is_base_of_v<boost::asio::io_context, Loop>
struct outer_loop_in<Loop> {
    static constexpr bool known = true;
    HERRING_SETUP static loop_handle make(boost::asio::io_context& context, std::size_t descriptors) {
        return loop_handle(new asio_loop(context, descriptors));
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_ASIO_HPP

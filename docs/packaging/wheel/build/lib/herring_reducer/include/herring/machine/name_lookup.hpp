// herring: the addresses of a host name, looked up in a thread of its own, with a deadline.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_NAME_LOOKUP_HPP
#define HERRING_MACHINE_NAME_LOOKUP_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/text.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/threads.hpp"
#include "herring/machine/time.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <netdb.h>
#include <pthread.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail {

/// Looks a host name up: a literal address at once, else in a detached thread, since a resolver may take
/// long. If no thread can be started, the constructor itself waits for the resolver. A thread that has not
/// answered by the deadline, or by the end of this object, is left running.
class name_lookup {
  public:
    HERRING_SETUP name_lookup(std::string const& host, std::uint16_t port, time_point deadline)
        : asked_(new question(host, text({port}))), deadline_(deadline) {
        if (asked_->ask(AI_NUMERICHOST)) return;
        auto const answer = [](void* of) -> void* {
            auto* const asked = static_cast<question*>(of);
            (void)asked->ask(0);
            asked->release();
            return nullptr;
        };
        asked_->holders.store(2);
        pthread_t thread;
        if (start_thread(thread, answer, asked_) == 0) {
            ::pthread_detach(thread);
        } else {
            asked_->holders.store(1);
            (void)asked_->ask(0);
        }
    }
    name_lookup(name_lookup const&) = delete;
    name_lookup& operator=(name_lookup const&) = delete;
    HERRING_SETUP ~name_lookup() { asked_->release(); }

    /// True if there is an answer, or the deadline has passed.
    HERRING_SETUP bool done() const noexcept {
        monitor::guard const held(asked_->lock);
        return asked_->is_answered || clock::now() >= deadline_;
    }
    /// Blocks until done().
    HERRING_SETUP void wait() noexcept {
        monitor::guard const held(asked_->lock);
        while (!asked_->is_answered && asked_->lock.wait_until(deadline_)) {
        }
    }
    /// After done(): returns the addresses, with the port; if there are none, `why` gets the reason.
    HERRING_SETUP fixed_array<endpoint> found(std::string& why) const {
        monitor::guard const held(asked_->lock);
        std::size_t count = 0;
        for (addrinfo const* a = asked_->answer; a != nullptr; a = a->ai_next) count += is_address(*a);
        fixed_array<endpoint> all(count);
        for (addrinfo const* a = asked_->answer; a != nullptr; a = a->ai_next)
            if (is_address(*a)) all[all.size() - count--] = endpoint::of(a->ai_addr, a->ai_addrlen);
        if (all.empty())
            why = !asked_->is_answered  ? "the resolver did not answer in time"
                  : asked_->failed != 0 ? ::gai_strerror(asked_->failed)
                                        : "it has no IPv4 or IPv6 address";
        return all;
    }

  private:
    /// Shared by this object and the thread; the last holder deletes it.
    struct question {
        std::atomic<int> holders{1};
        std::string const host, port;
        monitor lock{}; // guards the members below
        int failed = 0;
        addrinfo* answer = nullptr;
        bool is_answered = false;

        question(std::string of_host, std::string of_port)
            : host(std::move(of_host)), port(std::move(of_port)) {}
        // Calls the resolver without the lock, since it may take long. True: there is an answer.
        HERRING_SETUP bool ask(int flags) noexcept {
            addrinfo hints{}, *got = nullptr;
            hints.ai_family = AF_UNSPEC;
            hints.ai_socktype = SOCK_STREAM;
            hints.ai_flags = flags | AI_NUMERICSERV;
            int const status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &got);
            if (status != 0 && (flags & AI_NUMERICHOST) != 0) return false; // not a literal
            monitor::guard const held(lock);
            failed = status;
            answer = status == 0 ? got : nullptr;
            is_answered = true;
            lock.notify_all();
            return true;
        }
        HERRING_SETUP void release() noexcept {
            if (holders.fetch_sub(1) != 1) return;
            if (answer != nullptr) ::freeaddrinfo(answer);
            delete this;
        }
    };
    static bool is_address(addrinfo const& of) noexcept {
        return of.ai_family == AF_INET || of.ai_family == AF_INET6;
    }

    question* asked_;
    time_point deadline_;
};

/// Returns the addresses of a name or literal; on failure none, with the reason in `why`.
///
/// Blocks: at most until `deadline`.
HERRING_SETUP inline fixed_array<endpoint> resolve(std::string const& host, std::uint16_t port,
                                                   time_point deadline, std::string& why) {
    name_lookup lookup(host, port, deadline);
    lookup.wait();
    return lookup.found(why);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_NAME_LOOKUP_HPP

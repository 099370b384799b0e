// herring: a host's addresses, looked up by a thread that nobody has to wait for.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_NAME_LOOKUP_HPP
#define HERRING_BASE_NAME_LOOKUP_HPP

#include "herring/base/address.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/monitor.hpp"
#include "herring/base/start_thread.hpp"
#include "herring/base/text.hpp"
#include "herring/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <netdb.h>
#include <pthread.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail {

/// Looks a name up: a literal address at once, else in a thread of its own, for a resolver may take long; where no thread can be had, the
/// constructor waits for it. It is left to itself when
/// it has not answered by the deadline, or when this object goes.
class name_lookup {
  public:
    HERRING_SETUP name_lookup(std::string const& host, std::uint16_t port, time_point deadline)
        : asked_(std::make_shared<question>()), deadline_(deadline) {
        asked_->host = host;
        asked_->port = text({port});
        if (asked_->ask(AI_NUMERICHOST)) return;
        auto* const held = new std::shared_ptr<question>(asked_);
        pthread_t thread;
        if (start_thread(thread, answer, held) == 0) {
            ::pthread_detach(thread);
            return;
        }
        delete held;
        (void)asked_->ask(0); // the caller waits
    }

    /// Whether there is an answer, or the deadline has passed.
    HERRING_SETUP bool done() const noexcept {
        monitor::guard const held(asked_->lock);
        return asked_->is_answered || clock::now() >= deadline_;
    }
    /// Returns when it is done.
    HERRING_SETUP void wait() noexcept {
        monitor::guard const held(asked_->lock);
        while (!asked_->is_answered && asked_->lock.wait_until(deadline_)) {
        }
    }
    /// Once done: the addresses, with the port; where there are none, `why` is the resolver's reason.
    HERRING_SETUP fixed_array<endpoint> found(std::string& why) const {
        monitor::guard const held(asked_->lock);
        fixed_array<endpoint> all;
        if (!asked_->is_answered) {
            why = "the resolver did not answer in time";
            return all;
        }
        std::size_t count = 0;
        asked_->each([&](addrinfo const&) { ++count; });
        all = fixed_array<endpoint>(count);
        asked_->each(
            [&](addrinfo const& a) { all[all.size() - count--] = endpoint::of(a.ai_addr, a.ai_addrlen); });
        if (all.empty())
            why = asked_->failed != 0 ? ::gai_strerror(asked_->failed) : "it has no IPv4 or IPv6 address";
        return all;
    }

  private:
    /// Shared with the thread, which may be the last to go.
    struct question {
        std::string host{}, port{};
        monitor lock{}; // for what follows
        int failed = 0;
        addrinfo* answer = nullptr;
        bool is_answered = false;

        question() = default;
        question(question const&) = delete;
        question& operator=(question const&) = delete;
        ~question() {
            if (answer != nullptr) ::freeaddrinfo(answer);
        }
        // Without the lock, for it may take long. Returns whether there is an answer.
        HERRING_SETUP bool ask(int flags) {
            addrinfo hints{}, *got = nullptr;
            hints.ai_family = AF_UNSPEC;
            hints.ai_socktype = SOCK_STREAM;
            hints.ai_flags = flags | AI_NUMERICSERV;
            int const status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &got);
            monitor::guard const held(lock);
            if (status != 0 && (flags & AI_NUMERICHOST) != 0) return false; // it is no literal
            failed = status;
            answer = status == 0 ? got : nullptr;
            is_answered = true;
            lock.notify_all();
            return true;
        }
        template <class Take> void each(Take const& take) const {
            for (addrinfo const* a = answer; a != nullptr; a = a->ai_next)
                if (a->ai_family == AF_INET || a->ai_family == AF_INET6) take(*a);
        }
    };
    HERRING_SETUP static void* answer(void* argument) {
        std::unique_ptr<std::shared_ptr<question>> const held(
            static_cast<std::shared_ptr<question>*>(argument));
        (void)(*held)->ask(0);
        return nullptr;
    }

    std::shared_ptr<question> asked_;
    time_point deadline_;
};

/// The addresses of a name or literal; on failure none, with the reason in `why`.
///
/// Blocks: at most until `deadline`.
HERRING_SETUP inline fixed_array<endpoint> resolve(std::string const& host, std::uint16_t port,
                                                   time_point deadline, std::string& why) {
    name_lookup lookup(host, port, deadline);
    lookup.wait();
    return lookup.found(why);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_NAME_LOOKUP_HPP

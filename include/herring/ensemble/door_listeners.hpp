// herring: the sockets on which a frontend's members knock: tcp addresses, and a unix socket for those of its machine.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DOOR_LISTENERS_HPP
#define HERRING_ENSEMBLE_DOOR_LISTENERS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/control.hpp"
#include "herring/control/rendezvous/event_thread.hpp"
#include "herring/crypto/random.hpp"
#include "herring/ensemble/door_roster.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/local_socket.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Watched under the keys below `keys`, at once.
///
/// Threads:  that of the door, once it runs.
/// Lifetime: no longer than the thread's set, which is open before.
class door_listeners {
  public:
    static constexpr std::uint64_t keys = 16;

    explicit door_listeners(rendezvous::event_thread& thread) noexcept : thread_(thread) {}
    door_listeners(door_listeners const&) = delete;
    door_listeners& operator=(door_listeners const&) = delete;

    /// On all addresses of a "host:port".
    ///
    /// Errors: `bad_argument`: every interface, and no secret; `unreachable`.
    HERRING_SETUP void listen(std::string const& address, bool has_secret) {
        host_and_port const where = split_address(address, "listen", 0, "frontend");
        std::string why;
        auto const found = resolve(where.host, where.port, clock::now() + std::chrono::seconds(5), why);
        std::uint16_t port = where.port;
        for (endpoint at : found) {
            if (at.wildcard() && !has_secret)
                door_roster::refuse_setting(
                    {"the frontend's address is '", address,
                     "', which is every interface of this machine, and there is no secret; name "
                     "one interface, or give a secret"});
            if (sockets_.size() == local_key) break;
            at.port(port);
            descriptor made(listen_on(at));
            if (made.get() < 0) {
                why = std::strerror(errno);
                continue;
            }
            endpoint const own = local_end(made.get());
            if (sockets_.empty()) {
                port = own.port();
                address_ = own.text();
                if (!has_secret && !own.loopback())
                    std::fprintf(
                        stderr,
                        "herring: the frontend on %s has no secret: whoever reaches it may answer as a "
                        "member; set HERRING_SECRET_FILE\n",
                        address_.c_str());
            }
            sockets_.push_back(std::move(made));
        }
        if (sockets_.empty())
            throw error(errc::unreachable, -1, -1, "ensemble",
                        {"cannot listen on '", address, "': ", why,
                         "; give an address of this machine and a free port"});
        watch();
    }
    /// Also on a unix socket with a name of its own, if there can be one.
    HERRING_SETUP void listen_here() {
        char name[48];
        std::snprintf(name, sizeof name, "herring-ensemble-%016llx",
                      static_cast<unsigned long long>(random_bits()));
        local_ = listen_locally(name);
        if (local_.get() < 0) return;
        local_name_ = name;
        thread_.watch(local_.get(), local_key, EPOLLIN);
    }

    /// "host:port" of the first address that it listens on.
    std::string const& address() const noexcept { return address_; }
    /// Of the unix socket; empty: there is none.
    std::string const& local_name() const noexcept { return local_name_; }

    bool is_local(std::uint64_t key) const noexcept { return key == local_key; }
    /// −1: there is none.
    int socket(std::uint64_t key) const noexcept {
        return is_local(key) ? local_.get() : key < sockets_.size() ? sockets_[key].get() : -1;
    }

    /// Out of descriptors: a listener that stays readable would keep the thread from sleeping.
    HERRING_SETUP void pause() noexcept {
        resume_at_ = clock::now() + std::chrono::milliseconds(100);
        for (descriptor const& each : sockets_) thread_.forget(each.get());
        if (local_.get() >= 0) thread_.forget(local_.get());
    }
    /// Ends a pause that is over. When to call it again.
    HERRING_SETUP time_point resume(time_point now) noexcept {
        if (now >= resume_at_) {
            resume_at_ = time_point::max();
            watch();
        }
        return resume_at_;
    }

  private:
    static constexpr std::uint64_t local_key = keys - 1;

    HERRING_SETUP void watch() noexcept {
        for (std::size_t i = 0; i < sockets_.size(); ++i) thread_.watch(sockets_[i].get(), i, EPOLLIN);
        if (local_.get() >= 0) thread_.watch(local_.get(), local_key, EPOLLIN);
    }

    rendezvous::event_thread& thread_;
    std::vector<descriptor> sockets_;
    descriptor local_{};
    std::string address_, local_name_;
    time_point resume_at_ = time_point::max();
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DOOR_LISTENERS_HPP

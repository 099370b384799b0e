// herring: the sockets of a frontend's acceptor: its listeners, and the connections that they brought.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ACCEPTOR_SOCKETS_HPP
#define HERRING_ENSEMBLE_ACCEPTOR_SOCKETS_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/control.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/ensemble/admission_roster.hpp"
#include "herring/ensemble/control_link.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/local_socket.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/event_thread.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A connection that an acceptor has accepted: of an unknown peer, of a member that is being admitted, or of
/// one that is up.
struct peer_connection {
    enum class stage {
        unknown,
        challenged,
        lane_proving,
        admitted, ///< waits for its lane
        up,
        ending ///< has got its last message; stays open until the other end has read it
    };

    std::uint64_t key = 0; ///< serial number of the connection, and its place in `peer_connections`
    control_link link{};
    stage at = stage::unknown;
    bool watches_write = false;
    bool gone = false;
    bool draining = false;
    std::string from{};
    time_point until = time_point::max(); ///< when it is closed
    time_point heard{}, beat_at = time_point::max();
    byte_buffer lane_hello{}, challenge{}; ///< bodies of the lane's hello, and of the challenge that was sent
    peer_index peer = 0;
    std::uint64_t incarnation = 0;
    std::uint32_t credits = 0;
    std::uint64_t ticket = 0; ///< of the admission; on a lane's connection, the one that it claims
    secret_key lane_key{};
    std::string who{};

    bool proven() const noexcept { return at == stage::admitted || at == stage::up; }
    /// Rank of an unproven connection by how likely it is a member's. A member sends at once, so a silent
    /// peer is the least likely.
    int likelihood() const noexcept {
        return at == stage::unknown ? 0 : at == stage::ending ? 1 : at == stage::challenged ? 2 : 3;
    }
};

/// The connections of an acceptor. Each stays where it is until `reap`, also when it is closed, so that the
/// function that closed it can still look at it.
///
/// Threads:  the acceptor's.
/// Lifetime: the event thread outlives it.
class peer_connections {
  public:
    explicit peer_connections(event_thread& thread) noexcept : thread_(thread) {}
    peer_connections(peer_connections const&) = delete;
    peer_connections& operator=(peer_connections const&) = delete;

    /// Adds a connection of an unknown peer, and watches it; its key is 2^20 at least.
    HERRING_SETUP peer_connection& add(control_link&& link, time_point now, time_point until) {
        std::size_t place = 0;
        while (place < connections_.size() && connections_[place]) ++place;
        if (place == connections_.size()) connections_.emplace_back();
        connections_[place] = std::make_unique<peer_connection>();
        peer_connection& p = *connections_[place];
        p.key = ++serial_ << place_bits | place;
        p.link = std::move(link);
        p.heard = now;
        p.until = until;
        thread_.watch(p.link.socket(), p.key, EPOLLIN);
        return p;
    }
    /// Returns nullptr if the connection is gone.
    HERRING_SETUP peer_connection* find(std::uint64_t key) const noexcept {
        std::size_t const place = key & ((std::uint64_t{1} << place_bits) - 1);
        peer_connection* const p = place < connections_.size() ? connections_[place].get() : nullptr;
        return p != nullptr && p->key == key && !p->gone ? p : nullptr;
    }

    /// Calls `look(peer_connection)` for each connection that is not gone, also for those that are added
    /// meanwhile.
    template <class Look> HERRING_SETUP void for_each(Look&& look) const {
        for (std::size_t i = 0; i < connections_.size(); ++i)
            if (connections_[i] && !connections_[i]->gone) look(*connections_[i]);
    }
    HERRING_SETUP std::size_t unproven() const {
        std::size_t count = 0;
        for_each([&](peer_connection const& p) { count += !p.proven(); });
        return count;
    }
    /// Returns the unproven connection that is least likely a member's, the oldest of several. nullptr: none.
    HERRING_SETUP peer_connection* least_likely() const {
        peer_connection* found = nullptr;
        for_each([&](peer_connection& p) {
            if (p.proven()) return;
            if (found == nullptr || p.likelihood() < found->likelihood() ||
                (p.likelihood() == found->likelihood() && p.key >> place_bits < found->key >> place_bits))
                found = &p;
        });
        return found;
    }

    /// Watches for room in the socket while bytes wait for it. Called after each message to the peer.
    HERRING_SETUP void watch(peer_connection& p) noexcept {
        if (p.gone || p.link.wants_write() == p.watches_write) return;
        p.watches_write = p.link.wants_write();
        thread_.rewatch(p.link.socket(), p.key, p.watches_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    void close(peer_connection& p) noexcept {
        p.link.close();
        p.gone = true;
        any_gone_ = true;
    }
    HERRING_SETUP void reap() noexcept {
        if (!std::exchange(any_gone_, false)) return;
        for (auto& p : connections_)
            if (p && p->gone) p.reset();
    }

  private:
    static constexpr unsigned place_bits = 20;

    event_thread& thread_;
    std::vector<std::unique_ptr<peer_connection>> connections_;
    std::uint64_t serial_ = 0; // above 0 from the first connection on
    bool any_gone_ = false;
};

/// The listening sockets of an acceptor, watched under keys below `keys`.
///
/// Threads:  the acceptor's, once it runs.
/// Lifetime: the event thread, which is open before, outlives it.
class acceptor_listeners {
  public:
    static constexpr std::uint64_t keys = 16;

    explicit acceptor_listeners(event_thread& thread) noexcept : thread_(thread) {}
    acceptor_listeners(acceptor_listeners const&) = delete;
    acceptor_listeners& operator=(acceptor_listeners const&) = delete;

    /// Listens on all addresses of a "host:port".
    ///
    /// Errors: `bad_argument`: every interface, and no secret; `unreachable`.
    HERRING_SETUP void listen(std::string const& address, bool has_secret) {
        host_and_port const where = split_address(address, "listen", 0, "frontend");
        std::string why;
        auto const found = resolve(where.host, where.port, clock::now() + std::chrono::seconds(5), why);
        std::uint16_t port = where.port;
        for (endpoint at : found) {
            if (at.wildcard() && !has_secret)
                admission_roster::refuse_setting(
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
    /// Listens also on a unix socket with a random name, if the system has such sockets.
    HERRING_SETUP void listen_here() {
        char name[48];
        std::snprintf(name, sizeof name, "herring-ensemble-%016llx",
                      static_cast<unsigned long long>(random_bits()));
        local_ = listen_locally(name);
        if (local_.get() < 0) return;
        local_name_ = name;
        thread_.watch(local_.get(), local_key, EPOLLIN);
    }

    /// "host:port" of the first address.
    std::string const& address() const noexcept { return address_; }
    /// Name of the unix socket; empty: there is none.
    std::string const& local_name() const noexcept { return local_name_; }

    bool is_local(std::uint64_t key) const noexcept { return key == local_key; }
    /// −1: there is none.
    int socket(std::uint64_t key) const noexcept {
        return is_local(key) ? local_.get() : key < sockets_.size() ? sockets_[key].get() : -1;
    }

    /// Pauses for 100 ms, when the process is out of descriptors: a listener that stays readable would keep
    /// the thread awake.
    HERRING_SETUP void pause() noexcept {
        resume_at_ = clock::now() + std::chrono::milliseconds(100);
        for (descriptor const& each : sockets_) thread_.forget(each.get());
        if (local_.get() >= 0) thread_.forget(local_.get());
    }
    /// Ends a pause that is over. Returns when to call it again.
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

    event_thread& thread_;
    std::vector<descriptor> sockets_;
    descriptor local_{};
    std::string address_, local_name_;
    time_point resume_at_ = time_point::max();
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ACCEPTOR_SOCKETS_HPP

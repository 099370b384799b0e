// herring: the control connections of one process, and which rank is at the other end of each.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_CONNECTION_SET_HPP
#define HERRING_CONTROL_RENDEZVOUS_CONNECTION_SET_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/event_thread.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/sha256.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <utility>

#include <sys/epoll.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::rendezvous {

inline constexpr std::chrono::seconds pending_time{5}; // who has not said who it is by then is closed

/// Links come and go; a closed one's place is used again, and none ever moves.
class connection_set {
  public:
    /// `thread`: sleeps on them. `rank` of `ranks`: whose end this is.
    connection_set(event_thread& thread, int rank, int ranks)
        : thread_(thread), rank_(rank), places_(static_cast<std::size_t>(ranks)) {}
    ~connection_set() {
        for (connection const& c : connections_)
            if (c.open()) ::close(c.socket);
    }
    connection_set(connection_set const&) = delete;
    connection_set& operator=(connection_set const&) = delete;

    /// Closed ones too.
    std::list<connection>& all() noexcept { return connections_; }
    /// Rank → its connection, nullptr without; others than rank 0 have [0] only.
    fixed_array<connection*>& places() noexcept { return places_; }
    HERRING_SETUP bool any_open() const noexcept {
        for (connection const& c : connections_)
            if (c.open()) return true;
        return false;
    }

    /// What the thread calls it.
    static std::uint64_t key_of(connection const& c) noexcept { return c.serial; }

    HERRING_SETUP connection& open(int socket, std::string from, std::uint32_t what) {
        connection& c = free_place();
        c = {};
        c.socket = socket;
        c.serial = ++serial_;
        c.from = std::move(from);
        c.heard = clock::now();
        c.until = c.heard + pending_time;
        thread_.watch(socket, key_of(c), what);
        return c;
    }

    HERRING_SETUP void close(connection& c) noexcept {
        if (!c.open()) return;
        ::close(c.socket);
        c.socket = -1;
        for (connection*& place : places_)
            if (place == &c) place = nullptr;
    }

    /// Of what the thread was woken by; nullptr when it has been closed since.
    HERRING_SETUP connection* of_key(std::uint64_t key) noexcept {
        for (connection& c : connections_)
            if (c.still(key)) return &c;
        return nullptr;
    }

    HERRING_SETUP void send(connection& to, message_kind type, std::uint64_t sequence,
                            std::span<std::byte const> body) {
        send(to, type, sequence, body, to.keys ? sha256().update(body).finish() : sha256_digest{});
    }

    /// To every rank that this one is connected with: from rank 0 to all, from others to rank 0.
    HERRING_SETUP void send_all(message_kind type, std::uint64_t sequence, std::span<std::byte const> body) {
        sha256_digest digest{};
        bool made = false;
        for (connection* const place : places_) {
            if (place == nullptr) continue;
            if (place->keys && !std::exchange(made, true)) digest = sha256().update(body).finish();
            send(*place, type, sequence, body, digest);
        }
    }

    HERRING_SETUP void flush(connection& c) noexcept {
        bool const more = !c.write();
        if (more == c.wants_write) return;
        c.wants_write = more;
        thread_.rewatch(c.socket, key_of(c), more ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }

    /// Nothing is sent after what waits to be.
    void finish(connection& c) noexcept {
        c.finish = true;
        flush(c);
    }

  private:
    /// `digest`: of the body, where the connection has keys.
    HERRING_SETUP void send(connection& to, message_kind type, std::uint64_t sequence,
                            std::span<std::byte const> body, sha256_digest const& digest) {
        if (!to.open() || to.finish) return;
        if (to.seal) {
            to.append_sealed(type, static_cast<std::uint32_t>(rank_), sequence, body);
            return flush(to);
        }
        std::size_t const at = to.out.size();
        append_message(to.out, type, static_cast<std::uint32_t>(rank_), sequence, body);
        if (to.keys)
            to.out.append(to.keys->next(std::span<std::byte const>(to.out).subspan(at, head_bytes), digest));
        flush(to);
    }

    connection& free_place() {
        for (connection& c : connections_)
            if (!c.open()) return c;
        return connections_.emplace_back();
    }

    event_thread& thread_;
    int rank_;
    std::list<connection> connections_;
    fixed_array<connection*> places_;
    std::uint64_t serial_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_CONNECTION_SET_HPP

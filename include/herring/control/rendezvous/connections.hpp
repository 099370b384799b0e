// herring: the connections of one end of a star, and which rank is at the other end of each.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_CONNECTIONS_HPP
#define HERRING_CONTROL_RENDEZVOUS_CONNECTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/rendezvous/event_thread.hpp"
#include "herring/control/rendezvous/link.hpp"
#include "herring/control/wire/messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <utility>

#include <sys/epoll.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::star {

inline constexpr std::chrono::seconds pending_time{5}; // who has not said who it is by then is closed

/// Links come and go; a closed one's place is used again, and none ever moves.
class connections {
  public:
    /// `thread`: sleeps on them. `rank` of `ranks`: whose end this is.
    connections(control_thread& thread, int rank, int ranks)
        : thread_(thread), rank_(rank), places_(static_cast<std::size_t>(ranks)) {}
    ~connections() {
        for (link const& l : links_)
            if (l.open()) ::close(l.socket);
    }
    connections(connections const&) = delete;
    connections& operator=(connections const&) = delete;

    /// Closed ones too.
    std::list<link>& all() noexcept { return links_; }
    /// Rank → its link, nullptr without; others than rank 0 have [0] only.
    fixed_array<link*>& places() noexcept { return places_; }
    HERRING_SETUP bool any_open() const noexcept {
        for (link const& l : links_)
            if (l.open()) return true;
        return false;
    }

    /// What the thread calls it.
    static std::uint64_t key_of(link const& l) noexcept { return l.serial; }

    HERRING_SETUP link& open(int socket, std::string from, std::uint32_t what) {
        link& l = free_place();
        l = {};
        l.socket = socket;
        l.serial = ++serial_;
        l.from = std::move(from);
        l.heard = clock::now();
        l.until = l.heard + pending_time;
        thread_.watch(socket, key_of(l), what);
        return l;
    }

    HERRING_SETUP void close(link& l) noexcept {
        if (!l.open()) return;
        ::close(l.socket);
        l.socket = -1;
        for (link*& place : places_)
            if (place == &l) place = nullptr;
    }

    /// Of what the thread was woken by; nullptr when it has been closed since.
    HERRING_SETUP link* of_key(std::uint64_t key) noexcept {
        for (link& l : links_)
            if (l.still(key)) return &l;
        return nullptr;
    }

    HERRING_SETUP void send(link& to, message type, std::uint64_t sequence, std::span<std::byte const> body) {
        if (!to.open() || to.finish) return;
        append_message(to.out, type, static_cast<std::uint32_t>(rank_), sequence, body);
        flush(to);
    }

    /// To every rank that this one is connected with: from rank 0 to all, from others to rank 0.
    HERRING_SETUP void send_all(message type, std::uint64_t sequence, std::span<std::byte const> body) {
        for (link* const place : places_)
            if (place != nullptr) send(*place, type, sequence, body);
    }

    HERRING_SETUP void flush(link& l) noexcept {
        bool const more = !l.write();
        if (more == l.wants_write) return;
        l.wants_write = more;
        thread_.rewatch(l.socket, key_of(l), more ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }

    /// Nothing is sent after what waits to be.
    void finish(link& l) noexcept {
        l.finish = true;
        flush(l);
    }

  private:
    link& free_place() {
        for (link& l : links_)
            if (!l.open()) return l;
        return links_.emplace_back();
    }

    control_thread& thread_;
    int rank_;
    std::list<link> links_;
    fixed_array<link*> places_;
    std::uint64_t serial_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::star

#endif // HERRING_CONTROL_RENDEZVOUS_CONNECTIONS_HPP

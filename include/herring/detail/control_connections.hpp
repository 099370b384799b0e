// herring: the connections of one end of a star, and which rank is at the other end of each.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_CONTROL_CONNECTIONS_HPP
#define HERRING_DETAIL_CONTROL_CONNECTIONS_HPP

#include "herring/detail/control.hpp"
#include "herring/detail/control_link.hpp"
#include "herring/detail/control_thread.hpp"
#include "herring/detail/control_wire.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <unistd.h>

namespace herring::detail::star {

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
    std::deque<link>& all() noexcept { return links_; }
    /// Rank → its link, nullptr without; others than rank 0 have [0] only.
    std::vector<link*>& places() noexcept { return places_; }
    bool any_open() const noexcept {
        return std::any_of(links_.begin(), links_.end(), [](link const& l) { return l.open(); });
    }

    /// What the thread calls it.
    static std::uint64_t key_of(link const& l) noexcept {
        return (l.serial & 0x7FFFFFFFu) << 32 | static_cast<std::uint64_t>(l.slot);
    }

    link& open(int socket, std::string from, std::uint32_t what) {
        std::size_t slot = 0;
        while (slot < links_.size() && links_[slot].open()) ++slot;
        if (slot == links_.size()) links_.emplace_back();
        link& l = links_[slot];
        l = {};
        l.socket = socket;
        l.slot = static_cast<int>(slot);
        l.serial = ++serial_;
        l.from = std::move(from);
        l.heard = clock::now();
        l.until = l.heard + pending_time;
        thread_.watch(socket, key_of(l), what);
        return l;
    }

    void close(link& l) noexcept {
        if (!l.open()) return;
        ::close(l.socket);
        l.socket = -1;
        std::replace(places_.begin(), places_.end(), &l, static_cast<link*>(nullptr));
    }

    /// Of what the thread was woken by; nullptr when it has been closed since.
    link* of_key(std::uint64_t key) noexcept {
        std::size_t const slot = key & 0xFFFFFFFFu;
        return slot < links_.size() && links_[slot].open() && key_of(links_[slot]) == key ? &links_[slot]
                                                                                          : nullptr;
    }

    void send(link& to, message type, std::uint64_t sequence, std::span<std::byte const> body) {
        if (!to.open() || to.finish) return;
        append_message(to.out, type, static_cast<std::uint32_t>(rank_), sequence, body);
        flush(to);
    }

    /// To every rank that this one is connected with: from rank 0 to all, from others to rank 0.
    void send_all(message type, std::uint64_t sequence, std::span<std::byte const> body) {
        for (link* const place : places_)
            if (place != nullptr) send(*place, type, sequence, body);
    }

    void flush(link& l) noexcept {
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
    control_thread& thread_;
    int rank_;
    std::deque<link> links_;
    std::vector<link*> places_;
    std::uint64_t serial_ = 0;
};

} // namespace herring::detail::star

#endif // HERRING_DETAIL_CONTROL_CONNECTIONS_HPP

// herring: the control connections of one process, and which rank is at the other end of each.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_CONNECTION_SET_HPP
#define HERRING_CONTROL_RENDEZVOUS_CONNECTION_SET_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/control/survival/message_log.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/net/event_thread.hpp"

#include <algorithm>
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

inline constexpr std::chrono::seconds pending_time{5}; // of a connection, to identify itself

/// The state that this process and another share beyond one connection.
struct conversation {
    message_log log{};
    secret_key resumption_key{}; // of the handshake by which the rank was admitted, where there is a secret
    time_point resumed{};        // time when a connection last took the place of another
};

/// The connections. The entry of a closed connection is used again, and no entry ever moves.
///
/// Each rank has one connection in its place, over which messages go both ways. A candidate takes the place
/// (`replace`) once it has proved itself; until then its messages count for nothing.
class connection_set {
  public:
    /// `thread`: sleeps on the sockets. `rank` of `ranks`: this process.
    connection_set(event_thread& thread, int rank, int ranks)
        : thread_(thread), rank_(rank), places_(rank == 0 ? static_cast<std::size_t>(ranks) : 1),
          conversations_(places_.size()) {}
    ~connection_set() {
        for (connection const& c : connections_)
            if (c.open()) ::close(c.socket);
    }
    connection_set(connection_set const&) = delete;
    connection_set& operator=(connection_set const&) = delete;

    /// All entries, closed ones too.
    std::list<connection>& all() noexcept { return connections_; }
    /// Rank → its connection, nullptr without; ranks other than 0 have one entry, of rank 0.
    fixed_array<connection*>& places() noexcept { return places_; }
    /// The conversation with the rank of `c`, which is identified.
    conversation& with(connection const& c) noexcept { return with_rank(c.rank); }
    conversation& with_rank(int rank) noexcept { return conversations_[static_cast<std::size_t>(rank)]; }
    /// True if `c` is identified, and not in its rank's place.
    bool is_candidate(connection const& c) const noexcept {
        return c.rank >= 0 && places_[static_cast<std::size_t>(c.rank)] != &c;
    }
    /// True if a connection is open; candidates count only where their rank's place is broken.
    HERRING_SETUP bool any_open() const noexcept {
        for (connection const& c : connections_)
            if (c.open() && (!c.offered || places_[0] == nullptr || places_[0]->broken)) return true;
        return false;
    }
    /// Returns the number of candidates of which rank 0 may have put one in this rank's place.
    HERRING_SETUP int offered() const noexcept {
        int count = 0;
        for (connection const& c : connections_) count += c.open() && c.offered;
        return count;
    }

    /// The key of the connection for the thread: its entry is found without a search, for rank 0 has one for
    /// each rank, and an event for each heartbeat.
    static std::uint64_t key_of(connection const& c) noexcept { return c.serial << entry_bits | c.entry; }

    HERRING_SETUP connection& open(int socket, std::string from, std::uint32_t what) {
        if (free_ == nullptr) {
            free_ = &connections_.emplace_back();
            free_->entry = connections_.size() - 1;
            entries_.push(free_);
        }
        connection& c = *std::exchange(free_, free_->next_free);
        std::size_t const entry = c.entry;
        c = {};
        c.entry = entry;
        c.socket = socket;
        c.serial = ++serial_;
        c.from = std::move(from);
        c.heard = c.answered = c.delivered = clock::now();
        close_at(c, c.heard + pending_time);
        thread_.watch(socket, key_of(c), what);
        return c;
    }

    HERRING_SETUP void close(connection& c) noexcept {
        if (!c.open()) return;
        ::close(c.socket);
        c.socket = -1;
        c.next_free = std::exchange(free_, &c);
        connection*& place = places_[c.rank < 0 ? 0 : static_cast<std::size_t>(c.rank)];
        if (place == &c) place = nullptr;
    }

    /// Sets the time at which the connection has expired.
    void close_at(connection& c, time_point until) noexcept {
        c.until = until;
        next_expiry_ = std::min(next_expiry_, until);
    }
    /// Calls `expired(connection&)` for each open connection whose time has passed. Returns the time of the
    /// next one, or an earlier time.
    template <class Expired> HERRING_SETUP time_point expire(time_point now, Expired const& expired) {
        if (now < next_expiry_) return next_expiry_;
        next_expiry_ = time_point::max();
        for (connection& c : connections_) {
            if (!c.open()) continue;
            if (now >= c.until)
                expired(c);
            else
                next_expiry_ = std::min(next_expiry_, c.until);
        }
        return next_expiry_;
    }

    /// Makes the candidate `by` its rank's connection: earlier ones are closed. Its host has just been heard.
    HERRING_SETUP void replace(connection& by) noexcept {
        connection*& place = places_[static_cast<std::size_t>(by.rank)];
        time_point const now = clock::now();
        by.heard = by.spoke = by.regular = by.lossy_at = by.answered = by.delivered = now;
        by.unanswered = place->unanswered;
        by.shortest = shortest_of(*place);
        by.until = time_point::max();
        place = &by;
        with(by).resumed = now;
        for (connection& c : connections_)
            if (c.rank == by.rank && c.attempt < by.attempt) close(c);
    }

    /// Leaves the connection in its place, where it carries nothing any more.
    HERRING_SETUP void give_up(connection& c) noexcept {
        if (!c.broken) thread_.forget(c.socket);
        c.broken = true;
        c.out.clear();
        c.sent = 0;
    }

    /// Returns the shortest round trip of this connection and the earlier ones of its rank.
    HERRING_SETUP static std::chrono::microseconds shortest_of(connection const& c) noexcept {
        socket_report found;
        return found.read(c.socket) && found.shortest.count() != 0 ? std::min(c.shortest, found.shortest)
                                                                   : c.shortest;
    }

    /// Returns the connection of an event; nullptr if it has been closed since.
    HERRING_SETUP connection* of_key(std::uint64_t key) noexcept {
        std::uint64_t const entry = key & ((std::uint64_t{1} << entry_bits) - 1);
        bool const any = entry < connections_.size() && entries_.begin()[entry]->still(key >> entry_bits);
        return any ? entries_.begin()[entry] : nullptr;
    }

    HERRING_SETUP void send(connection& to, message_kind type, std::uint64_t sequence,
                            std::span<std::byte const> body) {
        if (is_numbered(type)) with(to).log.keep(type, sequence, body);
        transmit(to, type, sequence, body, to.keys ? sha256().update(body).finish() : sha256_digest{});
    }

    /// Sends to every rank that is connected: from rank 0 to all, or to those of `only`, from others to
    /// rank 0.
    HERRING_SETUP void send_all(message_kind type, std::uint64_t sequence, std::span<std::byte const> body,
                                std::span<int const> only = {}) {
        sha256_digest digest{};
        bool made = false;
        for (std::size_t i = 0, n = only.empty() ? places_.size() : only.size(); i < n; ++i) {
            connection* const place = places_[only.empty() ? i : static_cast<std::size_t>(only[i])];
            if (place == nullptr) continue;
            if (is_numbered(type)) with(*place).log.keep(type, sequence, body);
            if (place->keys && !std::exchange(made, true)) digest = sha256().update(body).finish();
            transmit(*place, type, sequence, body, digest);
        }
    }

    /// Sends a sign of life to every rank, with the number of its messages that this rank has taken.
    HERRING_SETUP void send_heartbeats(std::span<std::byte const> body) {
        for (connection* const place : places_)
            if (place != nullptr) send(*place, message_kind::heartbeat, with(*place).log.taken(), body);
    }

    /// Sends again the messages that the other end has not acknowledged, over the connection in its rank's
    /// place.
    HERRING_SETUP void repeat(connection& to) {
        with(to).log.repeat([&](message_log::message const& each) {
            transmit(to, each.type, each.sequence, each.body,
                     to.keys ? sha256().update(each.body).finish() : sha256_digest{});
        });
    }

    HERRING_SETUP void flush(connection& c) noexcept {
        if (c.broken) return;
        bool const more = !c.write();
        if (more == c.wants_write) return;
        c.wants_write = more;
        thread_.rewatch(c.socket, key_of(c), more ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }

    /// Sends nothing behind the bytes that wait.
    void finish(connection& c) noexcept {
        c.finish = true;
        flush(c);
    }

  private:
    /// `digest`: of the body, where the connection has keys.
    HERRING_SETUP void transmit(connection& to, message_kind type, std::uint64_t sequence,
                                std::span<std::byte const> body, sha256_digest const& digest) {
        if (!to.open() || to.finish || to.broken) return;
        to.append(type, static_cast<std::uint32_t>(rank_), sequence, body, digest, protocol_version);
        flush(to);
    }

    static constexpr int entry_bits = 21; // more than ranks and connections that are not identified

    event_thread& thread_;
    int rank_;
    std::list<connection> connections_;
    append_buffer<connection*> entries_; // by `connection::entry`
    connection* free_ = nullptr;         // the first entry that is closed
    time_point next_expiry_ = time_point::max();
    fixed_array<connection*> places_;
    fixed_array<conversation> conversations_; // by rank
    std::uint64_t serial_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_CONNECTION_SET_HPP

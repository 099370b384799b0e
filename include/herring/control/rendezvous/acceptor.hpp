// herring: rank 0's acceptor: challenges connections, admits ranks or refuses them; a rank may connect again.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_ACCEPTOR_HPP
#define HERRING_CONTROL_RENDEZVOUS_ACCEPTOR_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/endpoint.hpp"
#include "herring/control/rendezvous/registration.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/control/wire/racks.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/identity.hpp"
#include "herring/model/topology.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::rendezvous {

inline constexpr int pending_limit = 64; // connections that are not identified

class coordinator;

/// Accepts connections to rank 0. Each asks to join, is challenged, says hello, and is admitted or refused
/// (net/handshake.hpp). A pending connection takes one of `pending_limit` places for at most `pending_time`.
/// A rank that has been admitted may connect again; the newer connection takes the place of the older one.
///
/// Threads:  as `endpoint_base`.
class acceptor : public control_endpoint<coordinator> {
  protected:
    HERRING_SETUP explicit acceptor(settings&& from)
        : control_endpoint(std::move(from)), registration_(own_hello()) {}
    ~acceptor() = default;

    HERRING_SETUP void on_start() {
        local_address_ = local_end(settings_.listeners.at(0).get()).address();
        world_key_ = random_key();
        std::memcpy(salt_.data(), random_nonce().data(), salt_.size());
        watch_listeners();
        if (int const lease = settings_.lent.connection.get(); lease >= 0)
            thread_.watch(lease, lease_key, EPOLLIN);
    }

    /// Ends joining: not all ranks came in time.
    HERRING_SETUP void on_join_timeout() {
        if (settings_.not_lent.what != errc::ok) return end_joining(settings_.not_lent);
        end_joining(registration_.timed_out(registration::absent(connections_.places()),
                                            settings_.address_text, settings_.timeout, last_trouble_));
    }
    HERRING_SETUP void end_joining(failure const& why) {
        stage_ = stage::refused;
        why_refused_ = why;
        connections_.send_all(message_kind::refuse, 0, write_failure(why));
        lock_.notify_all();
    }

    /// Does the work that is due of listeners and joins; returns when more is due.
    HERRING_SETUP time_point look_after_joins(time_point now) {
        if (paused_ && now >= resume_at_) {
            paused_ = false;
            watch_listeners();
        }
        time_point const next = paused_ ? resume_at_ : time_point::max();
        if (stage_ != stage::joining) return next;
        if (now >= tick_at_) {
            tick_at_ = now + std::chrono::seconds(1);
            std::vector<int> const ranks = registration::absent(connections_.places());
            connections_.send_all(message_kind::still_waiting_for, 0,
                                  waiting_for{ranks.empty() ? 0 : ranks[0], rank_list(ranks)}.write());
        }
        return std::min(next, tick_at_);
    }

    // ---- connections --------------------------------------------------------------------------------------

    static constexpr std::uint64_t listener_key = std::uint64_t{0xFFFFFFFF} << 32,
                                   lease_key = listener_key + 0x10000;

    HERRING_SETUP void watch_listeners() noexcept {
        for (std::size_t i = 0; i < settings_.listeners.size(); ++i)
            thread_.watch(settings_.listeners[i].get(), listener_key + i, EPOLLIN);
    }

    /// True if the event was at a listener. `read(connection&)`: reads the bytes that have come in there.
    template <class Read> HERRING_SETUP bool on_listener(std::uint64_t key, Read const& read) {
        if (key < listener_key) return false;
        if (key == lease_key) on_lease();
        if (key - listener_key < settings_.listeners.size())
            accept(settings_.listeners[key - listener_key].get(), read);
        return true;
    }

    /// Handles news of the service that lends servers: any bytes say that it is about to end.
    HERRING_SETUP void on_lease() {
        std::byte news[256];
        int const lease = settings_.lent.connection.get();
        ssize_t const got = ::recv(lease, news, sizeof news, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got < 0 && is_timeout(errno)) return thread_.forget(lease); // the detector decides on its ranks
        if (got > 0)
            return settings_.on_drain(failure::make(
                errc::refused, 0, settings_.workers, "service",
                {"the service at ", settings_.lent.service, " is about to end: save, and leave"}));
        thread_.forget(lease);
        std::string const words =
            text({"the service at ", settings_.lent.service, ", which lent it, has ended, or took it back"});
        if (stage_ == stage::joining)
            return end_joining(failure::make(errc::peer_lost, 0, settings_.workers, "join", words));
        for (int r = settings_.workers; r < settings_.size && stage_ == stage::joined; ++r)
            if (!gone_[at(r)]) lose(r, errc::peer_lost, -1, words);
    }

    template <class Read> HERRING_SETUP void accept(int listener, Read const& read) {
        for (int i = 0; i < 16; ++i) {
            endpoint from;
            descriptor next = accept_next(listener, from);
            if (next.get() < 0) {
                if (!out_of_sockets(errno)) return;
                last_trouble_ = text({"accept: ", std::strerror(errno)});
                if (drop_oldest(read) || paused_) return;
                paused_ = true; // a listener that stays readable would keep the thread from sleeping
                resume_at_ = clock::now() + std::chrono::milliseconds(100);
                for (descriptor const& each : settings_.listeners) thread_.forget(each.get());
                return;
            }
            int pending = 0;
            for (connection const& c : connections_.all()) pending += c.pending();
            if (pending >= pending_limit) drop_oldest(read);
            tune(next.get(), settings_.times.detector.peer_timeout);
            connection& c = connections_.open(next.release(), from.text(), EPOLLIN);
            read(c); // its first message is often here already
        }
    }

    /// Makes room among pending connections: a rank sends its first message at once, so a silent connection
    /// is the least likely to be a rank, and the oldest silent one the least of all. A rank that is dropped
    /// connects again.
    template <class Read> HERRING_SETUP bool drop_oldest(Read const& read) {
        connection* oldest = nullptr;
        auto const less_likely = [](connection const& a, connection const& b) {
            if (a.challenge.empty() != b.challenge.empty()) return a.challenge.empty();
            return a.serial < b.serial;
        };
        for (connection& c : connections_.all())
            if (c.pending() && (oldest == nullptr || less_likely(c, *oldest))) oldest = &c;
        if (oldest == nullptr) return false;
        bool const was_silent = oldest->challenge.empty();
        read(*oldest);
        if (oldest->pending() && was_silent == oldest->challenge.empty()) on_unidentified(*oldest);
        return true;
    }

    void on_connected(connection&) noexcept {} // rank 0 connects to no rank

    HERRING_SETUP void on_unidentified(connection& c) noexcept {
        if (c.rank < 0 && !c.refused) registration_.count_unidentified();
        close_connection(c);
    }

    void on_expired(connection& c) noexcept { on_unidentified(c); }

    HERRING_SETUP void on_closed(connection& c, int why) {
        if (c.rank < 0 || connections_.is_candidate(c)) {
            on_unidentified(c);
        } else if (is_timeout(why) && stage_ == stage::joined && !leaving_ && !gone_[at(c.rank)]) {
            connections_.give_up(c); // the rank connects again, or is silent
        } else if (stage_ == stage::joining) {
            close_connection(c); // its place is free again
            last_trouble_ = text({"rank ", c.rank, " (", c.from, ") left before all were here"});
        } else {
            lost(c, why);
        }
    }

    // ---- joining ------------------------------------------------------------------------------------------

    HERRING_SETUP void on_newcomer(connection& from, head const& h, std::span<std::byte const> body) {
        if (h.version != protocol_version) return refuse(from, h.rank, registration::other_version(h));
        if (h.type == message_kind::knock && body.empty() && from.challenge.empty()) return challenge(from);
        if (h.type == message_kind::resume) return on_resume(from, h, body);
        hello said;
        proof shown{};
        std::span<std::byte const> words;
        if (h.type != message_kind::hello || from.challenge.empty() || !split_proof(body, words, shown) ||
            !said.read(words) || said.rank != h.rank)
            return on_unidentified(from);
        bool const lent = settings_.secret_of_lent && said.rank >= at(settings_.workers);
        std::optional<secrets> const& due = lent ? settings_.secret_of_lent : settings_.secret;
        bool const sealed = said.seals && settings_.seals != nullptr;
        secret_key shared;
        std::optional<handshake> const proven =
            due && (!sealed || from.exchange.agree(said.nonce, shared))
                ? proven_by(rank_names, *due, salt_, from.challenge, words, shown, sealed ? &shared : nullptr)
                : std::optional<handshake>();
        if (said.has_secret != settings_.secret.has_value() || (settings_.secret && !proven))
            return refuse(from, said.rank,
                          registration::other_secret(said.has_secret, settings_.secret.has_value()));
        if (said.seals != (settings_.seals != nullptr))
            return refuse(from, said.rank, registration::other_protection(said.seals), proven);
        refusal why;
        if (lent && said.role != role::server) return on_unidentified(from);
        if (registration_.refuses(said, connections_.places(), stage_ != stage::joining, why))
            return refuse(from, said.rank, why, proven);
        connection*& place = connections_.places()[said.rank];
        if (place != nullptr) close_connection(*place); // the same process, over a new connection
        place = &from;
        from.rank = static_cast<int>(said.rank);
        from.until = time_point::max();
        registration_.admit(said);
        admit(from, proven);
        auto const absent = static_cast<int>(registration::absent(connections_.places()).size());
        if (absent == 0) welcome();
        if (settings_.not_lent.what != errc::ok && absent == settings_.size - settings_.workers)
            end_joining(settings_.not_lent);
    }

    HERRING_SETUP void challenge(connection& to) {
        wire::challenge asks{salt_, {}, settings_.secret.has_value(), settings_.seals != nullptr};
        if (asks.seals) to.exchange = key_exchange(*settings_.seals);
        asks.nonce = to.exchange.begun() ? to.exchange.shown() : random_nonce();
        to.challenge = asks.write();
        connections_.send(to, message_kind::challenge, 0, to.challenge);
    }

    /// Proves that rank 0 has the secret too, and hands over the world's key. From here on messages have
    /// tags, or are sealed.
    HERRING_SETUP void admit(connection& to, std::optional<handshake> const& proven) {
        wire::admit told;
        std::memcpy(told.wrapped.data(), world_key_.bytes().data(), told.wrapped.size());
        if (proven) {
            proven->wrap(told.wrapped);
            connections_.with(to).resumption_key = proven->resumption_key();
        }
        admit(to, told, proven);
    }
    HERRING_SETUP void admit(connection& to, wire::admit& told, std::optional<handshake> const& proven) {
        if (proven) told.proof = proven->proof_of_acceptor(told.wrapped);
        connections_.send(to, message_kind::admit, 0, told.write());
        to.exchange = {};
        if (proven) to.protect(*proven, true, settings_.seals);
    }

    /// Takes a further connection of an admitted rank as candidate. Where anything is wrong with that, the
    /// connection in place stays as it is.
    HERRING_SETUP void on_resume(connection& from, head const& h, std::span<std::byte const> body) {
        resume said;
        proof shown{};
        std::span<std::byte const> words;
        if (stage_ != stage::joined || from.challenge.empty() || !split_proof(body, words, shown) ||
            !said.read(words) || said.rank != h.rank || said.rank == 0 || said.rank >= at(settings_.size) ||
            said.job != job_ || said.incarnation != registration_.hellos()[said.rank].incarnation)
            return on_unidentified(from);
        connection const* const place = connections_.places()[said.rank];
        if (place == nullptr || gone_[said.rank] || said.attempt <= place->attempt)
            return on_unidentified(from);
        // Where too many bytes are unacknowledged to carry on, connecting again counts as no sign of life:
        // each end finds the silence of the other.
        bool const carries_on = connections_.with(*place).log.has_all();
        if (failed() && !carries_on) return on_unidentified(from);
        if (clock::now() - connections_.with(*place).resumed < resume_step(settings_.times.detector))
            return on_unidentified(from);
        std::optional<handshake> proven;
        if (settings_.secret) {
            secret_key shared;
            bool const sealed = settings_.seals != nullptr;
            if (sealed && !from.exchange.agree(said.nonce, shared)) return on_unidentified(from);
            proven.emplace(rank_names, connections_.with(*place).resumption_key, from.challenge, words,
                           sealed ? &shared : nullptr);
            if (!equal_in_constant_time(proven->proof_of_dialler(), shown)) return on_unidentified(from);
        }
        for (connection& other : connections_.all()) { // a rank has one candidate: the newest
            if (!other.open() || other.rank != place->rank || &other == place) continue;
            if (other.attempt >= said.attempt) return on_unidentified(from);
            close_connection(other);
        }
        from.rank = place->rank;
        from.attempt = said.attempt;
        connections_.close_at(from, clock::now() + pending_time);
        if (carries_on) vouch(from.rank, clock::now());
        wire::admit told;
        admit(from, told, proven);
    }

    /// The rank has reported over `from` how many messages it has taken: `from` takes the place of its
    /// connection, and both ends carry on there.
    HERRING_SETUP void on_candidate(connection& from, head const& h, std::span<std::byte const> body) {
        message_log& log = connections_.with(from).log;
        if (h.type != message_kind::resumed || h.version != protocol_version || !body.empty() ||
            h.rank != static_cast<std::uint32_t>(from.rank) || gone_[at(from.rank)] ||
            connections_.places()[at(from.rank)] == nullptr || !log.has_all_after(h.sequence) ||
            !log.acknowledge(h.sequence))
            return on_unidentified(from);
        leave_to_detector(from.socket, settings_.times.detector.peer_timeout);
        connections_.replace(from);
        from.came = log.taken();
        connections_.send(from, message_kind::resumed, log.taken(), {});
        connections_.repeat(from);
    }

    /// Refuses a rank. With `proven` the rank can tell that rank 0 refuses it.
    HERRING_SETUP void refuse(connection& c, std::uint32_t rank, refusal const& why,
                              std::optional<handshake> const& proven = {}) {
        std::uint64_t const again = why.again ? 1 : 0;
        byte_buffer body = write_failure(registration_.count_refusal(rank, c.from, why));
        if (proven) body.append(proven->proof_of_refusal(refusal_front(again), body));
        connections_.send(c, message_kind::refuse, again, body);
        if (!c.open()) return;
        c.refused = true;
        connections_.finish(c);
    }

    /// All ranks are here: tells all of them the node, the machine, the rack and the role of each rank.
    HERRING_SETUP void welcome() {
        roles_ = fixed_array<herring::role>(at(settings_.size));
        fixed_array<std::string> nodes(at(settings_.size)), boots(nodes.size()), racks(nodes.size());
        for (std::size_t r = 0; r < nodes.size(); ++r) {
            nodes[r] = registration_.hellos()[r].node;
            boots[r] = registration_.hellos()[r].boot;
            bool const lent =
                settings_.secret_of_lent && r >= at(settings_.workers); // it adds nothing to a sum
            racks[r] = registration_.hellos()[lent ? 0 : r].rack;
            wire::make_printable(racks[r]); // errors show it
            roles_[r] = registration_.hellos()[r].role;
            rates_.push_back(registration_.hellos()[r].rate);
        }
        job_ = random_bits();
        std::span<std::string const> const named(racks.data(), racks.size());
        topology const map = topology::of_names({nodes.data(), nodes.size()}, {roles_.data(), roles_.size()});
        int wrong = 0;
        if (std::string const fault = wire::fault_of_racks(named, map, wrong); !fault.empty())
            return end_joining(failure::make(errc::mismatch, 0, wrong, "join", fault));
        node_ids_ = map.node_of;
        machine_ids_ = topology::of_names({boots.data(), boots.size()}).node_of;
        rack_ids_ = topology::of_names(named).node_of;
        wire::welcome told{job_,   settings_.times,   node_ids_,       machine_ids_,
                           rates_, std::move(roles_), settings_.links, rack_ids_};
        byte_buffer const body = told.write();
        roles_ = std::move(told.roles);
        stage_ = stage::joined;
        for (connection* const place : connections_.places()) {
            if (place == nullptr) continue;
            place->heard = clock::now(); // no heartbeat was expected until now
            leave_to_detector(place->socket, settings_.times.detector.peer_timeout);
        }
        connections_.send_all(message_kind::welcome, 0, body);
        lock_.notify_all();
    }

  private:
    wire::salt salt_{};
    registration registration_;
    time_point tick_at_{}; // when the next still_waiting_for is sent
    time_point resume_at_{};
    bool paused_ = false;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_ACCEPTOR_HPP

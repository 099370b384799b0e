// herring: the connection of a rank other than 0 to rank 0, from the first attempt to join on.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_LINK_TO_RANK_0_HPP
#define HERRING_CONTROL_RENDEZVOUS_LINK_TO_RANK_0_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/control.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/endpoint.hpp"
#include "herring/control/rendezvous/join_diagnosis.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/control/survival/redial_schedule.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <sys/epoll.h>

namespace HERRING_NAMESPACE::detail::rendezvous {

class participant;

/// The connection of a rank other than 0 to rank 0: finds rank 0, proves who is at either end, joins. Until
/// the welcome it connects again whenever the connection ends; from then on, where nothing gets through, it
/// opens another connection, which takes the place of the first.
///
/// Threads:  as `endpoint_base`.
class link_to_rank_0 : public control_endpoint<participant> {
  protected:
    HERRING_SETUP explicit link_to_rank_0(settings&& from)
        : control_endpoint(std::move(from)),
          diagnosis_(settings_.rank, settings_.address_text, settings_.timeout) {}
    ~link_to_rank_0() = default;

    static constexpr std::chrono::seconds connect_time{2};
    static constexpr std::chrono::milliseconds longest_backoff{500};
    static constexpr int most_offers = 4; // candidates that rank 0 may have put in this rank's place

    void on_start() noexcept {}

    /// Ends joining: rank 0 did not welcome this rank in time.
    HERRING_SETUP void on_join_timeout() {
        if (greeted_)
            wait_while_joining(settings_.deadline +
                               reply_time); // rank 0 may be about to name the missing ranks
        if (stage_ != stage::joining) return;
        stage_ = stage::refused;
        why_refused_ = diagnosis_.timed_out(greeted_, last_trouble_);
    }

    /// Connects, while it joins; returns when more is due.
    HERRING_SETUP time_point connect_when_due(time_point now) {
        if (stage_ != stage::joining || rank_0() != nullptr) return time_point::max();
        if (now >= retry_at_) connect();
        return rank_0() != nullptr ? rank_0()->until : retry_at_;
    }

    // ---- the connection -----------------------------------------------------------------------------------

    connection* rank_0() noexcept { return connections_.places()[0]; }

    bool on_event(std::uint64_t) noexcept { return false; } // no rank connects here

    HERRING_SETUP void connect() {
        std::size_t const which = next_address_++ % settings_.addresses.size();
        connection* const c = connect(settings_.addresses[which], connect_time);
        if (c == nullptr) {
            bool const tried_all = which + 1 == settings_.addresses.size();
            retry_in(tried_all ? backoff_ : std::chrono::milliseconds(0));
            return;
        }
        connections_.places()[0] = c;
    }

    /// Begins to connect. nullptr: it is refused at once.
    HERRING_SETUP connection* connect(endpoint const& to, clock::duration most) {
        descriptor made;
        if (!dial(made, to, settings_.times.detector.peer_timeout)) {
            last_trouble_ = text({to.text(), ": ", std::strerror(errno)});
            return nullptr;
        }
        connection& c = connections_.open(made.release(), to.text(), EPOLLOUT);
        c.connecting = true;
        connections_.close_at(c, clock::now() + most);
        return &c;
    }

    HERRING_SETUP void retry_in(std::chrono::milliseconds time) noexcept {
        retry_at_ = clock::now() + time;
        backoff_ = std::min(backoff_ * 3 / 2, longest_backoff);
    }

    /// Gives this connection up; another one will be tried.
    HERRING_SETUP void give_up_on(connection& c, std::initializer_list<text_part> trouble) noexcept {
        if (stage_ == stage::joined) return drop(c);
        try {
            last_trouble_ = text(trouble);
        } catch (std::bad_alloc const&) {
            last_trouble_.clear(); // the deadline's error does without it
        }
        close_connection(c);
        greeted_ = false;
        handshake_.reset();
        retry_in(backoff_);
    }

    HERRING_SETUP void on_connected(connection& c) {
        if (int const why = connect_error(c.socket); why != 0)
            return give_up_on(c, {c.from, ": ", std::strerror(why)});
        c.connecting = false;
        connections_.close_at(c, stage_ == stage::joined ? clock::now() + redial_.answer_time()
                                                         : time_point::max());
        if (stage_ == stage::joining) local_address_ = local_end(c.socket).address();
        thread_.rewatch(c.socket, connections_.key_of(c), EPOLLIN);
        greeted_ = true;
        connections_.send(c, message_kind::knock, 0, {});
    }

    HERRING_SETUP void on_unidentified(connection& c) {
        if (c.rank >= 0) return give_up_on(c, {c.from, " sent what rank 0 did not write"});
        diagnosis_.foreign(c.in);
        give_up_on(c, {"what listens on ", c.from, " is not a Herring rank 0"});
    }
    HERRING_SETUP void on_expired(connection& c) {
        if (!c.offered) return give_up_on(c, {"no answer from ", c.from});
        c.until = time_point::max(); // it stays, and may be in this rank's place by now
        if (candidate_ == &c) candidate_ = nullptr;
    }
    HERRING_SETUP void on_closed(connection& c, int why) {
        if (stage_ == stage::joining) return give_up_on(c, {c.from, " closed the connection", reason(why)});
        if (c.rank < 0 || connections_.is_candidate(c)) {
            bool const offered = c.offered;
            drop(c);
            // Rank 0 has closed all connections that it may have put in this rank's place.
            if (offered && rank_0() != nullptr && rank_0()->ended && connections_.offered() == 0)
                lost(*rank_0(), why);
        } else if (stage_ == stage::joined && !gone_[0] &&
                   (connections_.offered() != 0 || (is_timeout(why) && !leaving_))) {
            // Another connection may take its place, or has taken it at rank 0.
            c.ended = !is_timeout(why);
            connections_.give_up(c);
            redial_.at_once();
        } else {
            lost(c, why);
        }
    }

    // ---- another connection, where nothing gets through this one ---------------------------------------

    /// Connects anew when that is due. Where rank 0's host answers, and rank 0 says nothing, its process is
    /// stopped: no connection changes that.
    HERRING_SETUP time_point look_after_connection(time_point now) {
        connection const* const place = rank_0();
        if (place == nullptr || gone_[0] || leaving_ || candidate_ != nullptr || redial_.pauses(now) ||
            !connections_.with(*place).log.has_all())
            return time_point::max(); // a heartbeat looks again
        clock::duration const nothing_in = now - std::max(place->spoke, place->answered);
        clock::duration const quiet = std::max(nothing_in, now - place->delivered);
        if (!place->broken && !redial_.suspects(quiet)) return time_point::max();
        socket_report found;
        if (!found.read(place->socket)) found = {};
        bool const due = redial_.due(quiet, silence(*place, now),
                                     2 * clock::duration(found.round_trip) + queueing(*place, found));
        if ((!place->broken && !due) || connections_.offered() >= most_offers) return time_point::max();
        candidate_ = connect(settings_.addresses[(next_address_ - 1) % settings_.addresses.size()],
                             redial_.attempt(now));
        if (candidate_ == nullptr) return redial_.next();
        candidate_->attempt = redial_.number();
        return candidate_->until;
    }

    /// Closes a candidate.
    HERRING_SETUP void drop(connection& c) noexcept {
        close_connection(c);
        if (candidate_ != &c) return;
        candidate_ = nullptr;
        handshake_.reset();
    }

    /// Handles a message over a connection that is not in place.
    HERRING_SETUP void on_candidate(connection& from, head const& h, std::span<std::byte const> body) {
        if (h.type == message_kind::resumed && from.offered && body.empty())
            return carry_on(from, h.sequence);
        if (&from != candidate_) return drop(from);
        if (h.type == message_kind::challenge && from.challenge.empty()) return prove(from, body);
        if (h.type == message_kind::admit && from.rank < 0) return offer(from, body);
        drop(from);
    }

    HERRING_SETUP void prove(connection& to, std::span<std::byte const> body) {
        wire::challenge asked;
        if (!asked.read(body) || asked.has_secret != settings_.secret.has_value() ||
            asked.seals != (settings_.seals != nullptr))
            return drop(to);
        to.challenge.append(body);
        resume mine;
        mine.rank = static_cast<std::uint32_t>(settings_.rank);
        mine.incarnation = incarnation_;
        mine.job = job_;
        mine.attempt = to.attempt;
        if (!reply(to, asked, message_kind::resume, mine, asked.seals,
                   asked.has_secret ? &connections_.with_rank(0).resumption_key : nullptr))
            drop(to);
    }

    /// Rank 0 has proved itself: from here on it may put this connection in place.
    HERRING_SETUP void offer(connection& to, std::span<std::byte const> body) {
        wire::admit told;
        if (!told.read(body) || to.challenge.empty() || !connections_.with_rank(0).log.has_all() ||
            settings_.secret.has_value() != handshake_.begun() ||
            (handshake_.begun() && !handshake_.proves(told.proof, told.wrapped)))
            return drop(to);
        if (handshake_.begun()) to.protect(handshake_.keys(), false, settings_.seals);
        handshake_.reset();
        leave_to_detector(to.socket, settings_.times.detector.peer_timeout);
        vouch(0, clock::now());
        to.rank = 0;
        to.offered = true;
        to.came = connections_.with(to).log.taken();
        connections_.send(to, message_kind::resumed, to.came, {});
    }

    /// Rank 0 has put the connection in place, and has taken so many messages: the others follow over this
    /// one.
    HERRING_SETUP void carry_on(connection& over, std::uint64_t count) {
        if (rank_0() == nullptr) return drop(over);
        message_log& log = connections_.with(over).log;
        if (!log.acknowledge(count))
            return protocol_error(over, "an acknowledgement of more messages than there are");
        if (!log.has_all())
            return lose(
                0, errc::peer_lost, settings_.rank,
                "its control connection was silent, and over a MiB that it was sent has no answer: too "
                "much for a new connection");
        over.offered = false;
        connections_.replace(over);
        if (candidate_ == &over) candidate_ = nullptr;
        redial_.carried_on(over.heard);
        connections_.repeat(over);
        if (leaving_) connections_.finish(over);
    }

    // ---- joining ------------------------------------------------------------------------------------------

    HERRING_SETUP void on_message_while_joining(connection& from, head const& h,
                                                std::span<std::byte const> body) {
        switch (h.type) {
        case message_kind::refuse:
            return refused(from, h, body);
        case message_kind::challenge:
            return challenged(from, body);
        case message_kind::admit:
            return admitted(from, body);
        case message_kind::still_waiting_for:
            if (from.rank < 0)
                return protocol_error(from, "what only rank 0 says, before it has proved itself");
            if (!diagnosis_.missing().read(body, at(settings_.size)))
                protocol_error(from, "a list of ranks that cannot be read");
            return;
        case message_kind::welcome:
            if (from.rank < 0)
                return protocol_error(from, "what only rank 0 says, before it has proved itself");
            return welcomed(from, body);
        default:
            return protocol_error(from, "a message that rank 0 never sends before the welcome");
        }
    }

    /// Before the welcome, the process at rank 0's address need not be rank 0: the rank connects again.
    HERRING_SETUP void protocol_error(connection& from, std::string_view what) {
        if (stage_ == stage::joined && &from != rank_0() && !from.offered) return drop(from);
        if (stage_ != stage::joining) return endpoint_base::protocol_error(from, what);
        give_up_on(from, {from.from, " sent ", what});
    }

    /// Proves that this rank has the secret, if the other end says that it has one.
    HERRING_SETUP void challenged(connection& from, std::span<std::byte const> body) {
        wire::challenge asked;
        if (!from.challenge.empty() || !asked.read(body))
            return protocol_error(from, "a challenge that cannot be read");
        from.challenge.append(body);
        hello const mine = own_hello();
        std::optional<secret_key> by;
        if (settings_.secret && asked.has_secret) by = settings_.secret->proves.key(asked.salt);
        // Only where both seal: else rank 0, which hears that they differ, refuses with a proof.
        if (!reply(from, asked, message_kind::hello, mine, mine.seals && asked.seals, by ? &*by : nullptr))
            protocol_error(from, "a challenge whose public key leads to no key");
    }

    /// Replies to a challenge by `mine`, with a proof under a key, if there is one. False: the reply cannot
    /// be sealed.
    template <class Words>
    HERRING_SETUP bool reply(connection& to, wire::challenge const& asked, message_kind type,
                             Words const& mine, bool sealed, secret_key const* by) {
        byte_buffer words;
        if (!handshake_.reply(rank_names, words, to.challenge, asked, mine,
                              sealed ? settings_.seals : nullptr, by))
            return false;
        connections_.send(to, type, 0, words);
        return true;
    }

    /// Takes the admission of rank 0, which proves that it has the secret too.
    HERRING_SETUP void admitted(connection& from, std::span<std::byte const> body) {
        wire::admit told;
        wire::challenge asked;
        if (from.rank >= 0 || !asked.read(from.challenge) || !told.read(body))
            return protocol_error(from, "an admission that cannot be read");
        if (asked.seals != (settings_.seals != nullptr))
            return protocol_error(from, "an admission, though only one of both seals control connections");
        if (settings_.secret && !handshake_.proves(told.proof, told.wrapped)) {
            diagnosis_.unproven();
            return give_up_on(from, {from.from, " did not prove that it has the secret"});
        }
        from.rank = 0;
        if (handshake_.begun()) {
            handshake_.keys().wrap(told.wrapped);
            from.protect(handshake_.keys(), false, settings_.seals);
            connections_.with(from).resumption_key = handshake_.keys().resumption_key();
        }
        handshake_.reset();
        world_key_ = secret_key(told.wrapped);
        erase(told.wrapped.data(), told.wrapped.size());
    }

    HERRING_SETUP void refused(connection& from, head const& h, std::span<std::byte const> body) {
        constexpr std::size_t any = std::numeric_limits<int>::max(); // this rank's number may be wrong
        std::span<std::byte const> words = body;
        bool const proven = handshake_.proves_refusal(refusal_front(h.sequence), body, words);
        bool const verified = proven || from.rank >= 0 || !settings_.secret;
        failure said;
        if (!read_failure(words, any, said))
            said = failure::make(errc::refused, settings_.rank, 0, "join",
                                 "refused by rank 0, in words of another version");
        said.reporter = settings_.rank;
        if (said.peer >= settings_.size) said.peer = 0;
        if (h.sequence == 1) return give_up_on(from, {said.text});
        if (!verified && !diagnosis_.believes(said, clock::now()))
            return give_up_on(from, {diagnosis_.unverified().text});
        why_refused_ = verified ? said : diagnosis_.unverified();
        stage_ = stage::refused;
        lock_.notify_all();
    }

    HERRING_SETUP void welcomed(connection& from, std::span<std::byte const> body) {
        wire::welcome told;
        if (char const* const wrong = told.read(body, at(settings_.size))) return protocol_error(from, wrong);
        job_ = told.job;
        settings_.times = told.times;
        settings_.links = told.links;
        node_ids_ = std::move(told.nodes);
        machine_ids_ = std::move(told.machines);
        rack_ids_ = std::move(told.racks);
        roles_ = std::move(told.roles);
        rates_ = std::move(told.rates);
        tune(from.socket, settings_.times.detector.peer_timeout);
        leave_to_detector(from.socket, settings_.times.detector.peer_timeout);
        from.answered = from.delivered = clock::now();
        redial_.begin(settings_.times.detector);
        stage_ = stage::joined;
        lock_.notify_all();
    }

  private:
    join_diagnosis diagnosis_;
    bool greeted_ = false; // rank 0 has this rank's hello
    time_point retry_at_{};
    std::chrono::milliseconds backoff_{10};
    std::size_t next_address_ = 0;
    dialler_handshake handshake_;     // from the hello, or the resume, to the admission
    connection* candidate_ = nullptr; // under way
    redial_schedule redial_;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_LINK_TO_RANK_0_HPP

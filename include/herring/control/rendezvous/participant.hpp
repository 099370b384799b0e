// herring: the end of a rank other than 0: finds rank 0, joins, takes part in its collectives.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP
#define HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP

#include "herring/base/address.hpp"
#include "herring/base/config.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/departure.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/rendezvous/endpoint.hpp"
#include "herring/control/rendezvous/registration.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/wire/handshake.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/error.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// A rank other than 0. It has one connection, to rank 0. Until the welcome it connects again whenever that ends; from then on, where
/// nothing gets through it, it makes another one, which takes its place.
class participant final : public control_endpoint<participant> {
  public:
    HERRING_SETUP explicit participant(settings&& from) : control_endpoint(std::move(from)) {}
    ~participant() { stop(); }

  private:
    friend class control_endpoint<participant>;

    static constexpr std::chrono::seconds connect_time{2};
    static constexpr std::chrono::milliseconds longest_backoff{500};
    static constexpr int least_unverified = 3;
    static constexpr int most_offers = 4; // candidates that rank 0 may have put in this rank's place
    static constexpr std::chrono::seconds unverified_time{2};

    void on_start() noexcept {}

    /// Rank 0 did not welcome this rank in time.
    HERRING_SETUP void on_join_timeout() {
        if (greeted_)
            wait_while_joining(settings_.deadline + reply_time); // rank 0 may be about to name who is missing
        if (stage_ != stage::joining) return;
        stage_ = stage::refused;
        if (!greeted_ && unverified_.what != errc::ok) {
            why_refused_ = unverified_;
            return;
        }
        why_refused_ = greeted_ && !missing_.who.empty()
                           ? failure::make(errc::timeout, settings_.rank, missing_.rank, "join",
                                           registration::not_joined(missing_.who, settings_.address_text,
                                                                    settings_.timeout))
                           : failure::make(errc::timeout, settings_.rank, 0, "join", no_answer());
    }

    HERRING_SETUP std::string no_answer() const {
        if (!foreign_.empty())
            return text({"what answers on ", settings_.address_text, " is not Herring: it sent ", foreign_,
                         "; another program has that port: choose another one, the same on every rank"});
        if (unproven_)
            return text(
                {"what answers on ", settings_.address_text,
                 " has not proved that it has this rank's secret, so it is not this job's rank 0; see which "
                 "program has that port (ss -ltnp on its machine), and that the secret is rank 0's"});
        if (greeted_)
            return text({"what listens on ", settings_.address_text,
                         " takes connections and does not answer within ", duration_text(settings_.timeout),
                         "; see which program has that port (ss -ltnp on its machine): if it is rank 0, it "
                         "is stopped"});
        return text({"no answer from rank 0 on ", settings_.address_text, " within ",
                     duration_text(settings_.timeout), last_trouble_.empty() ? "" : " (last: ", last_trouble_,
                     last_trouble_.empty() ? "" : ")",
                     "; see whether rank 0 runs, whether the address is one of its machine and whether a "
                     "firewall is between"});
    }

    /// Does what is due at `now`; returns when something is due next.
    HERRING_SETUP time_point run_due(time_point now) {
        if (stage_ == stage::joined)
            return failed() ? time_point::max()
                            : std::min(look_after_probes(now), look_after_connection(now));
        if (stage_ != stage::joining || rank_0() != nullptr) return time_point::max();
        if (now >= retry_at_) connect();
        return rank_0() != nullptr ? rank_0()->until : retry_at_;
    }

    void on_own_stall(clock::duration late) noexcept {
        if (suspected_at_ != time_point{}) suspected_at_ += late;
    }

    // ---- the connection -----------------------------------------------------------------------------------

    connection* rank_0() noexcept { return connections_.places()[0]; }

    bool on_event(std::uint64_t) noexcept { return false; } // nobody connects here

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

    /// nullptr: it is refused at once.
    HERRING_SETUP connection* connect(endpoint const& to, clock::duration most) {
        int const socket = ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int rc = socket < 0 ? -1 : 0;
        if (rc == 0) {
            tune(socket, settings_.times.detector.peer_timeout);
            rc = ::connect(socket, to.get(), to.size);
        }
        if (rc != 0 && errno != EINPROGRESS) {
            last_trouble_ = text({to.text(), ": ", std::strerror(errno)});
            if (socket >= 0) ::close(socket);
            return nullptr;
        }
        connection& c = connections_.open(socket, to.text(), EPOLLOUT);
        c.connecting = true;
        c.until = clock::now() + most;
        return &c;
    }

    HERRING_SETUP void retry_in(std::chrono::milliseconds time) noexcept {
        retry_at_ = clock::now() + time;
        backoff_ = std::min(backoff_ * 3 / 2, longest_backoff);
    }

    /// Not over this connection; over another.
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
        int why = 0;
        socklen_t size = sizeof why;
        ::getsockopt(c.socket, SOL_SOCKET, SO_ERROR, &why, &size);
        endpoint const here = local_end(c.socket);
        // A socket that connects to its own port on loopback meets itself when nobody listens there.
        if (why == 0 && here.text() == c.from) why = ECONNREFUSED;
        if (why != 0) return give_up_on(c, {c.from, ": ", std::strerror(why)});
        c.connecting = false;
        c.until = stage_ == stage::joined ? clock::now() + 4 * resume_step(settings_.times.detector) + delay_
                                          : time_point::max();
        if (stage_ == stage::joining) local_address_ = here.address();
        thread_.rewatch(c.socket, connections_.key_of(c), EPOLLIN);
        greeted_ = true;
        connections_.send(c, message_kind::knock, 0, {});
    }

    HERRING_SETUP void on_unidentified(connection& c) {
        if (c.rank >= 0) return give_up_on(c, {c.from, " sent what rank 0 did not write"});
        foreign_.clear();
        for (std::byte const b : c.in) {
            char const letter = static_cast<char>(b);
            if (letter < ' ' || letter > '~' || foreign_.size() == 60) break;
            foreign_ += letter;
        }
        foreign_ =
            foreign_.empty() ? std::string("bytes that are no control message") : text({"'", foreign_, "'"});
        give_up_on(c, {"what listens on ", c.from, " is not a Herring rank 0"});
    }
    HERRING_SETUP void on_expired(connection& c) {
        if (!c.offered) return give_up_on(c, {"no answer from ", c.from});
        c.until = time_point::max(); // stays: it may be in this rank's place by now
        if (candidate_ == &c) candidate_ = nullptr;
    }
    HERRING_SETUP void on_closed(connection& c, int why) {
        if (stage_ == stage::joining) return give_up_on(c, {c.from, " closed the connection", reason(why)});
        if (c.rank < 0 || connections_.is_candidate(c)) {
            bool const offered = c.offered;
            drop(c);
            // Rank 0 has closed all that it may have had in this rank's place.
            if (offered && rank_0() != nullptr && rank_0()->ended && connections_.offered() == 0)
                lost(*rank_0(), why);
        } else if (may_carry_on(why)) {
            c.ended = !is_timeout(why);
            connections_.give_up(c);
            dial_at_ = {};
        } else {
            lost(c, why);
        }
    }
    /// The connection to rank 0 has ended, for that reason: whether another one may take its place, or has taken it at rank 0.
    HERRING_SETUP bool may_carry_on(int why) noexcept {
        return stage_ == stage::joined && !left_[0] &&
               (connections_.offered() != 0 || (is_timeout(why) && !leaving_));
    }

    // ---- another connection, where nothing gets through this one --------------------------------------------

    /// Connects anew once nothing has got through one way or the other for 2 s, and for as long as queues take; for `peer_timeout`,
    /// where rank 0's data comes in meanwhile: then nobody is about to be given up. Where rank 0's host answers, and rank 0 says
    /// nothing, its process is stopped: no connection changes that.
    HERRING_SETUP time_point look_after_connection(time_point now) {
        connection const* const place = rank_0();
        if (place == nullptr || left_[0] || leaving_ || candidate_ != nullptr || now < dial_at_ ||
            !connections_.with(*place).log.has_all())
            return time_point::max(); // a heartbeat looks again
        clock::duration const nothing_in = now - std::max(place->spoke, place->answered);
        clock::duration const quiet = std::max(nothing_in, now - place->delivered);
        clock::duration const most = hopeless_after(settings_.times.detector);
        if (!place->broken && quiet < most) return time_point::max();
        socket_report found;
        if (!found.read(place->socket)) found = {};
        delay_ = 2 * clock::duration(found.round_trip) + queueing(*place, found);
        bool const heard = silence(*place, now) < most;
        clock::duration const patience =
            heard ? clock::duration(settings_.times.detector.peer_timeout) : most;
        if ((!place->broken && quiet < patience + delay_) || connections_.offered() >= most_offers)
            return time_point::max();
        candidate_ = connect(settings_.addresses[(next_address_ - 1) % settings_.addresses.size()],
                             dial_time_ + delay_);
        // The first packet of a connection is sent again by the kernel, so the next attempt may take longer.
        dial_at_ = now + dial_time_;
        dial_time_ = std::min<clock::duration>(2 * dial_time_, 8 * resume_step(settings_.times.detector));
        if (candidate_ == nullptr) return dial_at_;
        candidate_->attempt = ++attempts_;
        return candidate_->until;
    }

    /// Not over this one.
    HERRING_SETUP void drop(connection& c) noexcept {
        close_connection(c);
        if (candidate_ != &c) return;
        candidate_ = nullptr;
        handshake_.reset();
    }

    /// A message over a connection that is not in place.
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
        if (!asked.read(body) || asked.has_secret != secrets_.any() ||
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
            secrets_.any() != handshake_.has_value() ||
            (handshake_ && !equal_in_constant_time(told.proof, handshake_->proof_of_rank_0(told.wrapped))))
            return drop(to);
        if (handshake_) to.protect(*handshake_, false, settings_.seals);
        handshake_.reset();
        leave_to_detector(to.socket, settings_.times.detector.peer_timeout);
        vouch(0, clock::now());
        to.rank = 0;
        to.offered = true;
        to.came = connections_.with(to).log.taken();
        connections_.send(to, message_kind::resumed, to.came, {});
    }

    /// Rank 0 has put it in place, and has taken so many messages: the others follow over this one.
    HERRING_SETUP void carry_on(connection& over, std::uint64_t count) {
        if (rank_0() == nullptr) return drop(over);
        message_log& log = connections_.with(over).log;
        if (!log.acknowledge(count))
            return protocol_error(over, "an acknowledgement of more messages than there are");
        if (!log.has_all())
            return set_failure(
                failure::make(errc::peer_lost, settings_.rank, 0, operation_or_control(),
                              {"its control connection was silent, and over a MiB that it was sent "
                               "has no answer: too much for a new connection"}));
        over.offered = false;
        connections_.replace(over);
        if (candidate_ == &over) candidate_ = nullptr;
        dial_at_ = over.heard + resume_step(settings_.times.detector);
        dial_time_ = resume_step(settings_.times.detector);
        connections_.repeat(over);
        if (leaving_) connections_.finish(over);
    }

    // ---- messages of rank 0 ---------------------------------------------------------------------------------

    HERRING_SETUP void on_message(connection& from, head const& h, std::span<std::byte const> body) {
        if (h.version != protocol_version && h.type != message_kind::refuse)
            return protocol_error(from, text({"version ", h.version, " of the protocol"}));
        if (h.rank != 0) return protocol_error(from, "a message in the name of another rank");
        if (stage_ == stage::joined && &from != rank_0()) return on_candidate(from, h, body);
        if (stage_ == stage::refused) return; // it says goodbye
        if (stage_ == stage::joining) return on_message_while_joining(from, h, body);
        switch (h.type) {
        case message_kind::collective_result:
            if (failed()) return;
            if (!in_collective_ || h.sequence != done_ + 1)
                return protocol_error(from, "the end of a collective that this rank did not begin");
            result_.clear();
            result_.append(body);
            done_ = h.sequence;
            in_collective_ = false;
            lock_.notify_all();
            return;
        case message_kind::fail:
            return on_failure_message(from, body);
        case message_kind::leave:
            has_left(from, 0);
            if (in_collective_)
                set_failure(departure(settings_.rank, 0, operation_or_control(), "its world was destroyed"));
            if (suspected_at_ != time_point{}) set_failure(suspected_); // there will be no verdict
            return;
        case message_kind::heartbeat:
            return on_acknowledgement(from, h);
        case message_kind::probe:
            if (h.sequence > std::numeric_limits<std::uint32_t>::max())
                return protocol_error(from, "a probe with a number that none has");
            probe_.store(static_cast<std::uint32_t>(h.sequence), std::memory_order_release);
            probed_ = true;
            answer();
            return;
        default:
            return protocol_error(from, "a message that rank 0 never sends");
        }
    }

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
            if (!missing_.read(body, at(settings_.size)))
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

    /// Before the welcome, what answers at rank 0's address need not be rank 0: it is tried again.
    HERRING_SETUP void protocol_error(connection& from, std::string_view what) {
        if (stage_ == stage::joined && &from != rank_0() && !from.offered) return drop(from);
        if (stage_ != stage::joining) return endpoint_base::protocol_error(from, what);
        give_up_on(from, {from.from, " sent ", what});
    }

    /// Proves that this rank has the secret, if who asks says that it has one.
    HERRING_SETUP void challenged(connection& from, std::span<std::byte const> body) {
        wire::challenge asked;
        if (!from.challenge.empty() || !asked.read(body))
            return protocol_error(from, "a challenge that cannot be read");
        from.challenge.append(body);
        hello const mine = own_hello();
        // Only where both seal: else rank 0, which hears that they differ, refuses with a proof.
        if (!reply(from, asked, message_kind::hello, mine, mine.seals && asked.seals,
                   secrets_.any() && asked.has_secret ? &secrets_.proves(asked.salt) : nullptr))
            protocol_error(from, "a challenge whose public key leads to no key");
    }

    /// Replies to a challenge by `mine`, with a fresh nonce and a proof under a key, if there is one. False: it cannot be sealed.
    template <class Words>
    HERRING_SETUP bool reply(connection& to, wire::challenge const& asked, message_kind type, Words mine,
                             bool sealed, secret_key const* by) {
        mine.nonce = random_nonce();
        secret_key shared;
        if (sealed) {
            key_exchange const exchange(*settings_.seals);
            if (!exchange.agree(asked.nonce, shared)) return false;
            mine.nonce = exchange.shown();
        }
        byte_buffer words = mine.write();
        proof shown{};
        if (by != nullptr) {
            handshake_.emplace(*by, to.challenge, words, sealed ? &shared : nullptr);
            shown = handshake_->proof_of_rank();
        }
        words.append(shown);
        connections_.send(to, type, 0, words);
        return true;
    }

    /// Rank 0 takes this rank, and proves that it has the secret too.
    HERRING_SETUP void admitted(connection& from, std::span<std::byte const> body) {
        wire::admit told;
        wire::challenge asked;
        if (from.rank >= 0 || !asked.read(from.challenge) || !told.read(body))
            return protocol_error(from, "an admission that cannot be read");
        if (asked.seals != (settings_.seals != nullptr))
            return protocol_error(from, "an admission, though only one of both seals control connections");
        if (secrets_.any() &&
            (!handshake_ || !equal_in_constant_time(told.proof, handshake_->proof_of_rank_0(told.wrapped)))) {
            unproven_ = true;
            return give_up_on(from, {from.from, " did not prove that it has the secret"});
        }
        from.rank = 0;
        if (handshake_) {
            handshake_->wrap(told.wrapped);
            from.protect(*handshake_, false, settings_.seals);
            connections_.with(from).resumption_key = handshake_->resumption_key();
        }
        handshake_.reset();
        world_key_ = secret_key(told.wrapped);
        erase(told.wrapped.data(), told.wrapped.size());
    }

    HERRING_SETUP void refused(connection& from, head const& h, std::span<std::byte const> body) {
        constexpr std::size_t any =
            std::numeric_limits<int>::max(); // this rank's number may be what is wrong
        std::span<std::byte const> words = body;
        proof shown{};
        bool verified = from.rank >= 0 || !secrets_.any();
        if (std::span<std::byte const> before;
            handshake_ && split_proof(body, before, shown) &&
            equal_in_constant_time(shown, handshake_->proof_of_refusal(h.sequence, before))) {
            verified = true;
            words = before;
        }
        failure said;
        if (!read_failure(words, any, said))
            said = failure::make(errc::refused, settings_.rank, 0, "join",
                                 "refused by rank 0, in words of another version");
        said.reporter = settings_.rank;
        if (said.peer >= settings_.size) said.peer = 0;
        if (h.sequence == 1) return give_up_on(from, {said.text});
        if (!verified && !believed(said)) return give_up_on(from, {unverified_.text});
        why_refused_ = verified ? said : unverified_;
        stage_ = stage::refused;
        lock_.notify_all();
    }

    /// A refusal by who has not proved that it is rank 0. Anyone could say that, so it ends nothing; but a rank whose secret is
    /// wrong hears nothing else. It is believed, and quoted, once it was said three times, over two seconds.
    HERRING_SETUP bool believed(failure const& said) {
        time_point const now = clock::now();
        failure const quoted = failure::make(
            said.what, settings_.rank, 0, "join",
            {"what answers on ", settings_.address_text, " says, unverified: ", std::string_view(said.text)});
        if (std::strcmp(quoted.text, unverified_.text) != 0) {
            unverified_ = quoted;
            times_said_ = 0;
            first_said_ = now;
        }
        return ++times_said_ >= least_unverified && now - first_said_ >= unverified_time;
    }

    HERRING_SETUP void welcomed(connection& from, std::span<std::byte const> body) {
        wire::welcome told;
        if (char const* const wrong = told.read(body, at(settings_.size))) return protocol_error(from, wrong);
        job_ = told.job;
        settings_.times = told.times;
        node_ids_ = std::move(told.nodes);
        machine_ids_ = std::move(told.machines);
        roles_ = std::move(told.roles);
        rates_ = std::move(told.rates);
        tune(from.socket, settings_.times.detector.peer_timeout);
        leave_to_detector(from.socket, settings_.times.detector.peer_timeout);
        from.answered = from.delivered = clock::now();
        dial_time_ = resume_step(settings_.times.detector);
        stage_ = stage::joined;
        lock_.notify_all();
    }

    // ---- collectives --------------------------------------------------------------------------------------

    HERRING_SETUP void run_collective(message_kind kind, std::uint64_t sequence,
                                      std::span<std::byte const> mine, time_point deadline) {
        if (left_[0])
            return set_failure(
                departure(settings_.rank, 0, operation_or_control(), "its world was destroyed"));
        time_point const started = clock::now();
        in_collective_ = true;
        connections_.send_all(kind, sequence, mine); // that is, to rank 0
        if (!wait_until_done(sequence, deadline)) {
            auto const late = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - started);
            connections_.send_all(message_kind::deadline_passed, sequence, write_wait(late));
            failure const silence = failure::make(errc::timeout, settings_.rank, 0, operation_or_control(),
                                                  {"rank 0, which leads collectives, did not answer within ",
                                                   duration_text(clock::now() - started)});
            expect_verdict(silence);
            thread_.wake();
            if (!wait_for_verdict(sequence)) set_failure(silence);
            if (!failed()) suspected_at_ = {}; // the result came just in time
        }
        in_collective_ = false;
    }

    // ---- the failure detector -----------------------------------------------------------------------------

    HERRING_SETUP void suspect(failure const& why, bool certain) {
        if (rank_0() == nullptr || left_[0] || why.peer < 0) return set_failure(why); // nobody could say more
        connections_.send_all(message_kind::suspicion, certain ? 1 : 0, write_failure(why));
        expect_verdict(why);
    }

    HERRING_SETUP void send_heartbeat(signs_of_life const& signs) {
        connections_.send_heartbeats(signs.write());
    }

    HERRING_SETUP void report_blocked(blocked_report const& mine) {
        connections_.send_all(message_kind::blocked, 0, write_report(mine));
    }

    /// Rank 0 answers at once, with a question to everyone; if it does not, it is what is wrong.
    void expect_verdict(failure const& why) noexcept {
        if (suspected_at_ != time_point{}) return;
        suspected_ = why;
        suspected_at_ = clock::now();
    }

    /// Replies to a probe, and looks whether rank 0 gives a verdict. Returns when to do so again.
    time_point look_after_probes(time_point now) {
        time_point next = time_point::max();
        if (probed_) answer();
        if (probed_) next = now + std::chrono::milliseconds(10); // the caller replies by a word in memory
        if (suspected_at_ == time_point{} || rank_0() == nullptr) return next;
        failure_detector_options const& times = settings_.times.detector;
        clock::duration const nothing = silence(*rank_0(), now);
        clock::duration const more = held_up(*rank_0(), now) ? longest_hold_up(times) : clock::duration(0);
        if (nothing >= hopeless_after(times) + more ||
            std::min(nothing, now - suspected_at_) >= times.reply_timeout + more) {
            set_failure(describe(suspected_, {.rank = 0,
                                              .state = rank_state::silent,
                                              .before = suspected_.peer == 0 ? -1 : settings_.rank,
                                              .cycle = false}));
            return next;
        }
        return std::min<time_point>(next, now + times.reply_timeout / 10);
    }

    void answer() {
        wait_report const said = own_wait_report();
        if (said.state == rank_state::unknown) return; // it looks around within 50 ms
        probed_ = false;
        connections_.send_all(message_kind::probe_reply, probe_.load(std::memory_order_relaxed),
                              write_answer(said));
    }

    bool in_collective_ = false; // its result has not come
    bool greeted_ = false;       // rank 0 has this rank's hello
    bool probed_ = false;        // and has not replied
    failure suspected_{};
    time_point suspected_at_{}; // since when the verdict of rank 0 is awaited
    time_point retry_at_{};
    std::chrono::milliseconds backoff_{10};
    std::size_t next_address_ = 0;
    std::string foreign_;                // bytes of a program that has rank 0's port and is not rank 0
    std::optional<handshake> handshake_; // from the hello, or the resume, to the admission
    connection* candidate_ = nullptr;    // that is being made
    std::uint64_t attempts_ = 0;         // to make one
    time_point dial_at_{};               // not before
    clock::duration dial_time_{};        // for an attempt
    clock::duration delay_{};            // by which its messages come later than over an idle network
    bool unproven_ = false;              // who answered had not the secret
    failure unverified_{};               // the last refusal of who did not prove itself
    int times_said_ = 0;
    time_point first_said_{};
    waiting_for missing_; // whom rank 0 waits for
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP

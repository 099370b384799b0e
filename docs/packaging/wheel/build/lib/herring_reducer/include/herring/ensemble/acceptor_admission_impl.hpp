// herring: a frontend's control connections: admissions, refusals, and the proof of a lane.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ACCEPTOR_ADMISSION_IMPL_HPP
#define HERRING_ENSEMBLE_ACCEPTOR_ADMISSION_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/crypto/random.hpp"
#include "herring/ensemble/acceptor.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/handshake.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

HERRING_SEPARABLE void acceptor_core::challenge(peer_connection& p) {
    p.challenge = wire::challenge{salt_, random_nonce(), secrets_.has_value()}.write();
    p.at = stage::challenged;
    p.link.send(message::challenge, p.challenge);
    connections_.watch(p);
}

HERRING_SEPARABLE void acceptor_core::on_hello(peer_connection& p, std::span<std::byte const> body) {
    hello said;
    wire::proof shown{};
    std::span<std::byte const> words;
    if (!wire::split_proof(body, words, shown) || !said.read(words)) return unidentified(p);
    std::optional<wire::handshake> proven;
    if (secrets_) proven = wire::proven_by(admission_names, *secrets_, salt_, p.challenge, words, shown);
    if (said.has_secret != secrets_.has_value() || (secrets_ && !proven))
        return refuse(p,
                      {admission_refusal::secret,
                       text({admission_roster::who(said.name, said.replica), ": ",
                             !said.has_secret ? "the frontend has a secret, the member has none"
                             : !secrets_      ? "the member has a secret, the frontend has none"
                                              : "the member's secret is not the frontend's",
                             "; set HERRING_SECRET or HERRING_SECRET_FILE alike at both"})},
                      nullptr);
    bool const same_machine = said.boot == boot_;
    admission_roster::decision found;
    {
        monitor::guard const held(lock_);
        found = roster_.decide(said, shape_, options_.lanes, !listeners_.local_name().empty(), same_machine);
        seats_.resize(roster_.peers());
    }
    if (found.reason != admission_refusal::none)
        return refuse(p, {found.reason, found.text}, proven ? &*proven : nullptr);
    peer_connection* const before = seats_[found.peer];
    if (before != nullptr && !found.takes_over) lost(*before, "it came again, on a new connection");
    {
        monitor::guard const held(lock_);
        roster_.take(found.peer, said.incarnation);
    }
    if (before != nullptr && found.takes_over) replace(*before, said.incarnation);
    seats_[found.peer] = &p;
    p.who = admission_roster::who(said.name, said.replica);
    p.peer = found.peer;
    p.incarnation = said.incarnation;
    p.credits = std::min(said.credits, options_.credits);
    admit_it(p, proven, same_machine && said.lanes != herring::lane::tcp);
}

HERRING_SEPARABLE void acceptor_core::admit_it(peer_connection& p,
                                               std::optional<wire::handshake> const& proven, bool by_memory) {
    p.lane_key = random_key();
    p.ticket = random_bits();
    admit told;
    std::memcpy(told.wrapped.data(), p.lane_key.bytes().data(), told.wrapped.size());
    if (proven) proven->wrap(told.wrapped);
    told.ticket = p.ticket;
    told.facts = {.peer = p.peer,
                  .member = p.peer / options_.replicas,
                  .replicas = options_.replicas,
                  .credits = p.credits,
                  .in_flight = options_.in_flight,
                  .request_bytes = shape_.request_bytes,
                  .row_bytes = shape_.row_bytes,
                  .frontend = incarnation_,
                  .heartbeat = options_.heartbeat,
                  .peer_timeout = options_.peer_timeout};
    if (by_memory) told.local = listeners_.local_name();
    byte_buffer const words = told.write();
    byte_buffer body;
    body.append(proven ? proven->proof_of_acceptor(words) : wire::proof{});
    body.append(words);
    p.at = stage::admitted;
    p.until = clock::now() + options_.handshake_time;
    p.beat_at = clock::now() + options_.heartbeat;
    p.link.send(message::admit, body);
    p.link.admitted();
    if (proven) p.link.protect(proven->keys(true));
    connections_.watch(p);
}

HERRING_SEPARABLE void acceptor_core::refuse(peer_connection& p, ensembles::refuse const& why,
                                             wire::handshake const* proven) {
    byte_buffer body = why.write();
    if (proven != nullptr) body.append(proven->proof_of_refusal({}, body));
    bool const is_told = count_refused(why.reason, proven != nullptr || !secrets_);
    end(p, message::refuse, body);
    if (is_told) tell_refused(why.reason, text({why.text, " (from ", p.from, ")"}));
}

HERRING_SEPARABLE bool acceptor_core::count_refused(admission_refusal reason, bool proven) noexcept {
    auto const number = static_cast<std::size_t>(reason);
    count([&](acceptor_counters& c) { ++c.refused[number]; });
    return proven ? refusals_of_members_[number].take(notice_burst, clock::now())
                  : refusals_of_unknown_[number].take(1, clock::now());
}

HERRING_SEPARABLE void acceptor_core::tell_refused(admission_refusal reason, std::string_view words) {
    told_ = true;
    sink_.refused(sink_.sink, reason, words);
}

HERRING_SEPARABLE void acceptor_core::end(peer_connection& p, message last, std::span<std::byte const> body) {
    p.link.send(last, body);
    p.link.finish();
    p.at = stage::ending;
    p.until = clock::now() + options_.handshake_time;
    connections_.watch(p);
}

HERRING_SEPARABLE void acceptor_core::replace(peer_connection& older, std::uint64_t newer) {
    ensembles::refuse const why{
        admission_refusal::replaced,
        text({older.who, ": replaced: a newer process has its place (incarnation ", newer, ", its own is ",
              older.incarnation, "); let one process of this name run"})};
    count([](acceptor_counters& c) { ++c.replaced; });
    bool const was_up = leave_seat(older), is_told = count_refused(why.reason, true);
    end(older, message::refuse, why.write());
    if (was_up) tell_lost(older, "a newer process took its place");
    if (is_told) tell_refused(why.reason, why.text);
}

HERRING_SEPARABLE void acceptor_core::let_go(peer_connection& p, std::string_view told,
                                             std::string_view why) {
    bool const was_up = leave_seat(p);
    end(p, message::goodbye, bytes_of(told.substr(0, most_words)));
    if (was_up) tell_lost(p, why);
}

HERRING_SEPARABLE void acceptor_core::lost(peer_connection& p, std::string_view why) {
    bool const was_up = leave_seat(p);
    connections_.close(p);
    if (was_up) tell_lost(p, why);
}

HERRING_SEPARABLE bool acceptor_core::leave_seat(peer_connection& p) noexcept {
    bool const was_up = p.at == stage::up;
    seats_[p.peer] = nullptr;
    monitor::guard const held(lock_);
    roster_.gone(p.peer, p.incarnation);
    counters_.lost += was_up;
    return was_up;
}

HERRING_SEPARABLE void acceptor_core::tell_lost(peer_connection const& p, std::string_view why) {
    told_ = true;
    sink_.lost(sink_.sink, p.peer, p.incarnation, text({p.who, ": ", why}));
}

HERRING_SEPARABLE void acceptor_core::on_leave(peer_connection& p) {
    if (p.at != stage::up) return let_go(p, "you are let go", "it left");
    if (std::exchange(p.draining, true)) return;
    told_ = true;
    sink_.draining(sink_.sink, p.peer, p.incarnation);
}

HERRING_SEPARABLE peer_connection* acceptor_core::admission_of(std::uint64_t ticket) noexcept {
    for (peer_connection* const p : seats_)
        if (p != nullptr && p->at == stage::admitted && p->ticket == ticket) return p;
    return nullptr;
}

HERRING_SEPARABLE void acceptor_core::on_lane_hello(peer_connection& p, std::span<std::byte const> body) {
    lane_hello said;
    if (!said.read(body) || (said.kind == herring::lane::shared) != p.link.is_local() ||
        admission_of(said.ticket) == nullptr)
        return unidentified(p);
    p.ticket = said.ticket;
    p.lane_hello.append(body);
    p.challenge.append(random_nonce());
    p.at = stage::lane_proving;
    p.link.send(message::lane_challenge, p.challenge);
    connections_.watch(p);
}

HERRING_SEPARABLE void acceptor_core::on_lane_proof(peer_connection& p, incoming& got) {
    peer_connection* const owner = admission_of(p.ticket);
    wire::proof shown{};
    if (owner == nullptr || !read_32(got.body, shown)) return unidentified(p);
    wire::handshake const seen(lane_names, owner->lane_key, p.lane_hello, p.challenge);
    if (!equal_in_constant_time(shown, seen.proof_of_dialler())) return unidentified(p);
    bool const local = p.link.is_local();
    if (local != (got.passed.get() >= 0)) return unidentified(p);
    p.link.send(message::lane_accept, seen.proof_of_acceptor({}), local ? memory_ : -1);
    if (p.link.wants_write()) return unidentified(p); // an empty socket takes these 64 bytes
    thread_.forget(p.link.socket());
    lane_ends ends;
    (local ? ends.wake_up : ends.socket) = p.link.release();
    ends.memory = got.passed.release();
    connections_.close(p);
    owner->at = stage::up;
    owner->until = time_point::max();
    owner->heard = clock::now();
    count([](acceptor_counters& c) { ++c.admitted; });
    told_ = true;
    sink_.admitted(sink_.sink, owner->peer, owner->incarnation, owner->credits, std::move(ends));
}

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ACCEPTOR_ADMISSION_IMPL_HPP

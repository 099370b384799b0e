// herring: a frontend's door: what a member proves before it is in, how its lane is proven, and how it leaves.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DOOR_ADMISSION_IMPL_HPP
#define HERRING_ENSEMBLE_DOOR_ADMISSION_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/door_core.hpp"
#include "herring/ensemble/lane_ends.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"

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

HERRING_SEPARABLE void door_core::challenge(guest& g) {
    g.challenge = wire::challenge{salt_, random_nonce(), secrets_.has_value()}.write();
    g.at = stage::challenged;
    g.link.send(message::challenge, g.challenge);
    guests_.watch(g);
}

HERRING_SEPARABLE void door_core::on_hello(guest& g, std::span<std::byte const> body) {
    hello said;
    wire::proof shown{};
    std::span<std::byte const> words;
    if (!wire::split_proof(body, words, shown) || !said.read(words)) return unidentified(g);
    std::optional<admission_handshake> proven;
    for (secret_key const& each : keys_) {
        proven.emplace(each, g.challenge, words);
        if (equal_in_constant_time(proven->proof_of_member(), shown)) break;
        proven.reset();
    }
    if (said.has_secret != secrets_.has_value() || (secrets_ && !proven))
        return refuse(g,
                      {admission_refusal::secret,
                       text({door_roster::who(said.name, said.replica), ": ",
                             !said.has_secret ? "the frontend has a secret, the member has none"
                             : !secrets_      ? "the member has a secret, the frontend has none"
                                              : "the member's secret is not the frontend's",
                             "; set HERRING_SECRET or HERRING_SECRET_FILE alike at both"})},
                      nullptr);
    bool const same_machine = said.boot == boot_;
    door_roster::decision found;
    {
        monitor::guard const held(lock_);
        found = roster_.decide(said, shape_, options_.lanes, !listeners_.local_name().empty(), same_machine);
        seats_.resize(roster_.peers());
    }
    if (found.reason != admission_refusal::none)
        return refuse(g, {found.reason, found.text}, proven ? &*proven : nullptr);
    guest* const before = seats_[found.peer];
    if (before != nullptr && !found.takes_over) lost(*before, "it came again, on a new connection");
    {
        monitor::guard const held(lock_);
        roster_.take(found.peer, said.incarnation);
    }
    if (before != nullptr && found.takes_over) replace(*before, said.incarnation);
    seats_[found.peer] = &g;
    g.who = door_roster::who(said.name, said.replica);
    g.peer = found.peer;
    g.incarnation = said.incarnation;
    g.credits = std::min(said.credits, options_.credits);
    admit_it(g, proven, same_machine && said.lanes != herring::lane::tcp);
}

HERRING_SEPARABLE void door_core::admit_it(guest& g, std::optional<admission_handshake> const& proven,
                                           bool by_memory) {
    g.lane_key = random_key();
    g.ticket = random_bits();
    admit told;
    std::memcpy(told.wrapped.data(), g.lane_key.bytes().data(), told.wrapped.size());
    if (proven) proven->wrap(told.wrapped);
    told.ticket = g.ticket;
    told.facts = {.peer = g.peer,
                  .member = g.peer / options_.replicas,
                  .replicas = options_.replicas,
                  .credits = g.credits,
                  .in_flight = options_.in_flight,
                  .request_bytes = shape_.request_bytes,
                  .row_bytes = shape_.row_bytes,
                  .frontend = incarnation_,
                  .heartbeat = options_.heartbeat,
                  .peer_timeout = options_.peer_timeout};
    if (by_memory) told.local = listeners_.local_name();
    byte_buffer const words = told.write();
    byte_buffer body;
    body.append(proven ? proven->proof_of_frontend(words) : wire::proof{});
    body.append(words);
    g.at = stage::admitted;
    g.until = clock::now() + options_.handshake_time;
    g.beat_at = clock::now() + options_.heartbeat;
    g.link.send(message::admit, body);
    g.link.admitted();
    if (proven) g.link.protect(proven->keys(true));
    guests_.watch(g);
}

HERRING_SEPARABLE void door_core::refuse(guest& g, ensembles::refuse const& why,
                                         admission_handshake const* proven) {
    byte_buffer body = why.write();
    if (proven != nullptr) body.append(proven->proof_of_refusal(body));
    if (count_refused(why.reason, proven != nullptr || !secrets_))
        tell_refused(why.reason, text({why.text, " (from ", g.from, ")"}));
    end(g, message::refuse, body);
}

HERRING_SEPARABLE bool door_core::count_refused(admission_refusal reason, bool proven) noexcept {
    auto const number = static_cast<std::size_t>(reason);
    count([&](door_counters& c) { ++c.refused[number]; });
    return proven ? refusals_of_members_[number].take(notice_burst, clock::now())
                  : refusals_of_strangers_[number].take(1, clock::now());
}

HERRING_SEPARABLE void door_core::tell_refused(admission_refusal reason, std::string&& words) {
    door_notice& made = notices_->emplace_back();
    made.kind = door_notice::what::refused;
    made.reason = reason;
    made.text = std::move(words);
}

HERRING_SEPARABLE void door_core::end(guest& g, message last, std::span<std::byte const> body) {
    g.link.send(last, body);
    g.link.finish();
    g.at = stage::ending;
    g.until = clock::now() + options_.handshake_time;
    guests_.watch(g);
}

HERRING_SEPARABLE void door_core::replace(guest& older, std::uint64_t newer) {
    ensembles::refuse const why{
        admission_refusal::replaced,
        text({older.who, ": replaced: a newer process has its place (incarnation ", newer, ", its own is ",
              older.incarnation, "); let one process of this name run"})};
    count([](door_counters& c) { ++c.replaced; });
    leave_seat(older, "a newer process took its place");
    if (count_refused(why.reason, true)) tell_refused(why.reason, std::string(why.text));
    end(older, message::refuse, why.write());
}

HERRING_SEPARABLE void door_core::let_go(guest& g, std::string_view told, std::string_view why) {
    leave_seat(g, why);
    end(g, message::goodbye, bytes_of(told.substr(0, most_words)));
}

HERRING_SEPARABLE void door_core::lost(guest& g, std::string_view why) {
    leave_seat(g, why);
    guests_.close(g);
}

HERRING_SEPARABLE void door_core::leave_seat(guest& g, std::string_view why) {
    seats_[g.peer] = nullptr;
    {
        monitor::guard const held(lock_);
        roster_.gone(g.peer, g.incarnation);
        counters_.lost += g.at == stage::up;
    }
    if (g.at != stage::up) return;
    door_notice& made = notices_->emplace_back();
    made.kind = door_notice::what::lost;
    made.peer = g.peer;
    made.incarnation = g.incarnation;
    made.text = text({g.who, ": ", why});
}

HERRING_SEPARABLE void door_core::on_leave(guest& g) {
    if (g.at != stage::up) return let_go(g, "you are let go", "it left");
    if (std::exchange(g.draining, true)) return;
    door_notice& made = notices_->emplace_back();
    made.kind = door_notice::what::draining;
    made.peer = g.peer;
    made.incarnation = g.incarnation;
}

HERRING_SEPARABLE guest* door_core::admission_of(std::uint64_t ticket) noexcept {
    for (guest* const g : seats_)
        if (g != nullptr && g->at == stage::admitted && g->ticket == ticket) return g;
    return nullptr;
}

HERRING_SEPARABLE void door_core::on_lane_hello(guest& g, std::span<std::byte const> body) {
    lane_hello said;
    if (!said.read(body) || (said.kind == herring::lane::shared) != g.link.is_local() ||
        admission_of(said.ticket) == nullptr)
        return unidentified(g);
    g.ticket = said.ticket;
    g.said.append(body);
    g.challenge.append(random_nonce());
    g.at = stage::lane_proving;
    g.link.send(message::lane_challenge, g.challenge);
    guests_.watch(g);
}

HERRING_SEPARABLE void door_core::on_lane_proof(guest& g, incoming& got) {
    guest* const owner = admission_of(g.ticket);
    wire::proof shown{};
    if (owner == nullptr || !read_32(got.body, shown)) return unidentified(g);
    lane_handshake const seen(owner->lane_key, g.said, g.challenge);
    if (!equal_in_constant_time(shown, seen.proof_of_member())) return unidentified(g);
    bool const local = g.link.is_local();
    if (local != (got.passed.get() >= 0)) return unidentified(g);
    g.link.send(message::lane_accept, seen.proof_of_frontend(), local ? memory_ : -1);
    if (g.link.wants_write()) return unidentified(g); // 64 bytes into an empty socket
    thread_.forget(g.link.socket());
    door_notice& made = notices_->emplace_back();
    made.kind = door_notice::what::admitted;
    made.peer = owner->peer;
    made.incarnation = owner->incarnation;
    made.credits = owner->credits;
    (local ? made.ends.bell : made.ends.socket) = g.link.release();
    made.ends.memory = got.passed.release();
    guests_.close(g);
    owner->at = stage::up;
    owner->until = time_point::max();
    owner->heard = clock::now();
    count([](door_counters& c) { ++c.admitted; });
}

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DOOR_ADMISSION_IMPL_HPP

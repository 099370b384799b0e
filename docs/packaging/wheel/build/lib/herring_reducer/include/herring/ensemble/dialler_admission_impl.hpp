// herring: a member's control connections: proofs, admission or refusal, and the proof of its lane.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DIALLER_ADMISSION_IMPL_HPP
#define HERRING_ENSEMBLE_DIALLER_ADMISSION_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/ensemble/dialler.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/local_socket.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/sockets.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <sys/epoll.h>

namespace HERRING_NAMESPACE::detail::ensembles {

HERRING_SEPARABLE void dialler_core::on_challenge(dial_target& t, std::span<std::byte const> body) {
    wire::challenge asked;
    if (!asked.read(body)) return fail(t, text({t.name, " sent a challenge that cannot be read"}));
    t.challenge.clear();
    t.challenge.append(body);
    hello mine;
    mine.has_secret = secrets_.has_value();
    mine.incarnation = incarnation_;
    mine.replica = options_.replica;
    mine.credits = options_.credits;
    mine.lanes = options_.lanes;
    mine.name = options_.name;
    mine.boot = boot_;
    mine.shape = shape_;
    std::optional<secret_key> key;
    if (secrets_ && asked.has_secret) key.emplace(secrets_->proves.key(asked.salt));
    byte_buffer words;
    (void)t.handshake.reply(admission_names, words, t.challenge, asked, mine, nullptr, key ? &*key : nullptr);
    t.at = stage::greeted;
    t.link.send(message::hello, words);
    watch_link(t);
}

HERRING_SEPARABLE void dialler_core::on_admit(dial_target& t, std::span<std::byte const> body) {
    wire::proof shown{};
    t.admitted = {};
    if (body.size() < shown.size() || !read_32(body.first(shown.size()), shown) ||
        !t.admitted.read(body.subspan(shown.size())))
        return fail(t, text({t.name, " sent an admission that cannot be read"}));
    if (secrets_ && !t.handshake.proves(shown, body.subspan(shown.size())))
        return fail(t, text({"what answers on ", t.name, " did not prove that it has the secret"}));
    if (t.handshake.begun()) {
        t.handshake.keys().wrap(t.admitted.wrapped);
        t.link.protect(t.handshake.keys().keys(false));
    }
    t.handshake.reset();
    t.lane_key = secret_key(t.admitted.wrapped);
    erase(t.admitted.wrapped.data(), t.admitted.wrapped.size());
    t.link.admitted();
    t.was_admitted = true;
    t.beat_at = clock::now() + t.admitted.facts.heartbeat;
    if (t.admitted.local.empty() || options_.lanes == herring::lane::tcp)
        return without_memory(t, "the frontend offers no memory");
    with_memory(t, sink_.local_memory(sink_.sink, t.index, t.admitted.facts));
}

HERRING_SEPARABLE void dialler_core::on_refuse(dial_target& t, std::span<std::byte const> body) {
    std::span<std::byte const> words = body;
    bool const verified = t.has_control() || !secrets_ || // after the admission the message had a valid tag
                          t.handshake.proves_refusal({}, body, words);
    ensembles::refuse said;
    if (!said.read(words)) return fail(t, text({t.name, " sent a refusal that cannot be read"}));
    refused(t, said, verified);
}

HERRING_SEPARABLE void dialler_core::refused(dial_target& t, ensembles::refuse const& said, bool verified) {
    if (verified) return refused_for_good(t, said.as_failure());
    ensembles::refuse const quoted{said.reason,
                                   text({"what answers on ", t.name, " says, unverified: ", said.text})};
    // A member that this address admitted before does not believe it.
    if (t.unverified.count(quoted.text, clock::now()) && !t.was_admitted)
        return refused_for_good(t, quoted.as_failure());
    fail(t, quoted.text);
}

HERRING_SEPARABLE void dialler_core::with_memory(dial_target& t, descriptor&& memory) {
    t.memory = std::move(memory);
    if (t.memory.get() < 0) return without_memory(t, "this member has no memory to share");
    descriptor made = dial_locally(t.admitted.local);
    if (made.get() < 0) return without_memory(t, "the frontend's unix socket cannot be reached from here");
    if (!same_user(made.get())) return without_memory(t, "the frontend is another user's");
    t.lane = control_link(std::move(made), false, true);
    t.local_until = clock::now() + options_.handshake_time / 2;
    watch_lane(t, EPOLLIN);
    greet_lane(t, herring::lane::shared);
}

HERRING_SEPARABLE void dialler_core::without_memory(dial_target& t, std::string_view why) {
    t.local_until = time_point::max();
    t.memory = descriptor();
    t.lane.close();
    if (options_.lanes == herring::lane::shared)
        return fail(t, text({"no memory can be shared with the frontend on ", t.name, ": ", why}));
    descriptor made;
    if (!detail::dial(made, t.where)) return unreachable(t, errno);
    t.lane = control_link(std::move(made), false, false);
    t.at = stage::lane_dialling;
    watch_lane(t, EPOLLOUT);
}

HERRING_SEPARABLE void dialler_core::watch_lane(dial_target& t, std::uint32_t what) noexcept {
    t.lane_key_of_epoll = next_key(t) << 1 | 1;
    thread_.watch(t.lane.socket(), t.lane_key_of_epoll, what);
}

HERRING_SEPARABLE void dialler_core::greet_lane(dial_target& t, herring::lane kind) {
    lane_hello said;
    said.ticket = t.admitted.ticket;
    said.kind = kind;
    said.nonce = random_nonce();
    t.lane_hello = said.write();
    t.at = stage::lane_greeted;
    t.lane.send(message::lane_hello, t.lane_hello);
}

HERRING_SEPARABLE void dialler_core::lane_failed(dial_target& t, std::string_view why) {
    if (t.lane.is_local()) return without_memory(t, why);
    fail(t, text({"the lane to ", t.name, ": ", why}));
}

HERRING_SEPARABLE void dialler_core::on_lane(dial_target& t) {
    if (t.at == stage::lane_dialling) {
        if (int const why = connect_error(t.lane.socket()); why != 0) return unreachable(t, why);
        thread_.rewatch(t.lane.socket(), t.lane_key_of_epoll, EPOLLIN);
        return greet_lane(t, herring::lane::tcp);
    }
    incoming got = t.lane.receive();
    if (got.found == incoming::what::nothing) return;
    if (got.found == incoming::what::closed) return lane_failed(t, "it was closed before it was proven");
    if (got.found != incoming::what::whole) return lane_failed(t, "it brought what no frontend sends");
    std::array<std::byte, 32> read{};
    if (!read_32(got.body, read)) return lane_failed(t, "it brought what no frontend sends");
    bool const local = t.lane.is_local();
    if (t.at == stage::lane_greeted && got.kind == message::lane_challenge) {
        wire::handshake const seen(lane_names, t.lane_key, t.lane_hello, got.body);
        t.lane_proof_due = seen.proof_of_acceptor({});
        t.at = stage::lane_proved;
        return t.lane.send(message::lane_proof, seen.proof_of_dialler(), local ? t.memory.get() : -1);
    }
    if (t.at != stage::lane_proved || got.kind != message::lane_accept ||
        !equal_in_constant_time(read, t.lane_proof_due) || local != (got.passed.get() >= 0))
        return lane_failed(t, "the frontend did not prove itself there");
    thread_.forget(t.lane.socket());
    lane_ends ends;
    (local ? ends.wake_up : ends.socket) = t.lane.release();
    ends.memory = got.passed.release();
    t.lane.close();
    t.memory = descriptor();
    t.at = stage::up;
    t.until = t.local_until = time_point::max();
    t.up_since = t.heard = clock::now();
    t.is_connected = true;
    t.last_text.clear();
    told_ = true;
    sink_.connected(sink_.sink, t.index, t.admitted.facts, std::move(ends));
}

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DIALLER_ADMISSION_IMPL_HPP

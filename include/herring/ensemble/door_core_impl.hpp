// herring: a frontend's door: what is due, who knocks, and what a connection brings.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DOOR_CORE_IMPL_HPP
#define HERRING_ENSEMBLE_DOOR_CORE_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/variables.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/ensemble/admission_refusal.hpp"
#include "herring/ensemble/door_core.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/forks.hpp"
#include "herring/machine/local_socket.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::ensembles {

HERRING_SEPARABLE door_core::door_core(door_options const& options, shape const& own,
                                       std::vector<std::string>&& names)
    : options_(options), shape_(own), roster_(std::move(names), options.replicas) {
    check_options();
    variables const from = variables::of_process();
    secrets_ =
        read_secret(options.secret, options.secret_file, options.require_secret, "frontend_options", from);
    options_.secret.reset(); // its text may go
    std::memcpy(salt_.data(), random_nonce().data(), salt_.size());
    if (secrets_) keys_.push_back(secrets_->proves.key(salt_));
    if (secrets_ && secrets_->also) keys_.push_back(secrets_->also->key(salt_));
    thread_.open("ensemble");
    listeners_.listen(options_.address, secrets_.has_value());
}

HERRING_SEPARABLE void door_core::share(int memory) {
    if (memory >= 0 && options_.lanes != herring::lane::tcp) {
        listeners_.listen_here();
        memory_ = memory;
    }
    if (options_.lanes == herring::lane::shared && listeners_.local_name().empty())
        throw error(errc::unsupported, -1, -1, "ensemble",
                    "lanes are 'shared', and this frontend has no memory to share or no unix socket; see "
                    "that there is a memfd (tmpfs), or give lane::any");
}

HERRING_SEPARABLE void door_core::add_member(std::string name) {
    monitor::guard const held(lock_);
    roster_.add(std::move(name));
}

HERRING_SEPARABLE door_counters door_core::counters() noexcept {
    monitor::guard const held(lock_);
    return counters_;
}

HERRING_SEPARABLE void door_core::stop() noexcept {
    {
        monitor::guard const held(lock_);
        stop_ = true;
    }
    thread_.wake();
}

HERRING_SEPARABLE bool door_core::turn(std::vector<door_notice>& notices) {
    notices_ = &notices;
    if (!take_orders()) return goodbye_to_all(), false;
    time_point const now = detect_own_stall();
    int const timeout_ms = run_due(now);
    if (!notices.empty()) return guests_.reap(), true;
    stall_.expect(clock::now(), std::chrono::milliseconds(timeout_ms < 0 ? 0 : timeout_ms));
    if (timeout_ms < 0) stall_ = {};
    std::span<epoll_event const> const events = thread_.sleep(timeout_ms);
    detect_own_stall();
    for (epoll_event const& event : events) on_epoll(event.data.u64, event.events);
    guests_.reap();
    return true;
}

HERRING_SEPARABLE void door_core::check_options() const {
    auto const wrong = [](std::initializer_list<text_part> words) { door_roster::refuse_setting(words); };
    using namespace std::chrono_literals;
    door_roster::check_name("the ensemble", shape_.ensemble);
    if (options_.credits < 1 || options_.credits > most_credits)
        wrong({"credits is ", options_.credits, "; give 1 to ", most_credits});
    if (options_.in_flight < 1 || options_.in_flight > most_credits)
        wrong({"in_flight is ", options_.in_flight, "; give 1 to ", most_credits});
    if (options_.peer_timeout < 50ms || options_.peer_timeout > never)
        wrong({"peer_timeout is ", options_.peer_timeout.count(), " ms; give at least 50 ms, or never"});
    if (options_.heartbeat < 1ms || options_.heartbeat > options_.peer_timeout / 2)
        wrong({"heartbeat is ", options_.heartbeat.count(), " ms; give at least 1 ms and at most half of ",
               "peer_timeout, ", options_.peer_timeout.count(), " ms"});
    if (options_.handshake_time < 10ms || options_.handshake_time > 1h)
        wrong({"handshake_time is ", options_.handshake_time.count(), " ms; give 10 ms to an hour"});
    if (options_.pending < 4 || options_.pending > 4096)
        wrong({"pending is ", options_.pending, "; give 4 to 4096"});
}

HERRING_SEPARABLE void door_core::order(wish&& made) {
    {
        monitor::guard const held(lock_);
        wishes_.push_back(std::move(made));
    }
    thread_.wake();
}

HERRING_SEPARABLE bool door_core::take_orders() {
    std::vector<wish> taken;
    {
        monitor::guard const held(lock_);
        if (stop_) return false;
        taken.swap(wishes_);
        seats_.resize(roster_.peers());
    }
    for (wish const& each : taken) {
        guest* const g = each.peer < seats_.size() ? seats_[each.peer] : nullptr;
        if (g == nullptr || g->incarnation != each.incarnation || g->at != stage::up) continue;
        if (each.drained && !g->draining) continue;
        let_go(*g, each.drained ? std::string_view("you are let go") : std::string_view(each.why),
               each.drained ? std::string_view("it left") : std::string_view(each.why));
    }
    return true;
}

HERRING_SEPARABLE void door_core::goodbye_to_all() {
    guests_.for_each([](guest& g) {
        if (!g.proven()) return;
        g.link.send(message::goodbye, bytes_of("the frontend closes"));
        g.link.finish();
    });
}

HERRING_SEPARABLE time_point door_core::detect_own_stall() noexcept {
    time_point const now = clock::now();
    clock::duration const late = stall_.late(now);
    stall_.expect(now, {}); // until it sleeps again
    if (late == clock::duration(0)) return now;
    guests_.for_each([&](guest& g) {
        g.heard = now;
        if (g.until != time_point::max()) g.until += late;
    });
    return now;
}

HERRING_SEPARABLE int door_core::run_due(time_point now) {
    time_point next = listeners_.resume(now);
    guests_.for_each([&](guest& g) { next = std::min(next, look_after(g, now)); });
    if (next == time_point::max()) return -1;
    auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(next - clock::now()).count() + 1;
    return static_cast<int>(std::clamp<long long>(ms, 0, 60'000));
}

HERRING_SEPARABLE time_point door_core::look_after(guest& g, time_point now) {
    if (now >= g.until) {
        on_expired(g);
        return time_point::max();
    }
    if (!g.proven()) return g.until;
    if (g.at == stage::up && now - g.heard >= options_.peer_timeout) { // before, `until` holds
        on_readable(g); // a sign of life that has come and was not read yet
        if (!g.gone && g.proven() && now - g.heard >= options_.peer_timeout)
            lost(g, text({"it has given no sign of life for ", duration_text(options_.peer_timeout),
                          ": its process is stopped or starved, or its host cannot be reached"}));
    }
    if (g.gone || !g.proven()) return g.gone ? time_point::max() : g.until;
    if (now >= g.beat_at) {
        g.beat_at = now + options_.heartbeat;
        g.link.send(message::heartbeat, {});
        guests_.watch(g);
    }
    time_point const next = std::min(g.until, g.beat_at);
    return g.at == stage::up ? std::min(next, g.heard + options_.peer_timeout) : next;
}

HERRING_SEPARABLE void door_core::on_expired(guest& g) {
    if (g.at == stage::admitted)
        lost(g, "it did not bring its lane in time");
    else if (g.at == stage::ending)
        guests_.close(g);
    else
        unidentified(g);
}

HERRING_SEPARABLE void door_core::on_epoll(std::uint64_t key, std::uint32_t what) {
    if (key < door_listeners::keys) return accept(listeners_.socket(key), listeners_.is_local(key));
    guest* const found = guests_.find(key);
    if (found == nullptr) return;
    guest& g = *found;
    if ((what & EPOLLOUT) != 0) {
        g.link.flush();
        guests_.watch(g);
    }
    if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) on_readable(g);
}

HERRING_SEPARABLE void door_core::accept(int listener, bool local) {
    for (int i = 0; i < 16; ++i) {
        endpoint from;
        from.size = sizeof from.raw;
        descriptor made(forks::own(::accept4(listener, local ? nullptr : from.get(),
                                             local ? nullptr : &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC)));
        if (made.get() < 0) {
            if (errno == EINTR || errno == ECONNABORTED) continue;
            if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) && !make_room())
                listeners_.pause();
            return;
        }
        if (local && !same_user(made.get())) {
            count([](door_counters& c) { ++c.unidentified; });
            continue;
        }
        if (guests_.unproven() >= options_.pending) make_room();
        time_point const now = clock::now();
        guest& g =
            guests_.add(control_link(std::move(made), true, local), now, now + options_.handshake_time);
        g.from = local ? "a unix socket" : from.text();
        on_readable(g); // it has often knocked already
    }
}

HERRING_SEPARABLE bool door_core::make_room() {
    guest* const g = guests_.least_likely();
    if (g == nullptr) return false;
    stage const was = g->at;
    on_readable(*g);
    if (!g->gone && g->at == was) was == stage::ending ? guests_.close(*g) : unidentified(*g);
    return true;
}

HERRING_SEPARABLE void door_core::unidentified(guest& g) {
    count([](door_counters& c) { ++c.unidentified; });
    guests_.close(g);
}

HERRING_SEPARABLE void door_core::on_readable(guest& g) {
    for (int i = 0; i < 16 && !g.gone; ++i) { // then others have their turn
        if (g.at == stage::ending) {
            if (g.link.drop_input()) guests_.close(g);
            return;
        }
        incoming got = g.link.receive();
        using what = incoming::what;
        if (got.found == what::nothing) return;
        if (got.found == what::closed) return on_closed(g);
        if (got.found == what::wrong) return on_wrong(g, got.why);
        if (got.found == what::other_version) {
            if (g.at != stage::stranger || g.link.is_local()) return on_wrong(g, "another version");
            return refuse(g,
                          {admission_refusal::other_version,
                           text({"the member speaks version ", got.version,
                                 " of the protocol of ensembles, the frontend ", "version ", protocol_version,
                                 "; build both from one version of Herring"})},
                          nullptr);
        }
        g.heard = clock::now();
        on_message(g, got);
    }
}

HERRING_SEPARABLE void door_core::on_closed(guest& g) {
    if (!g.proven()) return unidentified(g);
    lost(g, g.draining ? "it left" : "its control connection closed: its process ended or died");
}

HERRING_SEPARABLE void door_core::on_wrong(guest& g, std::string_view what) {
    if (!g.proven()) return unidentified(g);
    lost(g, text({"it sent ", what, "; see that it runs the same build"}));
}

HERRING_SEPARABLE void door_core::on_message(guest& g, incoming& got) {
    switch (g.at) {
    case stage::stranger:
        if (got.kind == message::knock && !g.link.is_local()) return challenge(g);
        if (got.kind == message::lane_hello) return on_lane_hello(g, got.body);
        return unidentified(g);
    case stage::challenged:
        if (got.kind == message::hello) return on_hello(g, got.body);
        return unidentified(g);
    case stage::lane_proving:
        if (got.kind == message::lane_proof) return on_lane_proof(g, got);
        return unidentified(g);
    case stage::admitted:
    case stage::up:
        if (got.kind == message::heartbeat) return;
        if (got.kind == message::leave) return on_leave(g);
        return on_wrong(g, "a message that no member sends then");
    case stage::ending:
        return;
    }
}

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DOOR_CORE_IMPL_HPP

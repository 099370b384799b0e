// herring: a frontend's control connections: options, orders, times, accepting, and dispatch of messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ACCEPTOR_IMPL_HPP
#define HERRING_ENSEMBLE_ACCEPTOR_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/variables.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/ensemble/acceptor.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/local_socket.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/sockets.hpp"

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

namespace HERRING_NAMESPACE::detail::ensembles {

HERRING_SEPARABLE acceptor_core::acceptor_core(acceptor_options const& options, shape const& own,
                                               std::vector<std::string>&& names, acceptor_calls const& sink)
    : options_(options), shape_(own), sink_(sink), roster_(std::move(names), options.replicas) {
    check_options();
    variables const from = variables::of_process();
    secrets_ =
        read_secret(options.secret, options.secret_file, options.require_secret, "frontend_options", from);
    options_.secret.reset(); // its text may be destroyed
    std::memcpy(salt_.data(), random_nonce().data(), salt_.size());
    thread_.open("ensemble");
    listeners_.listen(options_.address, secrets_.has_value());
}

HERRING_SEPARABLE void acceptor_core::share(int memory) {
    if (memory >= 0 && options_.lanes != herring::lane::tcp) {
        listeners_.listen_here();
        memory_ = memory;
    }
    if (options_.lanes == herring::lane::shared && listeners_.local_name().empty())
        throw error(errc::unsupported, -1, -1, "ensemble",
                    "lanes are 'shared', and this frontend has no memory to share or no unix socket; see "
                    "that there is a memfd (tmpfs), or give lane::any");
}

HERRING_SEPARABLE void acceptor_core::add_member(std::string name) {
    monitor::guard const held(lock_);
    roster_.add(std::move(name));
}

HERRING_SEPARABLE acceptor_counters acceptor_core::counters() noexcept {
    monitor::guard const held(lock_);
    return counters_;
}

HERRING_SEPARABLE void acceptor_core::stop() noexcept {
    {
        monitor::guard const held(lock_);
        stop_ = true;
    }
    thread_.wake();
}

HERRING_SEPARABLE bool acceptor_core::turn() {
    told_ = false;
    if (!take_orders()) return goodbye_to_all(), false;
    time_point const now = detect_own_stall();
    int const timeout_ms = run_due(now);
    if (told_) return connections_.reap(), true;
    stall_.expect(clock::now(), std::chrono::milliseconds(timeout_ms < 0 ? 0 : timeout_ms));
    if (timeout_ms < 0) stall_ = {};
    std::span<epoll_event const> const events = thread_.sleep(timeout_ms);
    detect_own_stall();
    for (epoll_event const& event : events) on_epoll(event.data.u64, event.events);
    connections_.reap();
    return true;
}

HERRING_SEPARABLE void acceptor_core::check_options() const {
    auto const wrong = [](std::initializer_list<text_part> words) {
        admission_roster::refuse_setting(words);
    };
    using namespace std::chrono_literals;
    admission_roster::check_name("the ensemble", shape_.ensemble);
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

HERRING_SEPARABLE void acceptor_core::order(order_of_sink&& what) {
    {
        monitor::guard const held(lock_);
        orders_.push_back(std::move(what));
    }
    thread_.wake();
}

HERRING_SEPARABLE bool acceptor_core::take_orders() {
    std::vector<order_of_sink> taken;
    {
        monitor::guard const held(lock_);
        if (stop_) return false;
        taken.swap(orders_);
        seats_.resize(roster_.peers());
    }
    for (order_of_sink const& each : taken) {
        peer_connection* const p = each.peer < seats_.size() ? seats_[each.peer] : nullptr;
        if (p == nullptr || p->incarnation != each.incarnation || p->at != stage::up) continue;
        if (each.drained && !p->draining) continue;
        let_go(*p, each.drained ? std::string_view("you are let go") : std::string_view(each.why),
               each.drained ? std::string_view("it left") : std::string_view(each.why));
    }
    return true;
}

HERRING_SEPARABLE void acceptor_core::goodbye_to_all() {
    connections_.for_each([](peer_connection& p) {
        if (!p.proven()) return;
        p.link.send(message::goodbye, bytes_of("the frontend closes"));
        p.link.finish();
    });
}

HERRING_SEPARABLE time_point acceptor_core::detect_own_stall() noexcept {
    time_point const now = clock::now();
    clock::duration const late = stall_.late(now);
    stall_.expect(now, {}); // until it sleeps again
    if (late == clock::duration(0)) return now;
    connections_.for_each([&](peer_connection& p) {
        p.heard = now;
        if (p.until != time_point::max()) p.until += late;
    });
    return now;
}

HERRING_SEPARABLE int acceptor_core::run_due(time_point now) {
    time_point next = listeners_.resume(now);
    connections_.for_each([&](peer_connection& p) { next = std::min(next, look_after(p, now)); });
    return poll_timeout(next);
}

HERRING_SEPARABLE time_point acceptor_core::look_after(peer_connection& p, time_point now) {
    if (now >= p.until) {
        on_expired(p);
        return time_point::max();
    }
    if (!p.proven()) return p.until;
    if (p.at == stage::up && now - p.heard >= options_.peer_timeout) { // before `up` the bound is `until`
        on_readable(p); // a sign of life may have arrived unread
        if (!p.gone && p.proven() && now - p.heard >= options_.peer_timeout)
            lost(p, text({"it has given no sign of life for ", duration_text(options_.peer_timeout),
                          ": its process is stopped or starved, or its host cannot be reached"}));
    }
    if (p.gone || !p.proven()) return p.gone ? time_point::max() : p.until;
    if (now >= p.beat_at) {
        p.beat_at = now + options_.heartbeat;
        p.link.send(message::heartbeat, {});
        connections_.watch(p);
    }
    time_point const next = std::min(p.until, p.beat_at);
    return p.at == stage::up ? std::min(next, p.heard + options_.peer_timeout) : next;
}

HERRING_SEPARABLE void acceptor_core::on_expired(peer_connection& p) {
    if (p.at == stage::admitted)
        lost(p, "it did not bring its lane in time");
    else if (p.at == stage::ending)
        connections_.close(p);
    else
        unidentified(p);
}

HERRING_SEPARABLE void acceptor_core::on_epoll(std::uint64_t key, std::uint32_t what) {
    if (key < acceptor_listeners::keys) return accept(listeners_.socket(key), listeners_.is_local(key));
    peer_connection* const found = connections_.find(key);
    if (found == nullptr) return;
    peer_connection& p = *found;
    if ((what & EPOLLOUT) != 0) {
        p.link.flush();
        connections_.watch(p);
    }
    if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) on_readable(p);
}

HERRING_SEPARABLE void acceptor_core::accept(int listener, bool local) {
    for (int i = 0; i < 16; ++i) {
        endpoint from;
        descriptor made = accept_next(listener, from);
        if (made.get() < 0) {
            if (out_of_sockets(errno) && !make_room()) listeners_.pause();
            return;
        }
        if (local && !same_user(made.get())) {
            count([](acceptor_counters& c) { ++c.unidentified; });
            continue;
        }
        if (connections_.unproven() >= options_.pending) make_room();
        time_point const now = clock::now();
        peer_connection& p =
            connections_.add(control_link(std::move(made), true, local), now, now + options_.handshake_time);
        p.from = local ? "a unix socket" : from.text();
        on_readable(p); // its first message has often come already
    }
}

HERRING_SEPARABLE bool acceptor_core::make_room() {
    peer_connection* const p = connections_.least_likely();
    if (p == nullptr) return false;
    stage const was = p->at;
    on_readable(*p);
    if (!p->gone && p->at == was) was == stage::ending ? connections_.close(*p) : unidentified(*p);
    return true;
}

HERRING_SEPARABLE void acceptor_core::unidentified(peer_connection& p) {
    count([](acceptor_counters& c) { ++c.unidentified; });
    connections_.close(p);
}

HERRING_SEPARABLE void acceptor_core::on_readable(peer_connection& p) {
    for (int i = 0; i < 16 && !p.gone; ++i) { // then other connections have their turn
        if (p.at == stage::ending) {
            if (p.link.drop_input()) connections_.close(p);
            return;
        }
        incoming got = p.link.receive();
        using what = incoming::what;
        if (got.found == what::nothing) return;
        if (got.found == what::closed) return on_closed(p);
        if (got.found == what::wrong) return on_wrong(p, got.why);
        if (got.found == what::other_version) {
            if (p.at != stage::unknown || p.link.is_local()) return on_wrong(p, "another version");
            return refuse(p,
                          {admission_refusal::other_version,
                           text({"the member speaks version ", got.version,
                                 " of the protocol of ensembles, the frontend ", "version ", protocol_version,
                                 "; build both from one version of Herring"})},
                          nullptr);
        }
        p.heard = clock::now();
        on_message(p, got);
    }
}

HERRING_SEPARABLE void acceptor_core::on_closed(peer_connection& p) {
    if (!p.proven()) return unidentified(p);
    lost(p, p.draining ? "it left" : "its control connection closed: its process ended or died");
}

HERRING_SEPARABLE void acceptor_core::on_wrong(peer_connection& p, std::string_view what) {
    if (!p.proven()) return unidentified(p);
    lost(p, text({"it sent ", what, "; see that it runs the same build"}));
}

HERRING_SEPARABLE void acceptor_core::on_message(peer_connection& p, incoming& got) {
    switch (p.at) {
    case stage::unknown:
        if (got.kind == message::apply && !p.link.is_local()) return challenge(p);
        if (got.kind == message::lane_hello) return on_lane_hello(p, got.body);
        return unidentified(p);
    case stage::challenged:
        if (got.kind == message::hello) return on_hello(p, got.body);
        return unidentified(p);
    case stage::lane_proving:
        if (got.kind == message::lane_proof) return on_lane_proof(p, got);
        return unidentified(p);
    case stage::admitted:
    case stage::up:
        if (got.kind == message::heartbeat) return;
        if (got.kind == message::leave) return on_leave(p);
        return on_wrong(p, "a message that no member sends then");
    case stage::ending:
        return;
    }
}

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ACCEPTOR_IMPL_HPP

// herring: a member's control connections: options, orders, times, attempts, and dispatch of messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DIALLER_IMPL_HPP
#define HERRING_ENSEMBLE_DIALLER_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/variables.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/admission_roster.hpp"
#include "herring/ensemble/dialler.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/epoll.h>

namespace HERRING_NAMESPACE::detail::ensembles {

HERRING_SEPARABLE dialler_core::dialler_core(dialler_options const& options, shape const& own,
                                             dialler_calls const& sink)
    : options_(options), shape_(own), sink_(sink) {
    check_options();
    variables const from = variables::of_process();
    secrets_ =
        read_secret(options.secret, options.secret_file, options.require_secret, "member_options", from);
    options_.secret.reset(); // its text may be destroyed
    for (std::string const& each : options.frontends) {
        host_and_port const where = split_address(each, "one of frontends", 1, "member");
        dial_target& t = *targets_.emplace_back(std::make_unique<dial_target>());
        t.index = targets_.size() - 1;
        t.name = each;
        t.host = where.host;
        t.port = where.port;
    }
    thread_.open("ensemble");
}

HERRING_SEPARABLE void dialler_core::drop(std::size_t frontend, std::string why) {
    {
        monitor::guard const held(lock_);
        drops_.emplace_back(frontend, std::move(why));
    }
    thread_.wake();
}

HERRING_SEPARABLE bool dialler_core::leave(std::chrono::milliseconds most) noexcept {
    time_point const deadline = clock::now() + std::min<std::chrono::milliseconds>(most, never);
    monitor::guard const held(lock_);
    leave_ = true;
    thread_.wake();
    while (!all_left_ && !stop_ && lock_.wait_until(deadline)) {
    }
    return all_left_;
}

HERRING_SEPARABLE void dialler_core::request_stop() noexcept {
    {
        monitor::guard const held(lock_);
        stop_ = true;
        lock_.notify_all();
    }
    thread_.wake();
}

HERRING_SEPARABLE bool dialler_core::turn() {
    told_ = false;
    if (!take_orders()) return false;
    time_point const now = detect_own_stall();
    int const timeout_ms = run_due(now);
    if (told_) return true;
    stall_.expect(clock::now(), std::chrono::milliseconds(timeout_ms < 0 ? 0 : timeout_ms));
    if (timeout_ms < 0) stall_ = {};
    std::span<epoll_event const> const events = thread_.sleep(timeout_ms);
    detect_own_stall();
    for (epoll_event const& event : events) on_epoll(event.data.u64, event.events);
    return true;
}

HERRING_SEPARABLE void dialler_core::check_options() const {
    auto const wrong = [](std::initializer_list<text_part> words) {
        admission_roster::refuse_setting(words);
    };
    using namespace std::chrono_literals;
    admission_roster::check_name("the ensemble", shape_.ensemble);
    admission_roster::check_name("this member", options_.name);
    if (options_.frontends.empty()) wrong({"there is no frontend to dial; give at least one 'host:port'"});
    if (options_.frontends.size() > 1024) wrong({"there are more than 1024 frontends"});
    if (options_.credits < 1 || options_.credits > most_credits)
        wrong({"credits is ", options_.credits, "; give 1 to ", most_credits});
    if (options_.replica >= most_replicas)
        wrong({"replica is ", options_.replica, "; give 0 to ", most_replicas - 1});
    if (options_.handshake_time < 10ms || options_.handshake_time > 1h)
        wrong({"handshake_time is ", options_.handshake_time.count(), " ms; give 10 ms to an hour"});
    if (options_.first_pause < 1ms || options_.last_pause < options_.first_pause || options_.last_pause > 1h)
        wrong({"pauses go from ", options_.first_pause.count(), " to ", options_.last_pause.count(),
               " ms; give from 1 ms to an hour, the first one no longer than the last"});
}

HERRING_SEPARABLE bool dialler_core::take_orders() {
    std::vector<std::pair<std::size_t, std::string>> dropped;
    bool leaves = false;
    {
        monitor::guard const held(lock_);
        if (stop_) return false;
        dropped.swap(drops_);
        leaves = leave_;
    }
    for (auto const& [index, why] : dropped)
        if (index < targets_.size() && targets_[index]->at == stage::up) fail(*targets_[index], why);
    if (!leaves) return true;
    bool all = true;
    for (auto const& each : targets_) {
        dial_target& t = *each;
        if (t.at == stage::up && !std::exchange(t.leaving, true)) {
            t.link.send(message::leave, {});
            watch_link(t);
        }
        if (t.at != stage::up && t.at != stage::over) left(t);
        all = all && t.at == stage::over;
    }
    if (!all) return true;
    monitor::guard const held(lock_);
    all_left_ = true;
    lock_.notify_all();
    return true;
}

HERRING_SEPARABLE time_point dialler_core::detect_own_stall() noexcept {
    time_point const now = clock::now();
    clock::duration const late = stall_.late(now);
    stall_.expect(now, {}); // until it sleeps again
    if (late == clock::duration(0)) return now;
    for (auto const& t : targets_) {
        t->heard = now;
        if (t->until != time_point::max()) t->until += late;
        if (t->local_until != time_point::max()) t->local_until += late;
    }
    return now;
}

HERRING_SEPARABLE int dialler_core::run_due(time_point now) {
    time_point next = time_point::max();
    for (auto const& each : targets_) {
        dial_target& t = *each;
        if (t.at == stage::over) continue;
        if (t.at == stage::pausing && now >= t.retry_at) begin(t);
        if (t.at == stage::pausing) {
            next = std::min(next, t.retry_at);
            continue;
        }
        if (t.at == stage::resolving) {
            if (t.lookup->done()) {
                resolved(t);
            } else {
                next = std::min(next, now + std::chrono::milliseconds(10));
                continue;
            }
        }
        if (now >= t.local_until) without_memory(t, "the frontend's unix socket does not answer");
        if (now >= t.until) fail(t, text({"no answer from ", t.name}));
        next =
            std::min({next, t.until, t.local_until, t.at == stage::pausing ? t.retry_at : time_point::max()});
        if (t.has_control()) next = std::min(next, look_after(t, now));
    }
    if (told_) return 0;
    return poll_timeout(next);
}

HERRING_SEPARABLE time_point dialler_core::look_after(dial_target& t, time_point now) {
    admission const& facts = t.admitted.facts;
    if (t.at == stage::up && now - t.heard >= facts.peer_timeout) { // before `up` the bound is `until`
        on_readable(t);                                             // a sign of life may have arrived unread
        if (t.at == stage::up && now - t.heard >= facts.peer_timeout)
            fail(t, text({"the frontend on ", t.name, " has given no sign of life for ",
                          duration_text(facts.peer_timeout)}));
    }
    if (!t.has_control()) return now;
    if (now >= t.beat_at) {
        t.beat_at = now + facts.heartbeat;
        t.link.send(message::heartbeat, {});
        watch_link(t);
    }
    return t.at == stage::up ? std::min(t.beat_at, t.heard + facts.peer_timeout) : t.beat_at;
}

HERRING_SEPARABLE void dialler_core::begin(dial_target& t) {
    t.until = clock::now() + options_.handshake_time;
    if (t.next_address < t.addresses.size()) return dial(t);
    t.next_address = 0;
    t.lookup.emplace(t.host, t.port, t.until);
    t.at = stage::resolving;
}

HERRING_SEPARABLE void dialler_core::resolved(dial_target& t) {
    std::string why;
    t.addresses = t.lookup->found(why);
    t.lookup.reset();
    t.until = clock::now() + options_.handshake_time;
    t.addresses.empty() ? fail(t, text({"'", t.host, "' has no address: ", why})) : dial(t);
}

HERRING_SEPARABLE void dialler_core::dial(dial_target& t) {
    t.where = t.addresses[t.next_address++];
    descriptor made;
    if (!detail::dial(made, t.where)) return unreachable(t, errno);
    t.link = control_link(std::move(made), false, false);
    t.at = stage::dialling;
    t.link_key = next_key(t) << 1;
    t.watches_write = false;
    thread_.watch(t.link.socket(), t.link_key, EPOLLOUT);
}

HERRING_SEPARABLE void dialler_core::unreachable(dial_target& t, int why) {
    fail(t, text({"no frontend answers on ", t.name, ": ", std::strerror(why)}));
}

HERRING_SEPARABLE void dialler_core::close(dial_target& t) noexcept {
    t.link.close();
    t.lane.close();
    t.memory = descriptor();
    t.handshake.reset();
    t.challenge.clear();
    t.until = t.local_until = t.beat_at = time_point::max();
}

HERRING_SEPARABLE void dialler_core::fail(dial_target& t, std::string_view why) {
    std::string const words(why); // a copy, because `why` may lie in this target
    bool const was_up = t.at == stage::up;
    close(t);
    if (t.leaving) return left(t);
    if (was_up && clock::now() - t.up_since >= options_.last_pause) t.failures = 0;
    bool const more =
        !was_up && t.next_address < t.addresses.size(); // the next address of the name is tried at once
    if (!more) {
        ++t.failures;
        t.next_address = t.addresses.size(); // the name is looked up anew
    }
    t.at = stage::pausing;
    t.retry_at = clock::now();
    if (!more)
        t.retry_at += pause_after(t.failures, options_.first_pause, options_.last_pause,
                                  text({options_.name, "/", options_.replica, "/", t.name}));
    if (std::exchange(t.is_connected, false) || words != t.last_text) tell_disconnected(t, words);
    t.last_text = words;
}

HERRING_SEPARABLE void dialler_core::tell_disconnected(dial_target& t, std::string const& words) {
    told_ = true;
    sink_.disconnected(sink_.sink, t.index, words);
}

HERRING_SEPARABLE void dialler_core::left(dial_target& t) {
    close(t);
    t.at = stage::over;
    if (std::exchange(t.is_connected, false)) tell_disconnected(t, "this member left");
    thread_.wake(); // looks again whether all have left
}

HERRING_SEPARABLE void dialler_core::refused_for_good(dial_target& t, failure const& why) {
    close(t);
    t.at = stage::over;
    if (std::exchange(t.is_connected, false)) tell_disconnected(t, why.text);
    told_ = true;
    sink_.refused(sink_.sink, t.index, why);
}

HERRING_SEPARABLE void dialler_core::on_epoll(std::uint64_t key, std::uint32_t what) {
    std::size_t const index = (key >> 1) & ((std::uint64_t{1} << index_bits) - 1);
    if (index >= targets_.size()) return;
    dial_target& t = *targets_[index];
    bool const of_lane = (key & 1) != 0;
    if (of_lane ? !t.lane.open() || key != t.lane_key_of_epoll : !t.link.open() || key != t.link_key) return;
    if (of_lane) return on_lane(t);
    if (t.at == stage::dialling) {
        if (int const why = connect_error(t.link.socket()); why != 0) return unreachable(t, why);
        t.at = stage::applied;
        thread_.rewatch(t.link.socket(), t.link_key, EPOLLIN);
        t.link.send(message::apply, {});
        return watch_link(t);
    }
    if ((what & EPOLLOUT) != 0) {
        t.link.flush();
        watch_link(t);
    }
    if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) on_readable(t);
}

HERRING_SEPARABLE void dialler_core::watch_link(dial_target& t) noexcept {
    if (!t.link.open() || t.link.wants_write() == t.watches_write) return;
    t.watches_write = t.link.wants_write();
    thread_.rewatch(t.link.socket(), t.link_key, t.watches_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

HERRING_SEPARABLE void dialler_core::on_readable(dial_target& t) {
    std::uint64_t const key = t.link_key;
    for (int i = 0; i < 16 && t.link.open() && t.link_key == key; ++i) {
        incoming const got = t.link.receive();
        using what = incoming::what;
        if (got.found == what::nothing) return;
        if (got.found == what::closed) return fail(t, text({"the connection to ", t.name, " closed"}));
        if (got.found == what::wrong) return fail(t, text({t.name, " sent ", got.why}));
        if (got.found == what::other_version) {
            if (got.kind == message::refuse && t.at == stage::applied)
                return refused(t,
                               {admission_refusal::other_version,
                                text({"the frontend speaks version ", got.version,
                                      " of the protocol of ensembles, the member version ", protocol_version,
                                      "; build both from one version of Herring"})},
                               false);
            return fail(t, text({t.name, " speaks version ", got.version, " of the protocol of ensembles"}));
        }
        t.heard = clock::now();
        on_message(t, got);
    }
}

HERRING_SEPARABLE void dialler_core::on_message(dial_target& t, incoming const& got) {
    if (got.kind == message::refuse) return on_refuse(t, got.body);
    if (t.at == stage::applied && got.kind == message::challenge) return on_challenge(t, got.body);
    if (t.at == stage::greeted && got.kind == message::admit) return on_admit(t, got.body);
    if (t.has_control() && got.kind == message::heartbeat) return;
    if (t.has_control() && got.kind == message::goodbye) {
        std::string words(reinterpret_cast<char const*>(got.body.data()), got.body.size());
        wire::make_printable(words);
        return fail(t, text({"the frontend on ", t.name, " said goodbye: ", words}));
    }
    fail(t, text({t.name, " sent a message that no frontend sends then"}));
}

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DIALLER_IMPL_HPP

// herring: a member's end of the control connections to all its frontends. No sink: it gives notices.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DIALLER_CORE_HPP
#define HERRING_ENSEMBLE_DIALLER_CORE_HPP

#include "herring/base/address.hpp"
#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/descriptor.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/identity.hpp"
#include "herring/base/monitor.hpp"
#include "herring/base/start_thread.hpp"
#include "herring/base/text.hpp"
#include "herring/base/time.hpp"
#include "herring/control/control.hpp"
#include "herring/control/environment.hpp"
#include "herring/control/failure/stall_detector.hpp"
#include "herring/control/rendezvous/event_thread.hpp"
#include "herring/control/variables.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/admission_refusal.hpp"
#include "herring/ensemble/control_link.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/door_roster.hpp"
#include "herring/ensemble/incarnation.hpp"
#include "herring/ensemble/lane_ends.hpp"
#include "herring/ensemble/local_socket.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/ensemble/shape.hpp"
#include "herring/error.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// For the sink: what has happened.
struct dialler_notice {
    enum class what { connected, disconnected, refused, wants_memory } kind = what::disconnected;
    std::size_t frontend = 0;
    admission facts{};
    lane_ends ends{};
    std::string text{};
    failure why{};
};

/// A name that is looked up by a thread of its own, so that a slow resolver stops nothing else.
class name_lookup {
  public:
    HERRING_SETUP name_lookup(std::string const& host, std::uint16_t port, time_point deadline)
        : shared_(std::make_shared<question>()) {
        shared_->host = host;
        shared_->port = port;
        shared_->deadline = deadline;
        auto* const held = new std::shared_ptr<question>(shared_);
        pthread_t thread;
        if (start_thread(thread, answer, held) != 0) {
            delete held;
            shared_->why = "no thread for the resolver";
            shared_->done.store(true);
            return;
        }
        ::pthread_detach(thread);
    }

    bool done() const noexcept { return shared_->done.load(std::memory_order_acquire); }
    /// Once done.
    fixed_array<endpoint>& found() noexcept { return shared_->found; }
    std::string const& why() const noexcept { return shared_->why; }

  private:
    struct question {
        std::string host{};
        std::uint16_t port = 0;
        time_point deadline{};
        fixed_array<endpoint> found{};
        std::string why{};
        std::atomic<bool> done{false};
    };
    HERRING_SETUP static void* answer(void* argument) {
        std::unique_ptr<std::shared_ptr<question>> const held(
            static_cast<std::shared_ptr<question>*>(argument));
        question& q = **held;
        q.found = resolve(q.host, q.port, q.deadline, q.why);
        q.done.store(true, std::memory_order_release);
        return nullptr;
    }

    std::shared_ptr<question> shared_;
};

/// How long to wait after the `failures`-th attempt in a row that failed: twice as long each time, times ½ to 1 by a hash, so that
/// members that lost one frontend do not come back all at once.
HERRING_SETUP inline std::chrono::milliseconds pause_after(unsigned failures, std::chrono::milliseconds first,
                                                           std::chrono::milliseconds last,
                                                           std::string_view salt) noexcept {
    std::chrono::milliseconds pause = first;
    for (unsigned i = 1; i < failures && pause < last; ++i) pause *= 2;
    pause = std::min(pause, last);
    std::uint64_t const hash = hash_of(salt.data(), salt.size()) ^ failures * 0x9E3779B97F4A7C15u;
    auto const share = static_cast<long long>((hash * 0xD6E8FEB86659FD93u) >> 54); // 0 to 1023
    return pause / 2 + std::chrono::milliseconds((pause.count() - pause.count() / 2) * share / 1024);
}

/// Each frontend is dialled, admitted at, and watched over independently of the others.
///
/// Threads:  turn() and give_memory() by one thread; drop, leave and stop by any.
class dialler_core {
  public:
    /// Errors: `bad_argument` naming an option or an address; `no_resources`.
    HERRING_SETUP dialler_core(dialler_options const& options, shape const& own)
        : options_(options), shape_(own) {
        check_options();
        variables const from = variables::of_process();
        secrets_ = read_secret(options.secret, options.secret_file, "member_options", from);
        check_strength(secrets_, options.require_secret, "member_options");
        for (std::string const& each : options.frontends) {
            host_and_port const where = split_address(each, "a frontend's address");
            target& t = *targets_.emplace_back(std::make_unique<target>());
            t.index = targets_.size() - 1;
            t.name = each;
            t.host = where.host;
            t.port = where.port;
        }
        thread_.open(-1, "ensemble");
    }
    dialler_core(dialler_core const&) = delete;
    dialler_core& operator=(dialler_core const&) = delete;

    std::uint64_t incarnation() const noexcept { return incarnation_; }
    rendezvous::event_thread& thread() noexcept { return thread_; }

    // ---- any thread -----------------------------------------------------------------------------------------

    HERRING_SETUP void drop(std::size_t frontend, std::string why) {
        {
            monitor::guard const held(lock_);
            drops_.emplace_back(frontend, std::move(why));
        }
        thread_.wake();
    }
    /// False: not all frontends have let this member go in time.
    HERRING_SETUP bool leave(std::chrono::milliseconds most) noexcept {
        time_point const deadline = clock::now() + std::min<std::chrono::milliseconds>(most, never);
        monitor::guard const held(lock_);
        leave_ = true;
        thread_.wake();
        while (!all_left_ && !stop_ && lock_.wait_until(deadline)) {
        }
        return all_left_;
    }
    HERRING_SETUP void stop() noexcept {
        {
            monitor::guard const held(lock_);
            stop_ = true;
            lock_.notify_all();
        }
        thread_.wake();
    }

    // ---- the thread -----------------------------------------------------------------------------------------

    /// Does what is due, or else sleeps until something is, and does that. False: stop() was called.
    HERRING_SETUP bool turn(std::vector<dialler_notice>& notices) {
        notices_ = &notices;
        if (!take_orders()) return false;
        time_point const now = detect_own_stall();
        int const timeout_ms = run_due(now);
        if (!notices.empty()) return true;
        stall_.expect(clock::now(), std::chrono::milliseconds(timeout_ms < 0 ? 0 : timeout_ms));
        if (timeout_ms < 0) stall_ = {};
        std::span<epoll_event const> const events = thread_.sleep(timeout_ms);
        detect_own_stall();
        for (epoll_event const& event : events) on_epoll(event.data.u64, event.events);
        return true;
    }

    /// The answer to wants_memory; −1: none.
    HERRING_SETUP void give_memory(std::vector<dialler_notice>& notices, std::size_t frontend,
                                   descriptor&& memory) {
        notices_ = &notices;
        target& t = *targets_[frontend];
        if (t.at != stage::wants_memory) return;
        t.memory = std::move(memory);
        if (t.memory.get() < 0) return without_memory(t, "this member has no memory to share");
        descriptor made = dial_locally(t.told.local);
        if (made.get() < 0)
            return without_memory(t, "the frontend's unix socket cannot be reached from here");
        if (!same_user(made.get())) return without_memory(t, "the frontend is another user's");
        t.lane = control_link(std::move(made), false, true);
        t.local_until = clock::now() + options_.handshake_time / 2;
        watch_lane(t, EPOLLIN);
        greet_lane(t, herring::lane::shared);
    }

  private:
    enum class stage {
        pausing,
        resolving,
        dialling,
        knocked,
        greeted, // has sent its hello
        wants_memory,
        lane_dialling, // by tcp
        lane_greeted,
        lane_proved, // waits for the frontend's proof
        up,
        over // refused for good, or left
    };
    struct target {
        std::size_t index = 0;
        std::string name{}, host{};
        std::uint16_t port = 0;
        stage at = stage::pausing;
        time_point retry_at{};
        unsigned failures = 0;
        std::optional<name_lookup> lookup{};
        fixed_array<endpoint> addresses{};
        std::size_t next_address = 0; // to be tried
        endpoint where{};
        control_link link{}, lane{};
        std::uint64_t link_key = 0, lane_key_of_epoll = 0;
        bool watches_write = false;
        time_point until = time_point::max(), local_until = time_point::max();
        time_point heard{}, beat_at = time_point::max(), up_since{};
        salted_key key{};
        byte_buffer challenge{}, lane_said{};
        std::optional<admission_handshake> seen{};
        admit told{};
        secret_key lane_key{};
        wire::proof lane_proof_due{};
        descriptor memory{};
        bool told_connected = false, was_admitted = false, leaving = false;
        std::string last_text{};
        std::string unverified{};
        int times_said = 0;
        time_point first_said{};

        bool has_control() const noexcept { return at >= stage::wants_memory && at <= stage::up; }
    };
    static constexpr int least_unverified = 3;
    static constexpr std::chrono::seconds unverified_time{2};
    static constexpr unsigned index_bits = 16;

    HERRING_SETUP void check_options() const {
        auto const wrong = [](std::initializer_list<text_part> words) { door_roster::refuse_setting(words); };
        using namespace std::chrono_literals;
        door_roster::check_name("the ensemble", shape_.ensemble);
        door_roster::check_name("this member", options_.name);
        if (options_.frontends.empty())
            wrong({"there is no frontend to dial; give at least one 'host:port'"});
        if (options_.frontends.size() > 1024) wrong({"there are more than 1024 frontends"});
        if (options_.credits < 1 || options_.credits > most_credits)
            wrong({"credits is ", options_.credits, "; give 1 to ", most_credits});
        if (options_.replica >= most_replicas)
            wrong({"replica is ", options_.replica, "; give 0 to ", most_replicas - 1});
        if (options_.handshake_time < 10ms || options_.handshake_time > 1h)
            wrong({"handshake_time is ", options_.handshake_time.count(), " ms; give 10 ms to an hour"});
        if (options_.first_pause < 1ms || options_.last_pause < options_.first_pause ||
            options_.last_pause > 1h)
            wrong({"pauses go from ", options_.first_pause.count(), " to ", options_.last_pause.count(),
                   " ms; give from 1 ms to an hour, the first one no longer than the last"});
    }

    // ---- orders and times -----------------------------------------------------------------------------------

    HERRING_SETUP bool take_orders() {
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
            target& t = *each;
            if (t.at == stage::up && !std::exchange(t.leaving, true)) {
                t.link.send(message::leave, {});
                watch_link(t);
            }
            if (t.at != stage::up && t.at != stage::over) left(t);
            all = all && t.at == stage::over;
        }
        if (!all) return true;
        monitor::guard const held(lock_);
        all_left_ = notices_->empty(); // once the sink has heard of all
        lock_.notify_all();
        return true;
    }

    HERRING_SETUP time_point detect_own_stall() noexcept {
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

    /// Returns for how many milliseconds the thread may sleep; −1: for ever.
    HERRING_SETUP int run_due(time_point now) {
        time_point next = time_point::max();
        for (auto const& each : targets_) {
            target& t = *each;
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
            next = std::min(
                {next, t.until, t.local_until, t.at == stage::pausing ? t.retry_at : time_point::max()});
            if (t.has_control()) next = std::min(next, look_after(t, now));
        }
        if (!notices_->empty()) return 0;
        if (next == time_point::max()) return -1;
        auto const ms =
            std::chrono::duration_cast<std::chrono::milliseconds>(next - clock::now()).count() + 1;
        return static_cast<int>(std::clamp<long long>(ms, 0, 60'000));
    }

    /// Signs of life, both ways. Returns when to do so again.
    HERRING_SETUP time_point look_after(target& t, time_point now) {
        admission const& facts = t.told.facts;
        if (t.at == stage::up && now - t.heard >= facts.peer_timeout) { // before, `until` holds
            on_readable(t); // a sign of life that has come and was not read yet
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

    // ---- attempts -------------------------------------------------------------------------------------------

    HERRING_SETUP void begin(target& t) {
        t.until = clock::now() + options_.handshake_time;
        if (t.next_address < t.addresses.size()) return dial(t);
        t.next_address = 0;
        in6_addr any;
        bool const literal = ::inet_pton(AF_INET, t.host.c_str(), &any) == 1 ||
                             ::inet_pton(AF_INET6, t.host.c_str(), &any) == 1;
        if (literal) {
            std::string why;
            t.addresses = resolve(t.host, t.port, t.until, why);
            return t.addresses.empty() ? fail(t, text({"'", t.host, "' is no address: ", why})) : dial(t);
        }
        t.lookup.emplace(t.host, t.port, t.until);
        t.at = stage::resolving;
    }
    HERRING_SETUP void resolved(target& t) {
        t.addresses = std::move(t.lookup->found());
        std::string const why = t.lookup->why();
        t.lookup.reset();
        t.until = clock::now() + options_.handshake_time;
        t.addresses.empty() ? fail(t, text({"'", t.host, "' has no address: ", why})) : dial(t);
    }
    /// A socket that connects, or is going to. −1 and errno where it cannot.
    HERRING_SETUP static descriptor connecting(endpoint const& to) noexcept {
        descriptor made(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (made.get() >= 0 && ::connect(made.get(), to.get(), to.size) != 0 && errno != EINPROGRESS &&
            errno != EINTR) {
            int const why = errno;
            made = descriptor();
            errno = why;
        }
        return made;
    }
    HERRING_SETUP void dial(target& t) {
        t.where = t.addresses[t.next_address++];
        descriptor made = connecting(t.where);
        if (made.get() < 0) return unreachable(t, errno);
        t.link = control_link(std::move(made), false, false);
        t.at = stage::dialling;
        t.link_key = next_key(t) << 1;
        t.watches_write = false;
        thread_.watch(t.link.socket(), t.link_key, EPOLLOUT);
    }
    HERRING_SETUP void unreachable(target& t, int why) {
        fail(t, text({"no frontend answers on ", t.name, ": ", std::strerror(why)}));
    }
    std::uint64_t next_key(target const& t) noexcept { return ++serial_ << index_bits | t.index; }

    /// Whether the connection stands; 0, or why not.
    HERRING_SETUP static int connect_error(int socket) noexcept {
        int why = 0;
        socklen_t size = sizeof why;
        if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &why, &size) != 0) return errno;
        endpoint other;
        other.size = sizeof other.raw;
        if (why == 0 && ::getpeername(socket, other.get(), &other.size) != 0) return errno;
        endpoint const own = local_end(socket);
        if (why == 0 && own.size == other.size && std::memcmp(&own.raw, &other.raw, own.size) == 0)
            return ECONNREFUSED; // nobody listens, and the kernel gave this end the same port
        return why;
    }

    HERRING_SETUP void close(target& t) noexcept {
        t.link.close();
        t.lane.close();
        t.memory = descriptor();
        t.seen.reset();
        t.challenge.clear();
        t.until = t.local_until = t.beat_at = time_point::max();
    }
    /// The attempt, or the connection, has ended; there will be another.
    HERRING_SETUP void fail(target& t, std::string_view why) {
        std::string const words(why); // may be of this target
        bool const was_up = t.at == stage::up;
        close(t);
        if (t.leaving) return left(t);
        if (was_up && clock::now() - t.up_since >= options_.last_pause) t.failures = 0;
        bool const more = !was_up && t.next_address < t.addresses.size(); // of this name: at once
        if (!more) {
            ++t.failures;
            t.next_address = t.addresses.size(); // is looked up anew
        }
        t.at = stage::pausing;
        t.retry_at = clock::now();
        if (!more)
            t.retry_at += pause_after(t.failures, options_.first_pause, options_.last_pause,
                                      text({options_.name, "/", options_.replica, "/", t.name}));
        if (std::exchange(t.told_connected, false) || words != t.last_text) tell_disconnected(t, words);
        t.last_text = words;
    }
    HERRING_SETUP void tell_disconnected(target& t, std::string const& words) {
        dialler_notice& made = notices_->emplace_back();
        made.kind = dialler_notice::what::disconnected;
        made.frontend = t.index;
        made.text = words;
    }
    HERRING_SETUP void left(target& t) {
        close(t);
        t.at = stage::over;
        if (std::exchange(t.told_connected, false)) tell_disconnected(t, "this member left");
        thread_.wake(); // whether all have
    }
    HERRING_SETUP void refused_for_good(target& t, failure const& why) {
        close(t);
        t.at = stage::over;
        if (std::exchange(t.told_connected, false)) tell_disconnected(t, why.text);
        dialler_notice& made = notices_->emplace_back();
        made.kind = dialler_notice::what::refused;
        made.frontend = t.index;
        made.why = why;
    }

    // ---- events ---------------------------------------------------------------------------------------------

    HERRING_SETUP void on_epoll(std::uint64_t key, std::uint32_t what) {
        std::size_t const index = (key >> 1) & ((std::uint64_t{1} << index_bits) - 1);
        if (index >= targets_.size()) return;
        target& t = *targets_[index];
        bool const of_lane = (key & 1) != 0;
        if (of_lane ? !t.lane.open() || key != t.lane_key_of_epoll : !t.link.open() || key != t.link_key)
            return;
        if (of_lane) return on_lane(t);
        if (t.at == stage::dialling) {
            if (int const why = connect_error(t.link.socket()); why != 0) return unreachable(t, why);
            t.at = stage::knocked;
            thread_.rewatch(t.link.socket(), t.link_key, EPOLLIN);
            t.link.send(message::knock, {});
            return watch_link(t);
        }
        if ((what & EPOLLOUT) != 0) {
            t.link.flush();
            watch_link(t);
        }
        if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) on_readable(t);
    }
    HERRING_SETUP void watch_link(target& t) noexcept {
        if (!t.link.open() || t.link.wants_write() == t.watches_write) return;
        t.watches_write = t.link.wants_write();
        thread_.rewatch(t.link.socket(), t.link_key, t.watches_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }

    HERRING_SETUP void on_readable(target& t) {
        std::uint64_t const key = t.link_key;
        for (int i = 0; i < 16 && t.link.open() && t.link_key == key; ++i) {
            incoming const got = t.link.receive();
            using what = incoming::what;
            if (got.found == what::nothing) return;
            if (got.found == what::closed) return fail(t, text({"the connection to ", t.name, " closed"}));
            if (got.found == what::wrong) return fail(t, text({t.name, " sent ", got.why}));
            if (got.found == what::other_version) {
                if (got.kind == message::refuse && t.at == stage::knocked)
                    return refused(t,
                                   {admission_refusal::other_version,
                                    text({"the frontend speaks version ", got.version,
                                          " of the protocol of ensembles, the member version ",
                                          protocol_version, "; build both from one version of Herring"})},
                                   false);
                return fail(t,
                            text({t.name, " speaks version ", got.version, " of the protocol of ensembles"}));
            }
            t.heard = clock::now();
            on_message(t, got);
        }
    }

    HERRING_SETUP void on_message(target& t, incoming const& got) {
        if (got.kind == message::refuse) return on_refuse(t, got.body);
        if (t.at == stage::knocked && got.kind == message::challenge) return on_challenge(t, got.body);
        if (t.at == stage::greeted && got.kind == message::admit) return on_admit(t, got.body);
        if (t.has_control() && got.kind == message::heartbeat) return;
        if (t.has_control() && got.kind == message::goodbye) {
            std::string words(reinterpret_cast<char const*>(got.body.data()), got.body.size());
            wire::make_printable(words);
            return fail(t, text({"the frontend on ", t.name, " said goodbye: ", words}));
        }
        fail(t, text({t.name, " sent a message that no frontend sends then"}));
    }

    /// Proves that this member has the secret, if who asks says that it has one.
    HERRING_SETUP void on_challenge(target& t, std::span<std::byte const> body) {
        wire::challenge asked;
        if (!asked.read(body)) return fail(t, text({t.name, " sent a challenge that cannot be read"}));
        t.challenge.clear();
        t.challenge.append(body);
        hello mine;
        mine.nonce = random_nonce();
        mine.has_secret = secrets_.has_value();
        mine.incarnation = incarnation_;
        mine.replica = options_.replica;
        mine.credits = options_.credits;
        mine.lanes = options_.lanes;
        mine.name = options_.name;
        mine.boot = boot_;
        mine.shape = shape_;
        byte_buffer words = mine.write();
        wire::proof shown{};
        if (secrets_ && asked.has_secret) {
            t.seen.emplace(t.key.of(secrets_->proves, asked.salt), t.challenge, words);
            shown = t.seen->proof_of_member();
        }
        words.append(shown);
        t.at = stage::greeted;
        t.link.send(message::hello, words);
        watch_link(t);
    }

    HERRING_SETUP void on_admit(target& t, std::span<std::byte const> body) {
        wire::proof shown{};
        t.told = {};
        if (body.size() < shown.size() || !read_32(body.first(shown.size()), shown) ||
            !t.told.read(body.subspan(shown.size())))
            return fail(t, text({t.name, " sent an admission that cannot be read"}));
        if (secrets_ && (!t.seen || !equal_in_constant_time(
                                        shown, t.seen->proof_of_frontend(body.subspan(shown.size())))))
            return fail(t, text({"what answers on ", t.name, " did not prove that it has the secret"}));
        if (t.seen) {
            t.seen->wrap(t.told.wrapped);
            t.link.protect(t.seen->keys(false));
        }
        t.seen.reset();
        t.lane_key = secret_key(t.told.wrapped);
        erase(t.told.wrapped.data(), t.told.wrapped.size());
        t.link.admitted();
        t.was_admitted = true;
        t.beat_at = clock::now() + t.told.facts.heartbeat;
        if (t.told.local.empty() || options_.lanes == herring::lane::tcp)
            return without_memory(t, "the frontend offers no memory");
        t.at = stage::wants_memory;
        dialler_notice& made = notices_->emplace_back();
        made.kind = dialler_notice::what::wants_memory;
        made.frontend = t.index;
        made.facts = t.told.facts;
    }

    HERRING_SETUP void on_refuse(target& t, std::span<std::byte const> body) {
        std::span<std::byte const> words = body;
        wire::proof shown{};
        bool verified = t.has_control() || !secrets_; // then its tag was right
        if (std::span<std::byte const> before;
            t.seen && wire::split_proof(body, before, shown) &&
            equal_in_constant_time(shown, t.seen->proof_of_refusal(before))) {
            verified = true;
            words = before;
        }
        ensembles::refuse said;
        if (!said.read(words)) return fail(t, text({t.name, " sent a refusal that cannot be read"}));
        refused(t, said, verified);
    }
    HERRING_SETUP void refused(target& t, ensembles::refuse const& said, bool verified) {
        if (verified) return refused_for_good(t, said.as_failure());
        // Anyone could say that, so it ends nothing by itself; but a member whose secret is wrong hears nothing else. It is believed,
        // and quoted, once it was said three times, over two seconds; never where this member was admitted before.
        ensembles::refuse const quoted{said.reason,
                                       text({"what answers on ", t.name, " says, unverified: ", said.text})};
        time_point const now = clock::now();
        if (quoted.text != t.unverified) {
            t.unverified = quoted.text;
            t.times_said = 0;
            t.first_said = now;
        }
        if (++t.times_said >= least_unverified && now - t.first_said >= unverified_time && !t.was_admitted)
            return refused_for_good(t, quoted.as_failure());
        fail(t, quoted.text);
    }

    // ---- lanes ----------------------------------------------------------------------------------------------

    HERRING_SETUP void without_memory(target& t, std::string_view why) {
        t.local_until = time_point::max();
        t.memory = descriptor();
        t.lane.close();
        if (options_.lanes == herring::lane::shared)
            return fail(t, text({"no memory can be shared with the frontend on ", t.name, ": ", why}));
        descriptor made = connecting(t.where);
        if (made.get() < 0) return unreachable(t, errno);
        t.lane = control_link(std::move(made), false, false);
        t.at = stage::lane_dialling;
        watch_lane(t, EPOLLOUT);
    }
    HERRING_SETUP void watch_lane(target& t, std::uint32_t what) noexcept {
        t.lane_key_of_epoll = next_key(t) << 1 | 1;
        thread_.watch(t.lane.socket(), t.lane_key_of_epoll, what);
    }
    HERRING_SETUP void greet_lane(target& t, herring::lane kind) {
        lane_hello said;
        said.ticket = t.told.ticket;
        said.kind = kind;
        said.nonce = random_nonce();
        t.lane_said = said.write();
        t.at = stage::lane_greeted;
        t.lane.send(message::lane_hello, t.lane_said);
    }
    HERRING_SETUP void lane_failed(target& t, std::string_view why) {
        if (t.lane.is_local()) return without_memory(t, why);
        fail(t, text({"the lane to ", t.name, ": ", why}));
    }

    HERRING_SETUP void on_lane(target& t) {
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
            lane_handshake const seen(t.lane_key, t.lane_said, got.body);
            t.lane_proof_due = seen.proof_of_frontend();
            t.at = stage::lane_proved;
            return t.lane.send(message::lane_proof, seen.proof_of_member(), local ? t.memory.get() : -1);
        }
        if (t.at != stage::lane_proved || got.kind != message::lane_accept ||
            !equal_in_constant_time(read, t.lane_proof_due) || local != (got.passed.get() >= 0))
            return lane_failed(t, "the frontend did not prove itself there");
        thread_.forget(t.lane.socket());
        dialler_notice& made = notices_->emplace_back();
        made.kind = dialler_notice::what::connected;
        made.frontend = t.index;
        made.facts = t.told.facts;
        (local ? made.ends.bell : made.ends.socket) = t.lane.release();
        made.ends.memory = got.passed.release();
        t.lane.close();
        t.memory = descriptor();
        t.at = stage::up;
        t.until = t.local_until = time_point::max();
        t.up_since = t.heard = clock::now();
        t.told_connected = true;
        t.last_text.clear();
    }

    dialler_options const options_;
    shape const shape_;
    std::string const boot_ = boot_id();
    std::uint64_t const incarnation_ = new_incarnation();
    std::optional<secrets> secrets_;
    rendezvous::event_thread thread_;

    monitor lock_; // of these
    std::vector<std::pair<std::size_t, std::string>> drops_;
    bool leave_ = false, all_left_ = false, stop_ = false;

    // The thread's.
    std::vector<std::unique_ptr<target>> targets_;
    std::uint64_t serial_ = 0;
    stall_detector stall_{};
    std::vector<dialler_notice>* notices_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DIALLER_CORE_HPP

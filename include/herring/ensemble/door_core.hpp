// herring: a frontend's end of the control connections: admits members, watches over them, lets them go. No sink: it gives notices.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DOOR_CORE_HPP
#define HERRING_ENSEMBLE_DOOR_CORE_HPP

#include "herring/base/address.hpp"
#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/descriptor.hpp"
#include "herring/base/identity.hpp"
#include "herring/base/monitor.hpp"
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
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// What a frontend's control has counted.
struct door_counters {
    std::uint64_t admitted = 0; ///< lanes that were proven
    std::uint64_t lost = 0;     ///< of these
    std::uint64_t replaced = 0; ///< processes that a newer one took the place of
    std::uint64_t unidentified =
        0; ///< connections that ended before they had proved anything: scanners, junk, time-outs
    std::uint64_t refused[admission_refusals]{}; ///< by reason
};

/// For the sink: what has happened.
struct door_notice {
    enum class what { admitted, draining, lost, refused } kind = what::lost;
    peer_index peer = 0;
    std::uint64_t incarnation = 0;
    std::uint32_t credits = 0;
    lane_ends ends{};
    admission_refusal reason = admission_refusal::none;
    std::string text{};
};

/// Every connection is a guest: a stranger first, then challenged, then a member's control connection that waits for its lane, and at
/// last one that is up. A lane's connection is a guest until it is proven, and then its socket leaves in a notice.
///
/// Who has proved nothing takes one of `pending` places for at most `handshake_time`, and holds 2.5 KiB.
/// Threads:  turn() by one thread; drained, drop, add_member, counters and stop by any.
class door_core {
  public:
    /// Errors: `bad_argument` naming an option; `unreachable` for an address that cannot be listened on; `no_resources`.
    HERRING_SETUP door_core(door_options const& options, shape const& own, std::vector<std::string>&& names)
        : options_(options), shape_(own), roster_(std::move(names), options.replicas) {
        check_options();
        variables const from = variables::of_process();
        secrets_ = read_secret(options.secret, options.secret_file, "frontend_options", from);
        check_strength(secrets_, options.require_secret, "frontend_options");
        std::memcpy(salt_.data(), random_nonce().data(), salt_.size());
        if (secrets_) keys_.push_back(secrets_->proves.key(salt_));
        if (secrets_ && secrets_->also) keys_.push_back(secrets_->also->key(salt_));
        listen();
        thread_.open(-1, "ensemble");
        watch_listeners();
    }
    door_core(door_core const&) = delete;
    door_core& operator=(door_core const&) = delete;

    /// Before the thread starts: members of this machine get `memory` (−1: there is none), and a unix socket to dial.
    ///
    /// Errors: `unsupported` where lanes are `shared` and cannot be.
    HERRING_SETUP void share(int memory) {
        if (memory >= 0 && options_.lanes != herring::lane::tcp) {
            char name[48];
            std::snprintf(name, sizeof name, "herring-ensemble-%016llx",
                          static_cast<unsigned long long>(random_bits()));
            local_listener_ = listen_locally(name);
            if (local_listener_.get() >= 0) {
                local_name_ = name;
                memory_ = memory;
                thread_.watch(local_listener_.get(), local_key, EPOLLIN);
            }
        }
        if (options_.lanes == herring::lane::shared && local_name_.empty())
            throw error(errc::unsupported, -1, -1, "ensemble",
                        "lanes are 'shared', and this frontend has no memory to share or no unix socket; see "
                        "that there is a memfd (tmpfs), or give lane::any");
    }

    /// "host:port" of the first address that it listens on.
    std::string const& address() const noexcept { return address_; }
    rendezvous::event_thread& thread() noexcept { return thread_; }

    // ---- any thread -----------------------------------------------------------------------------------------

    HERRING_SETUP void add_member(std::string name) {
        monitor::guard const held(lock_);
        roster_.add(std::move(name));
    }
    void drained(peer_index peer, std::uint64_t incarnation) { order({peer, incarnation, true, {}}); }
    void drop(peer_index peer, std::uint64_t incarnation, std::string why) {
        order({peer, incarnation, false, std::move(why)});
    }
    HERRING_SETUP door_counters counters() noexcept {
        monitor::guard const held(lock_);
        return counters_;
    }
    HERRING_SETUP void stop() noexcept {
        {
            monitor::guard const held(lock_);
            stop_ = true;
        }
        thread_.wake();
    }

    // ---- the thread -----------------------------------------------------------------------------------------

    /// Does what is due, or else sleeps until something is, and does that. False: stop() was called, and the members know.
    HERRING_SETUP bool turn(std::vector<door_notice>& notices) {
        notices_ = &notices;
        if (!take_orders()) return goodbye_to_all(), false;
        time_point const now = detect_own_stall();
        int const timeout_ms = run_due(now);
        if (!notices.empty()) return reap(), true;
        stall_.expect(clock::now(), std::chrono::milliseconds(timeout_ms < 0 ? 0 : timeout_ms));
        if (timeout_ms < 0) stall_ = {};
        std::span<epoll_event const> const events = thread_.sleep(timeout_ms);
        detect_own_stall();
        for (epoll_event const& event : events) on_epoll(event.data.u64, event.events);
        reap();
        return true;
    }

  private:
    enum class stage {
        stranger,
        challenged,
        lane_proving,
        admitted, // and its lane is awaited
        up,
        ending // was told why; stays open until the other end has read it
    };
    struct guest {
        std::uint64_t key = 0;
        control_link link{};
        stage at = stage::stranger;
        bool watches_write = false;
        bool gone = false;
        bool draining = false;
        std::string from{};
        time_point until = time_point::max(); // is closed then
        time_point heard{}, beat_at = time_point::max();
        byte_buffer said{}, challenge{}; // bodies: a lane's hello; the challenge that was sent
        peer_index peer = 0;
        std::uint64_t incarnation = 0;
        std::uint32_t credits = 0;
        std::uint64_t ticket = 0; // of the admission; a lane's: which it claims
        secret_key lane_key{};
        std::string who{};

        bool proven() const noexcept { return at == stage::admitted || at == stage::up; }
    };
    struct wish {
        peer_index peer;
        std::uint64_t incarnation;
        bool drained; // or dropped
        std::string why;
    };
    static constexpr unsigned slot_bits = 20;
    static constexpr std::uint64_t local_key = 15, listeners_most = 15; // a guest's serial is not 0
    static constexpr std::chrono::milliseconds notice_gap{
        1000}; // between two notices of strangers, by reason

    // ---- set-up ---------------------------------------------------------------------------------------------

    HERRING_SETUP void check_options() const {
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
            wrong({"heartbeat is ", options_.heartbeat.count(),
                   " ms; give at least 1 ms and at most half of ", "peer_timeout, ",
                   options_.peer_timeout.count(), " ms"});
        if (options_.handshake_time < 10ms || options_.handshake_time > 1h)
            wrong({"handshake_time is ", options_.handshake_time.count(), " ms; give 10 ms to an hour"});
        if (options_.pending < 4 || options_.pending > 4096)
            wrong({"pending is ", options_.pending, "; give 4 to 4096"});
    }

    HERRING_SETUP void listen() {
        host_and_port const where = split_address(options_.address, "the frontend's address", 0);
        std::string why;
        auto const found = resolve(where.host, where.port, clock::now() + std::chrono::seconds(5), why);
        std::uint16_t port = where.port;
        for (endpoint at : found) {
            if (at.wildcard() && !secrets_)
                door_roster::refuse_setting(
                    {"the frontend's address is '", options_.address,
                     "', which is every interface of this machine, and there is no secret; name "
                     "one interface, or give a secret"});
            if (listeners_.size() == listeners_most) break;
            at.port(port);
            descriptor made(listen_on(at));
            if (made.get() < 0) {
                why = std::strerror(errno);
                continue;
            }
            endpoint const own = local_end(made.get());
            if (listeners_.empty()) {
                port = own.port();
                address_ = own.text();
                if (!secrets_ && !own.loopback())
                    std::fprintf(
                        stderr,
                        "herring: the frontend on %s has no secret: whoever reaches it may answer as a "
                        "member; set HERRING_SECRET_FILE\n",
                        address_.c_str());
            }
            listeners_.push_back(std::move(made));
        }
        if (listeners_.empty())
            throw error(errc::unreachable, -1, -1, "ensemble",
                        {"cannot listen on '", options_.address, "': ", why,
                         "; give an address of this machine and a free port"});
    }

    HERRING_SETUP void watch_listeners() noexcept {
        for (std::size_t i = 0; i < listeners_.size(); ++i) thread_.watch(listeners_[i].get(), i, EPOLLIN);
        if (local_listener_.get() >= 0) thread_.watch(local_listener_.get(), local_key, EPOLLIN);
    }

    // ---- orders ---------------------------------------------------------------------------------------------

    HERRING_SETUP void order(wish&& made) {
        {
            monitor::guard const held(lock_);
            wishes_.push_back(std::move(made));
        }
        thread_.wake();
    }
    HERRING_SETUP bool take_orders() {
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
    HERRING_SETUP void goodbye_to_all() {
        for (auto const& g : guests_) {
            if (!g || g->gone || !g->proven()) continue;
            g->link.send(message::goodbye, bytes_of("the frontend closes"));
            g->link.finish();
        }
    }

    // ---- times ----------------------------------------------------------------------------------------------

    /// A thread that slept or worked much longer than it meant to blames nobody for the silence meanwhile. Returns now.
    HERRING_SETUP time_point detect_own_stall() noexcept {
        time_point const now = clock::now();
        clock::duration const late = stall_.late(now);
        stall_.expect(now, {}); // until it sleeps again
        if (late == clock::duration(0)) return now;
        for (auto const& g : guests_) {
            if (!g || g->gone) continue;
            g->heard = now;
            if (g->until != time_point::max()) g->until += late;
        }
        return now;
    }

    /// Returns for how many milliseconds the thread may sleep; −1: for ever.
    HERRING_SETUP int run_due(time_point now) {
        time_point next = time_point::max();
        if (paused_ && now >= resume_at_) {
            paused_ = false;
            watch_listeners();
        }
        if (paused_) next = resume_at_;
        for (std::size_t i = 0; i < guests_.size(); ++i) {
            if (!guests_[i] || guests_[i]->gone) continue;
            guest& g = *guests_[i];
            if (now >= g.until) {
                on_expired(g);
                continue;
            }
            next = std::min(next, g.until);
            if (!g.proven()) continue;
            bool const is_up = g.at == stage::up; // else `until` holds
            if (is_up && now - g.heard >= options_.peer_timeout) {
                on_readable(g); // a sign of life that has come and was not read yet
                if (!g.gone && g.proven() && now - g.heard >= options_.peer_timeout) {
                    lost(g, text({"it has given no sign of life for ", duration_text(options_.peer_timeout),
                                  ": its process is stopped or starved, or its host cannot be reached"}));
                    continue;
                }
            }
            if (g.gone || !g.proven()) continue;
            if (now >= g.beat_at) {
                g.beat_at = now + options_.heartbeat;
                g.link.send(message::heartbeat, {});
                watch(g);
            }
            next = std::min(next, g.beat_at);
            if (g.at == stage::up) next = std::min(next, g.heard + options_.peer_timeout);
        }
        if (next == time_point::max()) return -1;
        auto const ms =
            std::chrono::duration_cast<std::chrono::milliseconds>(next - clock::now()).count() + 1;
        return static_cast<int>(std::clamp<long long>(ms, 0, 60'000));
    }

    HERRING_SETUP void on_expired(guest& g) {
        if (g.at == stage::admitted)
            lost(g, "it did not bring its lane in time");
        else if (g.at == stage::ending)
            close(g);
        else
            unidentified(g);
    }

    // ---- connections ----------------------------------------------------------------------------------------

    HERRING_SETUP void on_epoll(std::uint64_t key, std::uint32_t what) {
        if (key < listeners_.size()) return accept(listeners_[key].get(), false);
        if (key == local_key) return accept(local_listener_.get(), true);
        std::size_t const slot = key & ((std::uint64_t{1} << slot_bits) - 1);
        if (slot >= guests_.size() || !guests_[slot] || guests_[slot]->key != key || guests_[slot]->gone)
            return;
        guest& g = *guests_[slot];
        if ((what & EPOLLOUT) != 0) {
            g.link.flush();
            watch(g);
        }
        if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) on_readable(g);
    }

    HERRING_SETUP void accept(int listener, bool local) {
        for (int i = 0; i < 16; ++i) {
            endpoint from;
            from.size = sizeof from.raw;
            descriptor made(::accept4(listener, local ? nullptr : from.get(), local ? nullptr : &from.size,
                                      SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (made.get() < 0) {
                if (errno == EINTR || errno == ECONNABORTED) continue;
                if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) &&
                    !drop_oldest())
                    pause();
                return;
            }
            if (local && !same_user(made.get())) {
                count([](door_counters& c) { ++c.unidentified; });
                continue;
            }
            std::size_t pending = 0;
            for (auto const& g : guests_) pending += g && !g->gone && !g->proven();
            if (pending >= options_.pending) drop_oldest();
            guest& g = add(control_link(std::move(made), true, local));
            g.from = local ? "a unix socket" : from.text();
            on_readable(g); // it has often knocked already
        }
    }

    HERRING_SETUP guest& add(control_link&& link) {
        std::size_t slot = 0;
        while (slot < guests_.size() && guests_[slot]) ++slot;
        if (slot == guests_.size()) guests_.emplace_back();
        guests_[slot] = std::make_unique<guest>();
        guest& g = *guests_[slot];
        g.key = ++serial_ << slot_bits | slot;
        g.link = std::move(link);
        g.heard = clock::now();
        g.until = g.heard + options_.handshake_time;
        thread_.watch(g.link.socket(), g.key, EPOLLIN);
        return g;
    }

    /// Makes room among those that have proved nothing: a member speaks at once, so who has not is the least likely to be one, and
    /// the oldest of them the least of all.
    HERRING_SETUP bool drop_oldest() {
        auto const likely = [](guest const& g) {
            return g.at == stage::stranger     ? 0
                   : g.at == stage::ending     ? 1
                   : g.at == stage::challenged ? 2
                                               : 3;
        };
        guest* oldest = nullptr;
        for (auto const& g : guests_) {
            if (!g || g->gone || g->proven()) continue;
            if (oldest == nullptr || likely(*g) < likely(*oldest) ||
                (likely(*g) == likely(*oldest) && g->key >> slot_bits < oldest->key >> slot_bits))
                oldest = g.get();
        }
        if (oldest == nullptr) return false;
        stage const was = oldest->at;
        on_readable(*oldest);
        if (!oldest->gone && oldest->at == was) was == stage::ending ? close(*oldest) : unidentified(*oldest);
        return true;
    }

    /// Out of descriptors: a listener that stays readable would keep the thread from sleeping.
    HERRING_SETUP void pause() noexcept {
        paused_ = true;
        resume_at_ = clock::now() + std::chrono::milliseconds(100);
        for (descriptor const& each : listeners_) thread_.forget(each.get());
        if (local_listener_.get() >= 0) thread_.forget(local_listener_.get());
    }

    HERRING_SETUP void watch(guest& g) noexcept {
        if (g.gone || g.link.wants_write() == g.watches_write) return;
        g.watches_write = g.link.wants_write();
        thread_.rewatch(g.link.socket(), g.key, g.watches_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    void close(guest& g) noexcept {
        g.link.close();
        g.gone = true;
        dead_ = true;
    }
    HERRING_SETUP void reap() noexcept {
        if (!std::exchange(dead_, false)) return;
        for (auto& g : guests_)
            if (g && g->gone) g.reset();
    }
    HERRING_SETUP void unidentified(guest& g) {
        count([](door_counters& c) { ++c.unidentified; });
        close(g);
    }
    template <class Change> HERRING_SETUP void count(Change&& change) noexcept {
        monitor::guard const held(lock_);
        change(counters_);
    }

    // ---- messages -------------------------------------------------------------------------------------------

    HERRING_SETUP void on_readable(guest& g) {
        for (int i = 0; i < 16 && !g.gone; ++i) { // then others have their turn
            if (g.at == stage::ending) {
                if (g.link.drop_input()) close(g);
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
                                     " of the protocol of ensembles, the frontend ", "version ",
                                     protocol_version, "; build both from one version of Herring"})},
                              nullptr);
            }
            g.heard = clock::now();
            on_message(g, got);
        }
    }

    HERRING_SETUP void on_closed(guest& g) {
        if (!g.proven()) return unidentified(g);
        lost(g, g.draining ? "it left" : "its control connection closed: its process ended or died");
    }
    HERRING_SETUP void on_wrong(guest& g, std::string_view what) {
        if (!g.proven()) return unidentified(g);
        lost(g, text({"it sent ", what, "; see that it runs the same build"}));
    }

    HERRING_SETUP void on_message(guest& g, incoming& got) {
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

    HERRING_SETUP void challenge(guest& g) {
        g.challenge = wire::challenge{salt_, random_nonce(), secrets_.has_value()}.write();
        g.at = stage::challenged;
        g.link.send(message::challenge, g.challenge);
        watch(g);
    }

    HERRING_SETUP void on_hello(guest& g, std::span<std::byte const> body) {
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
            found = roster_.decide(said, shape_, options_.lanes, !local_name_.empty(), same_machine);
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

    HERRING_SETUP void admit_it(guest& g, std::optional<admission_handshake> const& proven, bool by_memory) {
        g.lane_key = secret_key(random_nonce());
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
        if (by_memory) told.local = local_name_;
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
        watch(g);
    }

    /// `proven`: then the member can tell that the refusal is the frontend's.
    HERRING_SETUP void refuse(guest& g, ensembles::refuse const& why, admission_handshake const* proven) {
        byte_buffer body = why.write();
        if (proven != nullptr) body.append(proven->proof_of_refusal(body));
        tell_refused(why.reason, text({why.text, " (from ", g.from, ")"}), proven != nullptr || !secrets_);
        end(g, message::refuse, body);
    }
    /// Strangers may not make notices as fast as they connect.
    HERRING_SETUP void tell_refused(admission_refusal reason, std::string&& words, bool proven) {
        auto const number = static_cast<std::size_t>(reason);
        count([&](door_counters& c) { ++c.refused[number]; });
        time_point const now = clock::now();
        if (!proven && now < quiet_until_[number]) return;
        quiet_until_[number] = now + notice_gap;
        door_notice& made = notices_->emplace_back();
        made.kind = door_notice::what::refused;
        made.reason = reason;
        made.text = std::move(words);
    }
    /// Its last message: it stays open until the other end has read it.
    HERRING_SETUP void end(guest& g, message last, std::span<std::byte const> body) {
        g.link.send(last, body);
        g.link.finish();
        g.at = stage::ending;
        g.until = clock::now() + options_.handshake_time;
        watch(g);
    }

    HERRING_SETUP void replace(guest& older, std::uint64_t newer) {
        ensembles::refuse const why{
            admission_refusal::replaced,
            text({older.who, ": replaced: a newer process has its place (incarnation ", newer,
                  ", its own is ", older.incarnation, "); let one process of this name run"})};
        count([](door_counters& c) { ++c.replaced; });
        leave_seat(older, "a newer process took its place");
        tell_refused(why.reason, std::string(why.text), true);
        end(older, message::refuse, why.write());
    }
    HERRING_SETUP void let_go(guest& g, std::string_view told, std::string_view why) {
        leave_seat(g, why);
        end(g, message::goodbye, bytes_of(told.substr(0, most_words)));
    }
    HERRING_SETUP void lost(guest& g, std::string_view why) {
        leave_seat(g, why);
        close(g);
    }
    HERRING_SETUP void leave_seat(guest& g, std::string_view why) {
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

    HERRING_SETUP void on_leave(guest& g) {
        if (g.at != stage::up) return let_go(g, "you are let go", "it left");
        if (std::exchange(g.draining, true)) return;
        door_notice& made = notices_->emplace_back();
        made.kind = door_notice::what::draining;
        made.peer = g.peer;
        made.incarnation = g.incarnation;
    }

    // ---- lanes ----------------------------------------------------------------------------------------------

    /// The admission of this ticket that waits for its lane; nullptr without.
    HERRING_SETUP guest* admission_of(std::uint64_t ticket) noexcept {
        for (guest* const g : seats_)
            if (g != nullptr && g->at == stage::admitted && g->ticket == ticket) return g;
        return nullptr;
    }

    HERRING_SETUP void on_lane_hello(guest& g, std::span<std::byte const> body) {
        lane_hello said;
        if (!said.read(body) || (said.kind == herring::lane::shared) != g.link.is_local() ||
            admission_of(said.ticket) == nullptr)
            return unidentified(g);
        g.ticket = said.ticket;
        g.said.append(body);
        g.challenge.append(random_nonce());
        g.at = stage::lane_proving;
        g.link.send(message::lane_challenge, g.challenge);
        watch(g);
    }

    HERRING_SETUP void on_lane_proof(guest& g, incoming& got) {
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
        close(g);
        owner->at = stage::up;
        owner->until = time_point::max();
        owner->heard = clock::now();
        count([](door_counters& c) { ++c.admitted; });
    }

    door_options const options_;
    shape const shape_;
    std::string const boot_ = boot_id();
    std::uint64_t const incarnation_ = new_incarnation();
    std::optional<secrets> secrets_;
    std::vector<secret_key> keys_; // of the secrets, with the salt
    wire::salt salt_{};
    std::vector<descriptor> listeners_;
    descriptor local_listener_{};
    std::string address_, local_name_;
    int memory_ = -1;
    rendezvous::event_thread thread_;

    monitor lock_; // of roster_, counters_, wishes_, stop_
    door_roster roster_;
    door_counters counters_{};
    std::vector<wish> wishes_;
    bool stop_ = false;

    // The thread's.
    std::vector<std::unique_ptr<guest>> guests_;
    std::vector<guest*> seats_; // by peer: its control connection, from the admission on
    std::uint64_t serial_ = 0;
    bool dead_ = false;
    bool paused_ = false;
    time_point resume_at_{};
    time_point quiet_until_[admission_refusals]{};
    stall_detector stall_{};
    std::vector<door_notice>* notices_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DOOR_CORE_HPP

// herring: control over TCP: rank 0 is the hub, every other rank has one connection to it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_CONTROL_STAR_HPP
#define HERRING_DETAIL_CONTROL_STAR_HPP

#include "herring/detail/address.hpp"
#include "herring/detail/control.hpp"
#include "herring/detail/control_wire.hpp"
#include "herring/detail/identity.hpp"
#include "herring/error.hpp"
#include "herring/plan/topology.hpp"
#include "herring/world.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace herring::detail::star {

/// Keeps jobs with different secrets apart. It is a check, not an authentication: whoever reads the traffic
/// can replay it. A challenge with a MAC takes its place later.
inline std::uint64_t secret_check(std::string const& secret) noexcept {
    if (secret.empty()) return 0;
    std::uint64_t hash = hash_of("herring secret 1", 16);
    for (int round = 0; round < 1000; ++round)
        hash = hash_of(secret.data(), secret.size(), hash ^ (hash >> 29));
    return hash | 1;
}

/// What a star needs to know before it can begin.
struct settings {
    int rank = 0;
    int size = 2;
    std::vector<endpoint> hub{};  // where rank 0 listens, as this rank resolved it
    std::vector<int> listeners{}; // rank 0: sockets that listen there; the star closes them
    std::string hub_text{};       // host:port, as it was given
    std::string node{}, boot{};
    std::uint64_t secret = 0;
    time_point deadline{};
    std::chrono::milliseconds timeout{60'000}; // what the deadline was made from, for the error
};

inline constexpr int pending_limit = 64;
inline constexpr std::chrono::seconds pending_time{5};
inline constexpr std::chrono::seconds leave_time{5};
inline constexpr std::chrono::seconds answer_time{
    1}; // how much longer than its deadline a rank waits for rank 0's word

/// One process's end of the star: its sockets, one thread that sleeps on them, and the collectives over them.
///
/// Threads:  everything below `lock_` is touched by the thread and by callers alike; the thread holds it
/// except while
///           it sleeps. Sends are tried where they are made, so that a collective costs rank 0 no wake-up of
///           its own.
/// Cost:     a collective is one message from each rank to rank 0 and one back to each.
class hub {
  public:
    explicit hub(settings from) : is_(std::move(from)) {
        std::size_t const n = at(is_.size);
        places_.assign(n, -1);
        hellos_.resize(n);
        left_.assign(n, false);
        given_.resize(n);
        pthread_condattr_t monotonic;
        ::pthread_condattr_init(&monotonic);
        ::pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        ::pthread_cond_init(&changed_, &monotonic);
        ::pthread_condattr_destroy(&monotonic);
    }
    hub(hub const&) = delete;
    hub& operator=(hub const&) = delete;

    ~hub() {
        if (running_) {
            {
                guard const held(lock_);
                stop_ = true;
            }
            wake();
            ::pthread_join(thread_, nullptr);
        }
        for (link const& l : links_)
            if (l.socket >= 0) ::close(l.socket);
        close_listeners();
        if (epoll_ >= 0) ::close(epoll_);
        if (event_ >= 0) ::close(event_);
        ::pthread_cond_destroy(&changed_);
    }

    /// Waits until all ranks are here. Throws what kept them away.
    void join() {
        time_point const deadline = is_.deadline;
        start();
        guard held(lock_);
        while (stage_ == stage::joining && wait_until(deadline)) {
        }
        if (stage_ == stage::joining && is_.rank != 0 &&
            greeted_) // rank 0 may be about to say who is missing
            while (stage_ == stage::joining && wait_until(deadline + answer_time)) {
            }
        if (stage_ == stage::joined) return;
        if (stage_ == stage::joining) {
            stage_ = stage::refused;
            why_not_ = is_.rank == 0 ? nobody_came() : not_admitted();
            if (is_.rank == 0) {
                std::vector<std::byte> const body = write_failure(why_not_);
                for (int r = 1; r < is_.size; ++r)
                    if (places_[at(r)] >= 0) send(places_[at(r)], message::refuse, 0, body);
            }
        }
        part(held, answer_time);
        throw error(why_not_);
    }

    /// Says goodbye, waits until the others have closed, at most `leave_time`.
    void leave() noexcept {
        guard held(lock_);
        part(held, first_.load(std::memory_order_relaxed) != 0
                       ? clock::duration(std::chrono::milliseconds(500))
                       : clock::duration(leave_time));
    }

    void collective(message kind, std::string_view operation, std::span<std::byte const> mine,
                    std::vector<std::vector<std::byte>>* all, time_point deadline) {
        guard held(lock_);
        time_point const started = clock::now();
        throw_if_failed(operation);
        operation_ = operation;
        std::uint64_t const sequence = done_ + 1;
        if (mine.size() > blob_limit) {
            set_failure(failure::make(errc::bad_argument, is_.rank, -1, operation,
                                      std::to_string(mine.size()) + " bytes given; the limit is " +
                                          std::to_string(blob_limit) +
                                          " a rank: this is for set-up, not for data"));
            throw_if_failed(operation);
        }
        if (is_.rank == 0) {
            arrive(0, kind, mine);
        } else {
            if (left_[0]) set_failure(gone(0, operation));
            throw_if_failed(operation);
            asking_ = true;
            send(places_[0], kind, sequence, mine);
        }
        while (done_ < sequence && !failed() && wait_until(deadline)) {
        }
        if (done_ < sequence && !failed()) {
            auto const waited = clock::now() - started;
            if (is_.rank == 0) {
                report_late(0, waited);
            } else {
                std::vector<std::byte> body;
                append(body,
                       static_cast<std::uint64_t>(
                           std::chrono::duration_cast<std::chrono::milliseconds>(waited).count()),
                       8);
                send(places_[0], message::late, sequence, body);
                while (done_ < sequence && !failed() && wait_until(deadline + answer_time)) {
                }
                if (done_ < sequence && !failed())
                    set_failure(
                        failure::make(errc::timeout, is_.rank, 0, operation,
                                      "rank 0, which leads collectives, did not answer within " +
                                          duration_text(clock::now() - started) +
                                          "; see whether its process is stopped or its host unreachable"));
            }
        }
        asking_ = false;
        operation_ = {};
        if (done_ < sequence) throw_if_failed(operation);
        if (all != nullptr) unpack(*all, operation);
    }

    void announce(failure const& why) noexcept {
        try {
            guard const held(lock_);
            set_failure(why);
        } catch (...) {
            // No memory to say it; the connection's end will say it.
        }
    }

    std::atomic<std::uint32_t> const& first_failure() const noexcept { return first_; }
    failure const* failures() const noexcept { return &cell_; }

    /// After `join`: what rank 0 told everyone.
    membership told() const {
        membership made;
        made.rank = is_.rank;
        made.map = topology(node_ids_);
        made.job = job_;
        made.local_address = local_address_;
        made.ranks_on_this_machine = 0;
        for (int const m : machine_ids_)
            if (m == machine_ids_[at(is_.rank)]) ++made.ranks_on_this_machine;
        return made;
    }

  private:
    enum class stage { joining, joined, refused };

    struct guard {
        pthread_mutex_t& lock;
        explicit guard(pthread_mutex_t& l) noexcept : lock(l) { ::pthread_mutex_lock(&lock); }
        ~guard() { ::pthread_mutex_unlock(&lock); }
        guard(guard const&) = delete;
        guard& operator=(guard const&) = delete;
    };

    struct link {
        int socket = -1;
        std::uint32_t serial =
            0;         // so that an event of a closed link does not reach the next one in its place
        int rank = -1; // -1: nobody yet
        bool connecting = false;
        bool refused = false; // only waits until the other end has read why
        bool finish = false;  // nothing more to send after `out`
        bool wants_write = false;
        int error = 0;
        std::uint64_t born = 0;
        time_point until = time_point::max(); // for whoever is nobody yet
        std::string from{};
        std::vector<std::byte> in{}, out{};
        std::size_t sent = 0;
    };

    struct contribution {
        message kind = message::alive; // alive: none yet
        std::vector<std::byte> bytes{};
    };

    static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }
    static char const* name(message kind) noexcept {
        return kind == message::barrier ? "barrier" : "all_gather";
    }
    bool failed() const noexcept { return first_.load(std::memory_order_relaxed) != 0; }

    // ---- set-up and the thread
    // ------------------------------------------------------------------------------------

    void start() {
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        event_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (epoll_ < 0 || event_ < 0)
            throw error(errc::no_resources, is_.rank, -1, "join",
                        std::string("no file descriptor for the control thread: ") + std::strerror(errno) +
                            "; raise ulimit -n");
        watch(event_, event_key, EPOLLIN);
        for (std::size_t i = 0; i < is_.listeners.size(); ++i)
            watch(is_.listeners[i], listener_key + i, EPOLLIN);
        if (is_.rank == 0) {
            endpoint const here = local_end(is_.listeners.at(0));
            local_address_ = here.address();
            mine_into(hellos_[0]);
        } else {
            retry_at_ = clock::now();
        }
        started_ = clock::now();
        // The program's signals are the program's: this thread takes none.
        sigset_t every, before;
        ::sigfillset(&every);
        ::pthread_sigmask(SIG_SETMASK, &every, &before);
        auto const body = +[](void* self) -> void* {
            static_cast<hub*>(self)->run();
            return nullptr;
        };
        int const refused = ::pthread_create(&thread_, nullptr, body, this);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (refused != 0)
            throw error(errc::no_resources, is_.rank, -1, "join",
                        std::string("no control thread: ") + std::strerror(refused) + "; raise ulimit -u");
        running_ = true;
#if defined(__GLIBC__)
        ::pthread_setname_np(thread_, "herring-control");
#endif
    }

    void mine_into(hello& h) const {
        h.size = static_cast<std::uint32_t>(is_.size);
        h.rank = static_cast<std::uint32_t>(is_.rank);
        h.incarnation = incarnation_;
        h.secret = is_.secret;
        h.node = is_.node;
        h.boot = is_.boot;
    }

    void run() noexcept {
        std::vector<epoll_event> events(64);
        while (true) {
            int timeout_ms = -1;
            {
                guard const held(lock_);
                if (stop_) return;
                timeout_ms = protect_timers();
            }
            int const got = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms);
            guard const held(lock_);
            if (stop_) return;
            for (int i = 0; i < got; ++i) {
                try {
                    take(events[at(i)].data.u64, events[at(i)].events);
                } catch (...) {
                    set_failure_quietly("no memory for a control message");
                }
            }
        }
    }

    /// How long the thread may sleep; does what is due.
    int protect_timers() noexcept {
        try {
            return timers();
        } catch (...) {
            set_failure_quietly("no memory for a control message");
            return 100;
        }
    }

    int timers() {
        // Heartbeats belong here: send `message::alive` to every member when due, and declare lost who was
        // silent.
        time_point const now = clock::now();
        time_point next = time_point::max();
        for (std::size_t i = 0; i < links_.size(); ++i) {
            link& l = links_[i];
            if (l.socket < 0 || l.until == time_point::max()) continue;
            if (now >= l.until) {
                if (is_.rank != 0) {
                    last_trouble_ = "no answer from " + l.from;
                    reconnect_later(static_cast<int>(i));
                } else {
                    if (!l.refused) ++strangers_;
                    close_link(static_cast<int>(i));
                }
                continue;
            }
            if (l.until < next) next = l.until;
        }
        if (paused_ && now >= resume_at_) {
            paused_ = false;
            for (std::size_t i = 0; i < is_.listeners.size(); ++i)
                watch(is_.listeners[i], listener_key + i, EPOLLIN);
        }
        if (paused_ && resume_at_ < next) next = resume_at_;
        if (stage_ == stage::joining && is_.rank == 0) {
            if (now >= tick_at_) {
                tick_at_ = now + std::chrono::seconds(1);
                tell_missing();
            }
            if (tick_at_ < next) next = tick_at_;
        }
        if (stage_ == stage::joining && is_.rank != 0 && places_[0] < 0) {
            if (now >= retry_at_) {
                connect_next();
                now_or(next, places_[0] >= 0 ? links_[at(places_[0])].until : retry_at_);
            } else {
                now_or(next, retry_at_);
            }
        }
        if (next == time_point::max()) return -1;
        auto const ms =
            std::chrono::duration_cast<std::chrono::milliseconds>(next - clock::now()).count() + 1;
        return ms < 0 ? 0 : static_cast<int>(std::min<long long>(ms, 60'000));
    }

    static void now_or(time_point& next, time_point other) noexcept {
        if (other < next) next = other;
    }

    void take(std::uint64_t key, std::uint32_t what) {
        if (key == event_key) {
            std::uint64_t count = 0;
            while (::read(event_, &count, sizeof count) > 0) {
            }
            return;
        }
        if (key >= listener_key) {
            accept_from(static_cast<std::size_t>(key - listener_key));
            return;
        }
        int const slot = static_cast<int>(key & 0xFFFFFFFFu);
        if (at(slot) >= links_.size() || links_[at(slot)].socket < 0 || links_[at(slot)].serial != key >> 32)
            return;
        if (links_[at(slot)].connecting) {
            connected(slot);
            return;
        }
        if ((what & EPOLLOUT) != 0) flush(slot);
        if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) receive(slot);
    }

    void wake() noexcept {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(event_, &one, sizeof one);
    }

    bool wait_until(time_point deadline) noexcept {
        auto const ns =
            std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count();
        timespec const until{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
        return ::pthread_cond_timedwait(&changed_, &lock_, &until) != ETIMEDOUT;
    }

    void notify() noexcept { ::pthread_cond_broadcast(&changed_); }

    // ---- links
    // ----------------------------------------------------------------------------------------------------

    static constexpr std::uint64_t event_key = ~std::uint64_t{0};
    static constexpr std::uint64_t listener_key = std::uint64_t{0xFFFFFFFF} << 32;

    void watch(int socket, std::uint64_t key, std::uint32_t what, int how = EPOLL_CTL_ADD) noexcept {
        epoll_event event{};
        event.events = what;
        event.data.u64 = key;
        ::epoll_ctl(epoll_, how, socket, &event);
    }

    std::uint64_t key_of(int slot) const noexcept {
        return static_cast<std::uint64_t>(links_[at(slot)].serial) << 32 | static_cast<std::uint64_t>(slot);
    }

    int open_link(int socket, std::string from, std::uint32_t what) {
        int slot = 0;
        while (at(slot) < links_.size() && links_[at(slot)].socket >= 0) ++slot;
        if (at(slot) == links_.size()) links_.emplace_back();
        link& l = links_[at(slot)];
        l = {};
        l.socket = socket;
        l.serial = ++serial_ & 0x7FFFFFFFu;
        l.born = ++births_;
        l.from = std::move(from);
        l.until = clock::now() + pending_time;
        watch(socket, key_of(slot), what);
        return slot;
    }

    void close_link(int slot) noexcept {
        link& l = links_[at(slot)];
        if (l.socket < 0) return;
        ::close(l.socket);
        l.socket = -1;
        if (l.rank >= 0 && places_[at(l.rank)] == slot) places_[at(l.rank)] = -1;
        if (is_.rank != 0 && places_[0] == slot) places_[0] = -1;
        notify();
    }

    static void tune(int socket) noexcept {
        auto const set = [&](int level, int option, int value) {
            ::setsockopt(socket, level, option, &value, sizeof value);
        };
        set(IPPROTO_TCP, TCP_NODELAY, 1);
        set(SOL_SOCKET, SO_KEEPALIVE, 1);
        set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
        set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
        set(IPPROTO_TCP, TCP_KEEPCNT, 3);
        set(IPPROTO_TCP, TCP_USER_TIMEOUT, 5'000); // a vanished host is noticed in about 5 s, idle or not
    }

    void send(int slot, message type, std::uint64_t sequence, std::span<std::byte const> body) {
        if (slot < 0) return;
        link& l = links_[at(slot)];
        if (l.socket < 0 || l.finish) return;
        append_message(l.out, type, static_cast<std::uint32_t>(is_.rank), sequence, body);
        flush(slot);
    }

    void flush(int slot) noexcept {
        link& l = links_[at(slot)];
        while (l.sent < l.out.size()) {
            ssize_t const n = ::send(l.socket, l.out.data() + l.sent, l.out.size() - l.sent, MSG_NOSIGNAL);
            if (n > 0) {
                l.sent += static_cast<std::size_t>(n);
                continue;
            }
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
            l.error = errno; // the thread will find the socket closed, and say so
            l.sent = l.out.size();
        }
        bool const more = l.sent < l.out.size();
        if (!more) {
            l.out.clear();
            l.sent = 0;
            if (l.finish) ::shutdown(l.socket, SHUT_WR);
        }
        if (more == l.wants_write) return;
        l.wants_write = more;
        watch(l.socket, key_of(slot), more ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    }

    void accept_from(std::size_t listener) {
        if (listener >= is_.listeners.size()) return;
        for (int i = 0; i < 16; ++i) {
            endpoint who;
            who.size = sizeof who.raw;
            int const socket =
                ::accept4(is_.listeners[listener], who.get(), &who.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (socket < 0) {
                if (errno == EINTR || errno == ECONNABORTED) continue;
                if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                    last_trouble_ = std::string("accept: ") + std::strerror(errno);
                    if (!drop_oldest()) pause();
                }
                return;
            }
            if (pending() >= pending_limit) drop_oldest();
            int const slot = open_link(socket, who.text(), EPOLLIN);
            tune(socket);
            receive(slot); // what it says is often here already
        }
    }

    int pending() const noexcept {
        int count = 0;
        for (link const& l : links_)
            if (l.socket >= 0 && l.rank < 0) ++count;
        return count;
    }

    /// Makes room among those who have not said who they are: a rank says it at once, so the oldest is the
    /// likeliest to be none; if it is one, it connects again.
    bool drop_oldest() {
        int oldest = -1;
        for (std::size_t i = 0; i < links_.size(); ++i)
            if (links_[i].socket >= 0 && links_[i].rank < 0 &&
                (oldest < 0 || links_[i].born < links_[at(oldest)].born))
                oldest = static_cast<int>(i);
        if (oldest < 0) return false;
        std::uint32_t const serial = links_[at(oldest)].serial;
        receive(oldest);
        link const& l = links_[at(oldest)];
        if (l.socket >= 0 && l.serial == serial && l.rank < 0) {
            if (!l.refused) ++strangers_;
            close_link(oldest);
        }
        return true;
    }

    /// Out of descriptors: a listener that stays readable would keep the thread from sleeping.
    void pause() noexcept {
        if (paused_) return;
        paused_ = true;
        resume_at_ = clock::now() + std::chrono::milliseconds(100);
        for (int const l : is_.listeners) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, l, nullptr);
    }

    void close_listeners() noexcept {
        for (int const l : is_.listeners) ::close(l);
        is_.listeners.clear();
    }

    void receive(int slot) {
        std::byte bytes[16 * 1024];
        std::uint32_t const serial = links_[at(slot)].serial;
        for (int turn = 0; turn < 64; ++turn) {
            std::size_t room = sizeof bytes;
            {
                link const& l = links_[at(slot)];
                if (is_.rank == 0 && l.rank < 0 && !l.refused)
                    room = std::min(room, hello_limit - l.in.size());
            }
            ssize_t const n = room == 0 ? 0 : ::recv(links_[at(slot)].socket, bytes, room, 0);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
            if (n <= 0) {
                int const why = n < 0 ? errno : links_[at(slot)].error;
                ended(slot, why);
                return;
            }
            link& l = links_[at(slot)];
            if (l.refused) continue; // it has been told; what else it says is not heard
            l.in.insert(l.in.end(), bytes, bytes + n);
            messages(slot);
            if (links_[at(slot)].socket < 0 || links_[at(slot)].serial != serial) return;
            if (static_cast<std::size_t>(n) < room && !links_[at(slot)].refused)
                return; // an end is told by epoll
        }
    }

    /// Takes every whole message out of what has come in.
    void messages(int slot) {
        std::size_t begin = 0;
        std::uint32_t const serial = links_[at(slot)].serial;
        while (true) {
            link& l = links_[at(slot)];
            std::span<std::byte const> const rest = std::span<std::byte const>(l.in).subspan(begin);
            if (rest.size() < head_bytes) {
                // Junk is known by its first bytes, however slowly it comes.
                if (l.rank < 0 && !looks_ours(rest)) stranger(slot);
                break;
            }
            head h;
            if (!h.read(rest)) {
                l.rank < 0 ? stranger(slot) : nonsense(slot, "bytes that are no control message");
                return;
            }
            std::size_t const limit = is_.rank == 0 && l.rank < 0  ? hello_limit - head_bytes
                                      : h.type == message::done    ? body_limit
                                      : h.type == message::give    ? blob_limit
                                      : h.type == message::welcome ? at(is_.size) * 8 + 8
                                                                   : std::size_t{8192};
            if (h.length > limit) {
                l.rank < 0 ? stranger(slot)
                           : nonsense(slot, "a control message of " + std::to_string(h.length) +
                                                " bytes, more than its kind may have");
                return;
            }
            if (rest.size() < head_bytes + h.length) break;
            std::span<std::byte const> const body = rest.subspan(head_bytes, h.length);
            if (h.body_crc != crc32c(body)) {
                l.rank < 0 ? stranger(slot) : nonsense(slot, "a control message whose checksum is wrong");
                return;
            }
            begin += head_bytes + h.length;
            if (is_.rank == 0)
                l.rank < 0 ? admit(slot, h, body) : from_member(slot, h, body);
            else
                from_hub(slot, h, body);
            if (links_[at(slot)].socket < 0 || links_[at(slot)].serial != serial) return;
        }
        link& l = links_[at(slot)];
        if (l.socket < 0 || l.serial != serial) return;
        if (begin > 0) l.in.erase(l.in.begin(), l.in.begin() + static_cast<std::ptrdiff_t>(begin));
        if (l.in.empty() && l.in.capacity() > 65536) l.in.shrink_to_fit();
    }

    static bool looks_ours(std::span<std::byte const> bytes) noexcept {
        for (std::size_t i = 0; i < bytes.size() && i < 4; ++i)
            if (bytes[i] != static_cast<std::byte>(magic >> (8 * i) & 0xFF)) return false;
        return true;
    }

    void stranger(int slot) {
        if (is_.rank == 0) {
            ++strangers_;
            close_link(slot);
        } else {
            last_trouble_ = "what listens on " + links_[at(slot)].from + " is not a Herring rank 0";
            reconnect_later(slot);
        }
    }

    void nonsense(int slot, std::string const& what) {
        int const rank = links_[at(slot)].rank;
        set_failure(failure::make(errc::protocol, is_.rank, rank, doing(),
                                  "it sent " + what + "; see that every rank runs the same build"));
        close_link(slot);
    }

    std::string_view doing() const noexcept {
        return operation_.empty() ? std::string_view("control") : operation_;
    }

    /// The other end has closed, or the network gave it up.
    void ended(int slot, int why) {
        link& l = links_[at(slot)];
        int const rank = l.rank;
        bool const refused = l.refused;
        bool const finish = l.finish;
        std::string const from = l.from;
        if (stage_ == stage::joining && is_.rank != 0) {
            last_trouble_ = from + " closed the connection" + reason(why);
            reconnect_later(slot);
            return;
        }
        close_link(slot);
        if (rank < 0) {
            if (!refused) ++strangers_;
            return;
        }
        if (stage_ == stage::joining) {
            last_trouble_ = "rank " + std::to_string(rank) + " (" + from + ") left before all were here";
            return; // its place is free again
        }
        if (left_[at(rank)] || finish || leaving_ || stage_ == stage::refused) return;
        set_failure(failure::make(errc::peer_lost, -1, rank, "control",
                                  "its control connection (" + from + ") closed without a goodbye" +
                                      reason(why) + ": its process died or its host cannot be reached"));
    }

    static std::string reason(int why) {
        return why == 0 ? "" : std::string(" (") + std::strerror(why) + ")";
    }

    // ---- rank 0: joining
    // ------------------------------------------------------------------------------------------

    /// `again`: the rank may try until its deadline, because this world may be about to make room for the
    /// next.
    void refuse(int slot, errc code, std::uint32_t rank, std::string const& text, bool again = false) {
        ++refusals_;
        last_refusal_ = "rank " + std::to_string(rank) + " from " + links_[at(slot)].from + ": " + text;
        failure const why =
            failure::make(code, static_cast<int>(rank), 0, "join", "refused by rank 0: " + text);
        send(slot, message::refuse, again ? 1 : 0, write_failure(why));
        link& l = links_[at(slot)];
        if (l.socket < 0) return;
        l.refused = true;
        l.finish = true;
        flush(slot);
    }

    void admit(int slot, head const& h, std::span<std::byte const> body) {
        if (h.version != protocol_version) {
            refuse(slot, errc::mismatch, h.rank,
                   "it speaks version " + std::to_string(h.version) + " of the protocol, rank 0 version " +
                       std::to_string(protocol_version) + "; build every rank from one version of Herring");
            return;
        }
        hello said;
        if (h.type != message::hello || !said.read(body) || said.rank != h.rank) {
            stranger(slot);
            return;
        }
        std::uint32_t const r = said.rank;
        std::string const from = links_[at(slot)].from;
        if (said.secret != is_.secret) {
            refuse(
                slot, errc::mismatch, r,
                said.secret == 0  ? "rank 0 has a secret, it has none; set HERRING_SECRET alike on every rank"
                : is_.secret == 0 ? "it has a secret, rank 0 has none; set HERRING_SECRET alike on every rank"
                                  : "its secret is not rank 0's; set HERRING_SECRET alike on every rank");
            return;
        }
        if (said.size != static_cast<std::uint32_t>(is_.size)) {
            refuse(slot, errc::mismatch, r,
                   "it says that the world has " + std::to_string(said.size) + " ranks, rank 0 says " +
                       std::to_string(is_.size) + "; start every rank with the same size");
            return;
        }
        if (r >= static_cast<std::uint32_t>(is_.size)) {
            refuse(slot, errc::refused, r,
                   "rank " + std::to_string(r) + " is out of range; ranks go from 0 to " +
                       std::to_string(is_.size - 1));
            return;
        }
        bool const same = r != 0 && hellos_[r].incarnation == said.incarnation && said.incarnation != 0;
        if (r == 0 || (places_[r] >= 0 && !same)) {
            refuse(slot, errc::refused, r,
                   "rank " + std::to_string(r) + " has already joined" +
                       (r == 0 ? std::string(": it is this one") : " from " + links_[at(places_[r])].from) +
                       "; give every process a rank of its own");
            return;
        }
        if (stage_ != stage::joining) {
            refuse(slot, errc::refused, r,
                   "the world is complete and rank " + std::to_string(r) +
                       " has left it; start the whole job again",
                   true);
            return;
        }
        if (places_[r] >= 0) close_link(places_[r]); // the same process, on a new connection
        link& l = links_[at(slot)];
        l.rank = static_cast<int>(r);
        l.until = time_point::max();
        places_[r] = slot;
        hellos_[r] = std::move(said);
        for (int other = 1; other < is_.size; ++other)
            if (places_[at(other)] < 0) return;
        welcome();
    }

    void welcome() {
        std::vector<std::string> nodes, boots;
        for (hello const& h : hellos_) {
            nodes.push_back(h.node);
            boots.push_back(h.boot);
        }
        job_ = random_bits();
        node_ids_ = topology::of_names(nodes).node_of;
        machine_ids_ = topology::of_names(boots).node_of;
        std::vector<std::byte> body;
        append(body, job_, 8);
        for (std::size_t r = 0; r < nodes.size(); ++r) {
            append(body, static_cast<std::uint64_t>(node_ids_[r]), 4);
            append(body, static_cast<std::uint64_t>(machine_ids_[r]), 4);
        }
        stage_ = stage::joined;
        for (int r = 1; r < is_.size; ++r) send(places_[at(r)], message::welcome, 0, body);
        notify();
    }

    std::vector<int> absent() const {
        std::vector<int> ranks;
        for (int r = 1; r < is_.size; ++r)
            if (places_[at(r)] < 0) ranks.push_back(r);
        return ranks;
    }

    void tell_missing() {
        std::string const text = rank_list(absent());
        std::vector<int> const ranks = absent();
        std::vector<std::byte> body;
        append(body, ranks.empty() ? 0u : static_cast<std::uint64_t>(ranks[0]), 4);
        append(body, text);
        for (int r = 1; r < is_.size; ++r)
            if (places_[at(r)] >= 0) send(places_[at(r)], message::missing, 0, body);
    }

    failure nobody_came() const {
        std::vector<int> const ranks = absent();
        std::string text = rank_list(ranks) + " did not join rank 0 on " + is_.hub_text + " within " +
                           duration_text(is_.timeout) +
                           "; see whether they were started, and with this address";
        if (refusals_ > 0) text += "; refused: " + std::to_string(refusals_) + ", last " + last_refusal_;
        if (strangers_ > 0) text += "; connections that were no rank's: " + std::to_string(strangers_);
        if (!last_trouble_.empty()) text += "; " + last_trouble_;
        return failure::make(errc::timeout, 0, ranks.empty() ? -1 : ranks[0], "join", text);
    }

    // ---- other ranks: joining
    // -------------------------------------------------------------------------------------

    failure not_admitted() const {
        if (greeted_ && !missing_.empty())
            return failure::make(errc::timeout, is_.rank, missing_rank_, "join",
                                 missing_ + " did not join rank 0 on " + is_.hub_text + " within " +
                                     duration_text(is_.timeout) +
                                     "; see whether they were started, and with this address");
        return failure::make(
            errc::timeout, is_.rank, 0, "join",
            "no answer from rank 0 on " + is_.hub_text + " within " + duration_text(is_.timeout) +
                (last_trouble_.empty() ? std::string() : " (last: " + last_trouble_ + ")") +
                "; see whether rank 0 runs, whether the address is one of its machine and whether a "
                "firewall is between");
    }

    void reconnect_later(int slot) noexcept {
        close_link(slot);
        greeted_ = false;
        retry_at_ = clock::now() + backoff_;
        backoff_ = std::min(backoff_ * 3 / 2, std::chrono::milliseconds(500));
    }

    void connect_next() {
        endpoint const& to = is_.hub[next_hub_++ % is_.hub.size()];
        int const socket = ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int rc = socket < 0 ? -1 : 0;
        if (rc == 0) {
            tune(socket);
            rc = ::connect(socket, to.get(), to.size);
        }
        if (rc != 0 && errno != EINPROGRESS) {
            last_trouble_ = to.text() + ": " + std::strerror(errno);
            if (socket >= 0) ::close(socket);
            retry_at_ =
                clock::now() + (next_hub_ % is_.hub.size() == 0 ? backoff_ : std::chrono::milliseconds(0));
            backoff_ = std::min(backoff_ * 3 / 2, std::chrono::milliseconds(500));
            return;
        }
        int const slot = open_link(socket, to.text(), EPOLLOUT);
        places_[0] = slot;
        links_[at(slot)].connecting = true;
        links_[at(slot)].until = clock::now() + std::chrono::seconds(2);
    }

    void connected(int slot) {
        link& l = links_[at(slot)];
        int why = 0;
        socklen_t size = sizeof why;
        ::getsockopt(l.socket, SOL_SOCKET, SO_ERROR, &why, &size);
        endpoint const here = local_end(l.socket);
        // A socket that connects to its own port on loopback meets itself when nobody listens there.
        if (why == 0 && here.text() == l.from) why = ECONNREFUSED;
        if (why != 0) {
            last_trouble_ = l.from + ": " + std::strerror(why);
            reconnect_later(slot);
            return;
        }
        l.connecting = false;
        l.until = time_point::max();
        l.rank = 0;
        local_address_ = here.address();
        watch(l.socket, key_of(slot), EPOLLIN, EPOLL_CTL_MOD);
        hello mine;
        mine_into(mine);
        greeted_ = true;
        send(slot, message::hello, 0, mine.write());
    }

    void from_hub(int slot, head const& h, std::span<std::byte const> body) {
        if (h.version != protocol_version && h.type != message::refuse) {
            nonsense(slot, "version " + std::to_string(h.version) + " of the protocol");
            return;
        }
        reader in{body};
        switch (h.type) {
        case message::refuse:
            if (stage_ != stage::joining) return;
            if (!read_failure(body, why_not_))
                why_not_ = failure::make(errc::refused, is_.rank, 0, "join",
                                         "refused by rank 0, in words of another version");
            why_not_.local_rank = is_.rank;
            if (h.sequence == 1) {
                last_trouble_ = why_not_.text;
                reconnect_later(slot);
                return;
            }
            stage_ = stage::refused;
            notify();
            return;
        case message::missing:
            missing_rank_ = static_cast<int>(in.number(4));
            missing_ = in.text(in.rest.size());
            return;
        case message::welcome: {
            if (stage_ != stage::joining) return;
            if (body.size() != 8 + 8 * at(is_.size)) {
                nonsense(slot, "a welcome to a world of another size");
                return;
            }
            job_ = in.number(8);
            node_ids_.clear();
            machine_ids_.clear();
            for (int r = 0; r < is_.size; ++r) {
                node_ids_.push_back(static_cast<int>(in.number(4)));
                machine_ids_.push_back(static_cast<int>(in.number(4)));
            }
            stage_ = stage::joined;
            notify();
            return;
        }
        case message::done:
            if (failed()) return;
            if (!asking_ || h.sequence != done_ + 1) {
                nonsense(slot, "the end of a collective that this rank did not begin");
                return;
            }
            result_.assign(body.begin(), body.end());
            done_ = h.sequence;
            asking_ = false;
            notify();
            return;
        case message::fail:
            heard_failure(slot, body);
            return;
        case message::goodbye:
            left_[0] = true;
            links_[at(slot)].finish = true;
            flush(slot);
            if (asking_) set_failure(gone(0, doing()));
            return;
        case message::alive:
            return;
        default:
            nonsense(slot, "a message that rank 0 never sends");
            return;
        }
    }

    // ---- collectives and failures
    // ---------------------------------------------------------------------------------

    void from_member(int slot, head const& h, std::span<std::byte const> body) {
        int const rank = links_[at(slot)].rank;
        if (h.rank != static_cast<std::uint32_t>(rank) || h.version != protocol_version) {
            nonsense(slot, "a message in the name of another rank or version");
            return;
        }
        switch (h.type) {
        case message::barrier:
        case message::give:
            if (stage_ != stage::joined || h.sequence != done_ + 1 ||
                given_[at(rank)].kind != message::alive) {
                nonsense(slot, "a collective out of turn");
                return;
            }
            arrive(rank, h.type, body);
            return;
        case message::late:
            if (h.sequence == done_ + 1 && arrived_ > 0) {
                reader in{body};
                report_late(rank, std::chrono::milliseconds(in.number(8) & 0xFFFFFFFFFFu));
            }
            return;
        case message::fail:
            heard_failure(slot, body);
            return;
        case message::goodbye:
            left_[at(rank)] = true;
            links_[at(slot)].finish = true;
            flush(slot);
            if (arrived_ > 0 && given_[at(rank)].kind == message::alive) set_failure(gone(rank, doing()));
            return;
        case message::alive:
            return;
        default:
            nonsense(slot, "a message that a member never sends");
            return;
        }
    }

    void heard_failure(int slot, std::span<std::byte const> body) {
        failure why;
        if (read_failure(body, why))
            set_failure(why);
        else
            nonsense(slot, "a failure that cannot be read");
    }

    /// Rank 0: `rank` is at the collective that is open.
    void arrive(int rank, message kind, std::span<std::byte const> bytes) {
        if (failed()) return; // or who comes late would complete what the others have been told has failed
        for (int r = 0; r < is_.size; ++r) {
            message const theirs = given_[at(r)].kind;
            if (theirs != message::alive && theirs != kind) {
                set_failure(failure::make(errc::mismatch, r, rank, name(theirs),
                                          std::string("it called ") + name(kind) + " where rank " +
                                              std::to_string(r) + " called " + name(theirs) +
                                              "; let every rank make the same calls in the same order"));
                return;
            }
        }
        given_[at(rank)].kind = kind;
        given_[at(rank)].bytes.assign(bytes.begin(), bytes.end());
        ++arrived_;
        for (int r = 0; r < is_.size; ++r) {
            if (left_[at(r)] && given_[at(r)].kind == message::alive) {
                set_failure(gone(r, name(kind)));
                return;
            }
        }
        if (arrived_ < is_.size) return;
        std::vector<std::byte> body;
        if (kind == message::give) {
            for (contribution const& c : given_) append(body, c.bytes.size(), 8);
            for (contribution const& c : given_) body.insert(body.end(), c.bytes.begin(), c.bytes.end());
        }
        for (contribution& c : given_) c = {};
        arrived_ = 0;
        if (body.size() > body_limit) {
            set_failure(
                failure::make(errc::no_resources, 0, -1, name(kind),
                              std::to_string(body.size()) + " bytes in all; give less to each all_gather"));
            return;
        }
        ++done_;
        for (int r = 1; r < is_.size; ++r) send(places_[at(r)], message::done, done_, body);
        result_ = std::move(body);
        notify();
    }

    void unpack(std::vector<std::vector<std::byte>>& all, std::string_view operation) {
        all.assign(at(is_.size), {});
        reader in{result_};
        std::vector<std::uint64_t> sizes;
        for (int r = 0; r < is_.size; ++r) sizes.push_back(in.number(8));
        for (std::size_t r = 0; r < all.size(); ++r) {
            if (sizes[r] > in.rest.size()) in.ok = false;
            if (!in.ok) break;
            auto const bytes = in.rest.first(static_cast<std::size_t>(sizes[r]));
            all[r].assign(bytes.begin(), bytes.end());
            in.rest = in.rest.subspan(bytes.size());
        }
        result_ = {};
        if (in.ok && in.rest.empty()) return;
        set_failure(failure::make(errc::protocol, is_.rank, 0, operation,
                                  "its answer cannot be read; see that every rank runs the same build"));
        throw_if_failed(operation);
    }

    /// Rank 0: the deadline of `by` has passed.
    void report_late(int by, clock::duration waited) {
        std::vector<int> missing;
        message kind = message::barrier;
        for (int r = 0; r < is_.size; ++r) {
            if (given_[at(r)].kind == message::alive)
                missing.push_back(r);
            else
                kind = given_[at(r)].kind;
        }
        set_failure(failure::make(errc::timeout, by, missing.empty() ? -1 : missing[0], name(kind),
                                  late_text(missing, waited)));
    }

    failure gone(int rank, std::string_view operation) const noexcept {
        return failure::make(
            errc::peer_lost, is_.rank, rank, operation,
            "it left (its world was destroyed) while others still wait for it; let every rank make "
            "the same calls");
    }

    /// The first one stays, and is told to whoever this rank is connected to.
    void set_failure(failure const& why) {
        if (failed()) return;
        cell_ = why;
        first_.store(1, std::memory_order_release);
        notify();
        if (stage_ != stage::joined) return;
        std::vector<std::byte> const body = write_failure(why);
        if (is_.rank != 0) {
            send(places_[0], message::fail, 0, body);
            return;
        }
        for (int r = 1; r < is_.size; ++r) send(places_[at(r)], message::fail, 0, body);
    }

    void set_failure_quietly(char const* text) noexcept {
        if (failed()) return;
        cell_ = failure::make(errc::no_resources, is_.rank, -1, "control", text);
        first_.store(1, std::memory_order_release);
        notify();
    }

    void throw_if_failed(std::string_view operation) const {
        if (failed()) throw error(as_seen_by(cell_, is_.rank, operation));
    }

    /// Goodbye to everyone, then wait until they have closed.
    void part(guard& held, clock::duration most) noexcept {
        (void)held;
        time_point const deadline = clock::now() + most;
        leaving_ = true;
        for (int const l : is_.listeners) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, l, nullptr);
        close_listeners();
        for (std::size_t i = 0; i < links_.size(); ++i) {
            link& l = links_[i];
            if (l.socket < 0) continue;
            if (l.connecting || (l.rank < 0 && !l.refused)) {
                close_link(static_cast<int>(i));
                continue;
            }
            try {
                if (stage_ == stage::joined) send(static_cast<int>(i), message::goodbye, 0, {});
            } catch (...) {
                // No memory for a goodbye: the others will say that this rank was lost.
            }
            if (l.finish) continue;
            l.finish = true;
            flush(static_cast<int>(i));
        }
        auto const open = [&] {
            for (link const& l : links_)
                if (l.socket >= 0) return true;
            return false;
        };
        while (open() && wait_until(deadline)) {
        }
    }

    settings is_;
    std::uint64_t const incarnation_ = random_bits();
    pthread_t thread_{};
    bool running_ = false;
    int epoll_ = -1;
    int event_ = -1;

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed_{};
    stage stage_ = stage::joining;
    bool stop_ = false;
    bool leaving_ = false;
    std::vector<link> links_;
    std::vector<int> places_; // rank → its link, -1 without; other ranks have [0] only
    std::uint32_t serial_ = 0;
    std::uint64_t births_ = 0;

    // Joining.
    std::vector<hello> hellos_;
    time_point started_{}, tick_at_{}, retry_at_{}, resume_at_{};
    bool paused_ = false;
    bool greeted_ = false;
    std::size_t next_hub_ = 0;
    std::chrono::milliseconds backoff_{10};
    long long strangers_ = 0;
    long long refusals_ = 0;
    std::string last_refusal_, last_trouble_, missing_;
    int missing_rank_ = -1;
    failure why_not_{};

    // What everyone was told.
    std::uint64_t job_ = 0;
    std::vector<int> node_ids_, machine_ids_;
    std::string local_address_;

    // Collectives.
    std::uint64_t done_ = 0; // number of the last one that is complete
    int arrived_ = 0;
    bool asking_ = false;
    std::vector<contribution> given_;
    std::vector<bool> left_;
    std::vector<std::byte> result_;
    std::string_view operation_;

    std::atomic<std::uint32_t> first_{0};
    failure cell_{};
};

/// Joins, or throws why not; the world it makes owns the hub.
inline membership join_star(settings from) {
    hub* const made = new hub(std::move(from));
    membership told;
    try {
        made->join();
        told = made->told();
    } catch (...) {
        delete made;
        throw;
    }
    told.by.self = made;
    told.by.first_failure = &made->first_failure();
    told.by.failures = made->failures();
    told.by.all_gather = [](void* self, std::string_view operation, std::span<std::byte const> mine,
                            std::vector<std::vector<std::byte>>& all, time_point deadline) {
        static_cast<hub*>(self)->collective(message::give, operation, mine, &all, deadline);
    };
    told.by.barrier = [](void* self, std::string_view operation, time_point deadline) {
        static_cast<hub*>(self)->collective(message::barrier, operation, {}, nullptr, deadline);
    };
    told.by.fail = [](void* self, failure const& why) noexcept { static_cast<hub*>(self)->announce(why); };
    told.by.destroy = [](void* self) noexcept {
        auto* const h = static_cast<hub*>(self);
        h->leave();
        delete h;
    };
    return told;
}

} // namespace herring::detail::star

#endif // HERRING_DETAIL_CONTROL_STAR_HPP

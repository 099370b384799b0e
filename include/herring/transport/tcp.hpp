// herring: messages over TCP: plain scatter/gather reads and writes, straight between sockets and posted memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_HPP
#define HERRING_TRANSPORT_TCP_HPP

#include "herring/base/append_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/descriptor.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/timespec.hpp"
#include "herring/policy/names.hpp"
#include "herring/transport/tcp/connections.hpp"
#include "herring/transport/tcp/link.hpp"
#include "herring/transport/tcp/match_table.hpp"
#include "herring/transport/tcp/outer_loop.hpp"
#include "herring/transport/tcp_tuning.hpp"
#include "herring/transport/transport.hpp"
#include "herring/units.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <list>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <poll.h>
#include <span>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <utility>

namespace HERRING_NAMESPACE::detail {

// As a need, so that a pack says it once: an assertion in the class itself would make clang say more.
template <int Connections, std::size_t Chunk, std::size_t Window, std::size_t LoopbackChunk,
          std::size_t LoopbackWindow>
struct tcp_numbers {
    template <class Pack> struct check {
        static constexpr bool connected = Connections >= 1 && Connections <= 64;
        static constexpr bool flows =
            Chunk >= 4096 && Window >= Chunk && LoopbackChunk >= 4096 && LoopbackWindow >= LoopbackChunk;
        static constexpr bool value = connected && flows;
        static_assert(connected,
                      "[HRG-T10] transport: tcp needs 1 to 64 connections a peer; a common slip is 0 for as "
                      "many as it likes; start with 1");
        static_assert(!connected || flows,
                      "[HRG-T11] transport: tcp needs chunks of at least 4 KiB and a window of at "
                      "least one chunk, on a network and on loopback; a common slip is to set one of the "
                      "two; set both");
    };
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::transport {

/// Carries messages over TCP connections, straight between the sockets and the memory that was posted.
///
/// Facts:     ordered a connection, any message size, no registration, host memory only.
/// Interface: binds to `world.local_address()`: the interface that routes to the peers, or HERRING_INTERFACE.
/// Threads:   one at a time; `wake` from any. With an `io_context` of the caller's (`herring/transport/tcp_asio.hpp`),
///            `wait` runs it, so that the caller's own handlers go on while a reduction waits, and when it ends; no other
///            thread may run it meanwhile, and it must outlive the reducer. What a handler throws leaves the reducer's
///            call that ran it, when that ends (the first exception of a call; the step is complete). What one throws
///            while the reducer is destroyed, the io_context's next run throws. A handler that calls a reducer which waits
///            is refused.
/// Cost:      one `sendmsg` for up to 8 messages, about one `recvmsg` a socket buffer; no copy, no allocation unless
///            a message comes before its receive is posted.
/// Errors:    construction: `unreachable`, `no_resources`, `timeout` naming the peer. Later: `lost`, with the reason.
template <tcp_tuning Tuning> class basic_tcp {
  public:
    using axis = axes::transport;
    static constexpr char const* name = "tcp";
    static constexpr transport_facts facts{.max_message = std::size_t{1} << 40,
                                           .keeps_order = Tuning.connections == 1,
                                           .runs_handlers = true,
                                           .tuning = {.chunk_bytes = Tuning.chunk_bytes,
                                                      .window_bytes = Tuning.window_bytes,
                                                      .one_hop_bytes = Tuning.one_hop_bytes,
                                                      .pair_bytes = Tuning.pair_bytes},
                                           .same_host_tuning = {.chunk_bytes = Tuning.loopback_chunk_bytes,
                                                                .window_bytes = Tuning.loopback_window_bytes,
                                                                .one_hop_bytes = Tuning.one_hop_bytes,
                                                                .pair_bytes = Tuning.pair_bytes}};
    using needs =
        herring::needs<detail::tcp_numbers<Tuning.connections, Tuning.chunk_bytes, Tuning.window_bytes,
                                           Tuning.loopback_chunk_bytes, Tuning.loopback_window_bytes>>;

    basic_tcp(world& ranks, transport_needs const& wanted)
        : basic_tcp(ranks, wanted, detail::loop_handle()) {}
    /// Sleeps in a loop of the caller's: a `boost::asio::io_context`, which needs `herring/transport/tcp_asio.hpp`.
    template <class Loop>
    basic_tcp(world& ranks, transport_needs const& wanted, Loop& loop)
        : basic_tcp(ranks, wanted, detail::outer_loop_of(loop, lanes_for(wanted))) {}
    basic_tcp(basic_tcp const&) = delete;
    basic_tcp& operator=(basic_tcp const&) = delete;

    ~basic_tcp() {
        for (peer_state& peer : peers_)
            for (lane& l : peer.lanes)
                if (l.socket.get() >= 0) ::shutdown(l.socket.get(), SHUT_WR);
    }

    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        peer_state& peer = of(to);
        if (peer.is_lost) return false;
        lane& l = pick(peer, from.size());
        if (l.link.full() || !l.link.open()) return false;
        detail::outgoing& message = l.link.push();
        detail::encode({.job = job_,
                        .epoch = epoch,
                        .incarnation = incarnation_,
                        .tag = tag,
                        .length = from.size(),
                        .source = static_cast<std::uint32_t>(rank_)},
                       message.header.data());
        message.from = from.data();
        message.length = from.size();
        message.token = token;
        flush(peer, l);
        return true;
    }

    bool post_receive(peer_id from, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        peer_state& peer = of(from);
        tag &= ~carried_bits;
        if (!peer.unexpected.empty() && take_unexpected(peer, tag, into, token)) return true;
        return peer.posted.insert({tag, token, into});
    }

    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        std::size_t count = done_.hand_out(on_completion);
        bool const ask = peers_.size() > Tuning.direct_peers;
        if (ask) ask_for_news();
        for (peer_state& peer : peers_)
            for (lane& l : peer.lanes) {
                short found = ask ? polled_[l.at].revents : static_cast<short>(POLLIN | POLLOUT);
                // What it waits for is a receive, or room; its message may lie here already.
                if (l.link.blocked()) found |= POLLIN;
                if (!l.link.open() || found == 0) continue;
                if (l.link.sending()) flush(peer, l);
                if ((found & ~POLLOUT) != 0 && l.link.open()) count += read(peer, l, on_completion);
            }
        return count + done_.hand_out(on_completion);
    }

    void wait(time_point until) noexcept {
        if (!done_.empty()) return;
        bool any = false;
        for (peer_state& peer : peers_)
            for (lane& l : peer.lanes) {
                int const events =
                    !l.link.open() ? 0 : (l.link.blocked() ? 0 : POLLIN) | (l.link.sending() ? POLLOUT : 0);
                // An event that nobody waits for, a hang-up say, would end the sleep at once.
                polled_[l.at] = {events != 0 ? l.link.descriptor() : -1, static_cast<short>(events), 0};
                any |= events != 0;
            }
        if (loop_)
            loop_->sleep(*loop_, lanes(), until);
        else
            sleep(any ? until : std::min(until, clock::now() + std::chrono::milliseconds(1)));
    }

    /// Whether a handler that ran in `wait` has thrown, and what: the first exception since it was last taken.
    ///
    /// Threads:  one that polls, and one that takes.
    bool has_exception() const noexcept { return loop_ && loop_->threw.load(std::memory_order_acquire); }
    std::exception_ptr take_exception() noexcept {
        if (!loop_) return nullptr;
        std::exception_ptr taken = std::exchange(loop_->thrown, nullptr);
        loop_->threw.store(false, std::memory_order_release);
        return taken;
    }

    /// Whether `wait` runs code of the program.
    bool runs_handlers() const noexcept { return loop_ != nullptr; }

    void wake() noexcept {
        if (loop_) return loop_->wake(*loop_);
        if (waking_.exchange(true)) return; // one that is on its way is enough
        std::uint64_t const one = 1;
        (void)!::write(waker_.get(), &one, sizeof one);
    }

    void register_memory(std::span<std::byte>) noexcept {}

    char const* describe(peer_id peer) const noexcept { return of(peer).reason; }

    /// Frames of another job or another sender, and connections that were not of this world.
    std::uint64_t dropped() const noexcept { return dropped_; }

  private:
    static constexpr std::uint32_t epoch = 0; // of the membership, which does not change yet
    // Of keeping one, without its bytes: also empty ones are bounded.
    static constexpr std::size_t unexpected_cost = 128;
    struct unexpected_message {
        std::uint64_t tag = 0;
        detail::fixed_array<std::byte> bytes;
        bool complete = false;
    };
    struct lane {
        detail::descriptor socket; // bytes go by `link`
        detail::tcp_link link;
        std::size_t at = 0; // among all lanes
        // the payload that is being read
        std::uint64_t token = 0;
        std::uint64_t tag = 0;
        std::size_t bytes = 0;
        enum { into_posted, into_unexpected, into_nowhere } destination = into_nowhere;
        unexpected_message* early = nullptr;
        detail::fixed_array<std::byte> bin;
    };
    struct peer_state {
        peer_id id{};
        int rank = -1;
        bool is_lost = false;
        std::uint32_t incarnation = 0; // that its frames must come from
        std::size_t next_lane = 0;
        detail::fixed_array<lane> lanes;
        detail::match_table posted;
        std::list<unexpected_message> unexpected;
        char reason[200] = "";
    };
    static std::size_t lanes_for(transport_needs const& wanted) noexcept {
        return wanted.peers.size() * static_cast<std::size_t>(Tuning.connections);
    }

    HERRING_SETUP basic_tcp(world& ranks, transport_needs const& wanted, detail::loop_handle loop)
        : rank_(ranks.rank()), job_(ranks.job()), largest_(wanted.largest_message),
          polled_(lanes_for(wanted) + 1), waker_(loop ? -1 : ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
          loop_(std::move(loop)) {
        if (!loop_ && waker_.get() < 0)
            throw error(errc::no_resources, rank_, -1, "connect",
                        {"no descriptor for waking: ", std::strerror(errno),
                         "; raise the limit of open files (ulimit -n)"});
        polled_[lanes_for(wanted)] = {waker_.get(), POLLIN, 0};
        if (wanted.peers.empty()) return;
        detail::tcp_connections made =
            detail::connect_all(ranks, wanted.peers, Tuning.connections, incarnation_, wanted.timeout);
        dropped_ = made.strangers;
        take_over(made, wanted);
        std::size_t const most = peers_.size() * (wanted.sends_per_peer + wanted.receives_per_peer + 1);
        done_ = detail::drain_buffer<completion>(most);
        ranks.barrier(wanted.timeout);
    }

    HERRING_SETUP void take_over(detail::tcp_connections& made, transport_needs const& wanted) {
        peers_ = detail::fixed_array<peer_state>(wanted.peers.size());
        for (std::size_t i = 0; i < peers_.size(); ++i) {
            peer_state& peer = peers_[i];
            peer.id = peer_id::at(i);
            peer.rank = wanted.peers[i];
            peer.posted = detail::match_table(wanted.receives_per_peer);
            peer.lanes = detail::fixed_array<lane>(static_cast<std::size_t>(Tuning.connections));
            for (int n = 0; n < Tuning.connections; ++n) {
                lane& l = peer.lanes[static_cast<std::size_t>(n)];
                l.at = i * peer.lanes.size() + static_cast<std::size_t>(n);
                l.socket = std::move(made.all[l.at].socket);
                int const number = l.socket.get();
                if (loop_) loop_->watch(*loop_, l.at, number, rank_);
                peer.incarnation = made.all[l.at].incarnation;
                prepare(number, wanted);
                l.link = detail::tcp_link(number, wanted.sends_per_peer);
            }
        }
    }

    HERRING_SETUP void prepare(int descriptor, transport_needs const& wanted) {
        auto const set = [&](int level, int option, int value) {
            (void)::setsockopt(descriptor, level, option, &value, sizeof value);
        };
        set(IPPROTO_TCP, TCP_NODELAY, 1);
        // Both are needed: keepalive sees a dead idle peer, the user timeout one that takes no data.
        set(SOL_SOCKET, SO_KEEPALIVE, 1);
        set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
        set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
        set(IPPROTO_TCP, TCP_KEEPCNT, 3);
        // Not less than usual: a call's own deadline may be longer than the one that calls have without.
        constexpr std::chrono::milliseconds most{std::numeric_limits<int>::max()};
        set(IPPROTO_TCP, TCP_USER_TIMEOUT,
            static_cast<int>(std::clamp(wanted.timeout, detail::usual_timeout, most).count()));
        auto const ask = [&](char const* algorithm) {
            return ::setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, algorithm,
                                static_cast<socklen_t>(std::strlen(algorithm))) == 0;
        };
        if constexpr (Tuning.control == congestion::unpaced) {
            if (!ask("reno")) (void)ask("cubic");
        } else if constexpr (Tuning.control != congestion::system) {
            constexpr char const* algorithm = Tuning.control == congestion::reno    ? "reno"
                                              : Tuning.control == congestion::cubic ? "cubic"
                                                                                    : "bbr";
            if (!ask(algorithm))
                throw error(errc::unsupported, rank_, -1, "connect",
                            {"the kernel does not offer congestion control '", algorithm,
                             "': see /proc/sys/net/ipv4/tcp_allowed_congestion_control, or use "
                             "congestion::unpaced"});
        }
    }

    peer_state& of(peer_id peer) noexcept { return peers_[peer.place()]; }
    peer_state const& of(peer_id peer) const noexcept { return peers_[peer.place()]; }

    std::span<pollfd> lanes() noexcept { return {polled_.data(), polled_.size() - 1}; }

    void sleep(time_point until) noexcept {
        auto const left = until - clock::now();
        if (left <= left.zero()) return;
        timespec const most = detail::timespec_of(left);
        if (::ppoll(polled_.data(), polled_.size(), &most, nullptr) <= 0 ||
            polled_[lanes().size()].revents == 0)
            return;
        std::uint64_t count = 0;
        (void)!::read(waker_.get(), &count, sizeof count);
        // After the read: what a thread that finds it set has to say is seen when this returns.
        (void)waking_.exchange(false);
    }

    // Which of many connections have something to read, or take something: one call instead of one each.
    void ask_for_news() noexcept {
        for (peer_state& peer : peers_)
            for (lane& l : peer.lanes) {
                bool const writing = l.link.open() && l.link.sending();
                polled_[l.at] = {l.link.descriptor(), static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN),
                                 0};
            }
        if (::poll(polled_.data(), lanes().size(), 0) < 0) // out of kernel memory, say: try them all
            for (pollfd& p : lanes()) p.revents = POLLIN | POLLOUT;
    }

    static lane& pick(peer_state& peer, std::size_t bytes) noexcept {
        if constexpr (Tuning.connections == 1) return peer.lanes[0];
        if (bytes < 64_KiB) return peer.lanes[0];
        peer.next_lane = (peer.next_lane + 1) % peer.lanes.size();
        return peer.lanes[peer.next_lane];
    }

    void flush(peer_state& peer, lane& l) noexcept {
        auto const sent = [&](std::uint64_t token, std::size_t bytes) {
            done_.push(completion{token, bytes, peer.id, completion::sent, errc::ok});
        };
        if (l.link.write(sent) == detail::link_state::failed) lose(peer, l.link.error_number());
    }

    template <class OnCompletion>
    std::size_t read(peer_state& peer, lane& l, OnCompletion& on_completion) noexcept {
        std::size_t count = 0;
        auto const place = [&](detail::frame const& header) noexcept { return this->place(peer, l, header); };
        auto const received = [&]() noexcept {
            if (l.destination == lane::into_posted) {
                on_completion(completion{l.token, l.bytes, peer.id, completion::received, errc::ok, l.tag});
                ++count;
            } else if (l.destination == lane::into_unexpected) {
                arrived_early(peer, *l.early);
            }
        };
        switch (l.link.read(4, place, received)) {
        case detail::link_state::ok:
            break;
        case detail::link_state::closed:
            close(peer, l);
            break;
        case detail::link_state::failed:
            lose(peer, l.link.error_number());
            break;
        case detail::link_state::junk:
            lose(peer, EPROTO);
            break;
        }
        return count;
    }

    /// Where the payload of this header goes. Nothing is believed before it is checked against the plan's bounds.
    std::byte* place(peer_state& peer, lane& l, detail::frame const& header) noexcept {
        l.bytes = static_cast<std::size_t>(header.length);
        l.tag = header.tag;
        if (header.length > largest_) {
            std::snprintf(
                peer.reason, sizeof peer.reason,
                "it announced a message of %llu bytes where at most %zu can be due: do all ranks call the "
                "same operations with the same sizes?",
                static_cast<unsigned long long>(header.length), largest_);
            lose(peer, EMSGSIZE);
            return nullptr;
        }
        if (header.job != job_ || header.epoch != epoch || header.incarnation != peer.incarnation ||
            header.source != static_cast<std::uint32_t>(peer.rank)) {
            ++dropped_;
            l.destination = lane::into_nowhere;
            if (l.bin.size() <= l.bytes && !room(peer, l.bin, l.bytes + 1)) return nullptr;
            return l.bin.data();
        }
        detail::posted_receive match;
        if (peer.posted.take(header.tag & ~carried_bits, match)) {
            if (match.into.size() < header.length) {
                std::snprintf(
                    peer.reason, sizeof peer.reason,
                    "it sent %llu bytes where %zu were due: do all ranks call the same operations with the "
                    "same sizes?",
                    static_cast<unsigned long long>(header.length), match.into.size());
                lose(peer, EMSGSIZE);
                return nullptr;
            }
            l.destination = lane::into_posted;
            l.token = match.token;
            return match.into.data() != nullptr ? match.into.data() : &nothing_;
        }
        if (unexpected_bytes_ + l.bytes + unexpected_cost > Tuning.unexpected_bytes)
            return nullptr; // left in the socket for now
        detail::fixed_array<std::byte> bytes;
        if (!room(peer, bytes, l.bytes)) return nullptr;
        try {
            l.early = &peer.unexpected.emplace_back();
        } catch (std::bad_alloc const&) {
            return out_of_memory(peer, l.bytes), nullptr;
        }
        unexpected_bytes_ += l.bytes + unexpected_cost;
        l.destination = lane::into_unexpected;
        l.early->tag = header.tag;
        l.early->bytes = std::move(bytes);
        return l.bytes > 0 ? l.early->bytes.data() : &nothing_;
    }

    /// Makes `to` a table of so many bytes. False: there is no memory, and the peer is lost.
    HERRING_SETUP bool room(peer_state& peer, detail::fixed_array<std::byte>& to,
                            std::size_t bytes) noexcept {
        try {
            to = detail::fixed_array<std::byte>(bytes);
            return true;
        } catch (std::bad_alloc const&) {
            out_of_memory(peer, bytes);
            return false;
        }
    }
    HERRING_SETUP void out_of_memory(peer_state& peer, std::size_t bytes) noexcept {
        std::snprintf(peer.reason, sizeof peer.reason,
                      "this rank has no memory for a message of %zu bytes that came before its receive; "
                      "raise the limit "
                      "(ulimit -v, cgroup), or lower tcp_tuning::unexpected_bytes",
                      bytes);
        lose(peer, ENOMEM);
    }

    /// A message is complete before a receive was found for it; one may have been posted while it came in.
    void arrived_early(peer_state& peer, unexpected_message& message) noexcept {
        message.complete = true;
        detail::posted_receive match;
        if (peer.posted.take(message.tag & ~carried_bits, match))
            take_unexpected(peer, match.tag, match.into, match.token);
    }

    bool take_unexpected(peer_state& peer, std::uint64_t tag, std::span<std::byte> into,
                         std::uint64_t token) noexcept {
        auto const found = std::find_if(peer.unexpected.begin(), peer.unexpected.end(), [&](auto const& m) {
            return (m.tag & ~carried_bits) == tag && m.complete;
        });
        if (found == peer.unexpected.end()) return false;
        std::size_t const bytes = found->bytes.size();
        if (bytes > into.size()) {
            std::snprintf(peer.reason, sizeof peer.reason, "it sent %zu bytes where %zu were due", bytes,
                          into.size());
            lose(peer, EMSGSIZE);
            return true;
        }
        if (bytes > 0) std::memcpy(into.data(), found->bytes.data(), bytes);
        done_.push(completion{token, bytes, peer.id, completion::received, errc::ok, found->tag});
        unexpected_bytes_ -= bytes + unexpected_cost;
        peer.unexpected.erase(found);
        return true;
    }

    HERRING_SETUP void end(lane& ended) noexcept {
        ended.link.forget();
        if (loop_ && ended.socket.get() >= 0) loop_->forget(*loop_, ended.at);
        ended.socket = detail::descriptor();
    }

    // The peer has left in order, on this connection: what it sent on the others is still to be read.
    HERRING_SETUP void close(peer_state& peer, lane& closed) noexcept {
        end(closed);
        for (lane const& l : peer.lanes)
            if (l.link.open()) return;
        lose(peer, 0);
    }

    HERRING_SETUP void lose(peer_state& peer, int number) noexcept {
        if (peer.is_lost) return;
        peer.is_lost = true;
        if (number == 0)
            std::snprintf(
                peer.reason, sizeof peer.reason,
                "its connection closed: it destroyed its reducer while others still wait for it, or its "
                "process ended; let every rank make the same calls, or see what ended it");
        else if (number == EPROTO)
            std::snprintf(peer.reason, sizeof peer.reason,
                          "it sent bytes that are no frame of this protocol");
        else if (peer.reason[0] == 0)
            std::snprintf(peer.reason, sizeof peer.reason, "its connection broke: %s", std::strerror(number));
        for (lane& l : peer.lanes) end(l);
        errc const why = number == EPROTO     ? errc::protocol
                         : number == EMSGSIZE ? errc::mismatch
                         : number == ENOMEM   ? errc::no_resources
                                              : errc::peer_lost;
        done_.push(completion{0, 0, peer.id, completion::lost, why});
    }

    int rank_;
    std::uint64_t job_;
    std::uint32_t const incarnation_ = static_cast<std::uint32_t>(detail::random_bits());
    std::size_t largest_;
    detail::fixed_array<peer_state> peers_;
    detail::fixed_array<pollfd> polled_;
    detail::drain_buffer<completion> done_;
    std::size_t unexpected_bytes_ = 0;
    std::uint64_t dropped_ = 0;
    std::byte nothing_{};
    std::atomic<bool> waking_{false};
    detail::descriptor waker_; // without a loop of the caller's
    detail::loop_handle loop_; // the first to go: it refers to the sockets
};

/// TCP with the settings that suit a rack: `basic_tcp<tcp_tuning{.chunk_bytes = 32_KiB}>` has others
/// (`using namespace herring::literals;`).
using tcp = basic_tcp<>;

/// For links of about 1 Gbit/s: short windows, so that what several ranks push to one does not overflow the queue of
/// the switch's port (256 kB with four hosts), and small chunks, so that such a link's pipeline fills soon.
inline constexpr tcp_tuning slow_link_tuning{
    .chunk_bytes = 16_KiB, .window_bytes = 32_KiB, .one_hop_bytes = 4_KiB, .pair_bytes = 256_KiB};
using tcp_over_slow_links = basic_tcp<slow_link_tuning>;
static_assert(transport_policy<tcp>);

} // namespace HERRING_NAMESPACE::transport

#endif // HERRING_TRANSPORT_TCP_HPP

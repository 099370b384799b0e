// herring: messages over TCP: scatter/gather reads and writes between sockets and posted memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_HPP
#define HERRING_TRANSPORT_TCP_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/machine/identity.hpp"
#include "herring/model/tunings.hpp"
#include "herring/policy/names.hpp"
#include "herring/transport/tcp/connections.hpp"
#include "herring/transport/tcp/frame.hpp"
#include "herring/transport/tcp/inbox.hpp"
#include "herring/transport/tcp/sleep.hpp"
#include "herring/transport/tcp/socket_options.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <poll.h>
#include <span>
#include <sys/socket.h>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Demands on the tuning, as a need of the transport: a pack reports it once. Clang would add a message to an
/// assertion in the class itself.
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
/// Facts:     messages of up to 1 TiB, in order with one connection a peer; no registration, host memory
///            only.
/// Interface: binds to `world.local_address()`: the interface that routes to the peers, or HERRING_INTERFACE.
/// Threads:   one at a time; `wake` from any. With the caller's `io_context`
///            (`herring/transport/tcp_asio.hpp`), `wait` runs that, so that handlers of the program go on
///            while a reduction waits. No other thread may run it meanwhile, and it must outlive the reducer.
///            The first exception of a handler leaves the call of the reducer that ran the handler, when that
///            call ends (the step is complete). An exception during the destruction of the reducer is thrown
///            by the next run of the io_context. A handler must not call a reducer that waits: that is
///            refused.
/// Cost:      one `sendmsg` for up to 16 messages, about one `recvmsg` a socket buffer; one `recv` a peer
///            that has sent nothing (with more than `direct_peers` one `poll` for all); no copy and no
///            allocation unless a message comes before its receive is posted.
/// Errors:    construction: `unreachable`, `no_resources`, `timeout` naming the peer. Later: `lost`, with the
///            reason.
template <tcp_tuning Tuning> class basic_tcp {
  public:
    using axis = axes::transport;
    static constexpr char const* name = "tcp";
    static constexpr transport_facts facts{
        .max_message = std::size_t{1} << 40,
        .keeps_order = Tuning.connections == 1,
        .runs_handlers = true,
        .envelope_bytes = detail::most_envelope_bytes,
        .tuning = {.chunk_bytes = Tuning.chunk_bytes,
                   .window_bytes = Tuning.window_bytes,
                   .one_hop_bytes = Tuning.one_hop_bytes,
                   .one_hop_bytes_two_nodes = Tuning.one_hop_bytes_two_nodes,
                   .message_ns = Tuning.message_ns,
                   .latency_ns = Tuning.latency_ns,
                   .dissemination_bytes = Tuning.dissemination_bytes,
                   .whole_bytes = Tuning.whole_bytes,
                   .two_level_bytes = Tuning.two_level_bytes},
        .same_host_tuning = {.chunk_bytes = Tuning.loopback_chunk_bytes,
                             .window_bytes = Tuning.loopback_window_bytes,
                             .one_hop_bytes = Tuning.one_hop_bytes,
                             .one_hop_bytes_two_nodes = Tuning.one_hop_bytes_two_nodes,
                             .message_ns = Tuning.message_ns,
                             .latency_ns = Tuning.loopback_latency_ns,
                             .dissemination_bytes = Tuning.dissemination_bytes,
                             .whole_bytes = Tuning.whole_bytes,
                             .two_level_bytes = Tuning.two_level_bytes}};
    using needs =
        herring::needs<detail::tcp_numbers<Tuning.connections, Tuning.chunk_bytes, Tuning.window_bytes,
                                           Tuning.loopback_chunk_bytes, Tuning.loopback_window_bytes>>;

    basic_tcp(world& ranks, transport_needs const& wanted)
        : basic_tcp(ranks, wanted, detail::loop_handle()) {}
    /// Sleeps in an event loop of the program, a `boost::asio::io_context`; needs
    /// `herring/transport/tcp_asio.hpp`.
    template <class Loop>
    basic_tcp(world& ranks, transport_needs const& wanted, Loop& loop)
        : basic_tcp(ranks, wanted, detail::outer_loop_of(loop, lanes_for(wanted))) {}
    basic_tcp(basic_tcp const&) = delete;
    basic_tcp& operator=(basic_tcp const&) = delete;

    ~basic_tcp() {
        for (peer_state& peer : peers_)
            for (lane& l : peer.lanes) {
                if (l.socket.get() < 0) continue;
                if (loop_) loop_->forget(*loop_, l.at);
                (void)l.socket.release();
                l.watched.keep(); // the last messages may be in flight
            }
    }

    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        return send(to, tag, {}, from, token);
    }
    /// The same with an envelope, which follows the header of the frame. More than 32 bytes are refused.
    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> envelope,
                   std::span<std::byte const> from, std::uint64_t token) noexcept {
        return envelope.size() <= facts.envelope_bytes && send(to, tag, envelope, from, token);
    }

    bool post_receive(peer_id from, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        peer_state& peer = of(from);
        detail::posted_receive const receive{tag & ~carried_bits, token, into};
        if (!peer.unexpected.empty() && inbox_.take(peer, receive, done_, losing())) return true;
        return peer.posted.insert(receive);
    }

    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        std::size_t count = inbox_.hand_out(done_, on_completion);
        bool const ask = peers_.size() > Tuning.direct_peers;
        if (ask) ask_for_news();
        for (peer_state& peer : peers_)
            for (lane& l : peer.lanes) {
                short found = ask ? polled_[l.at].revents : static_cast<short>(POLLIN | POLLOUT);
                // A blocked message waits for a receive or for room, and may be read already.
                if (l.in.is_blocked()) found |= POLLIN;
                if (!l.is_open() || found == 0) continue;
                if (!l.out.is_empty()) flush(peer, l);
                if ((found & ~POLLOUT) != 0 && l.is_open()) count += read(peer, l, on_completion);
            }
        return count + inbox_.hand_out(done_, on_completion);
    }

    /// Reads from this peer only, without a look at the others; writes to all peers. Reads nothing if there
    /// are completions already: they may be all that is waited for, and the next poll comes at once.
    template <class OnCompletion> std::size_t poll_from(peer_id from, OnCompletion&& on_completion) noexcept {
        std::size_t count = inbox_.hand_out(done_, on_completion);
        if (count > 0) return count;
        for (peer_state& peer : peers_)
            for (lane& l : peer.lanes) {
                if (l.is_open() && !l.out.is_empty()) flush(peer, l);
                if (peer.id == from && l.is_open()) count += read(peer, l, on_completion);
            }
        return count + inbox_.hand_out(done_, on_completion);
    }

    void wait(time_point until) noexcept {
        if (!done_.empty()) return;
        bool any = false;
        for (peer_state& peer : peers_)
            for (lane& l : peer.lanes) {
                int const events =
                    !l.is_open() ? 0 : (l.in.is_blocked() ? 0 : POLLIN) | (!l.out.is_empty() ? POLLOUT : 0);
                // A negative descriptor: an event that is not wanted, as a hang-up, would end the sleep at
                // once.
                polled_[l.at] = {events != 0 ? l.socket.get() : -1, static_cast<short>(events), 0};
                any |= events != 0;
            }
        if (loop_)
            loop_->sleep(*loop_, lanes(), until);
        else
            waker_.sleep({polled_.data(), polled_.size()},
                         any ? until : std::min(until, clock::now() + std::chrono::milliseconds(1)));
    }

    /// True if a handler that ran in `wait` has thrown since the last `take_exception`.
    ///
    /// Threads:  the thread that polls, and the thread that calls `take_exception`.
    bool has_exception() const noexcept { return loop_ && loop_->threw.load(std::memory_order_acquire); }
    /// Hands over the first exception since the last call.
    std::exception_ptr take_exception() noexcept {
        if (!loop_) return nullptr;
        std::exception_ptr taken = std::exchange(loop_->thrown, nullptr);
        loop_->threw.store(false, std::memory_order_release);
        return taken;
    }

    /// True if `wait` runs code of the program.
    bool runs_handlers() const noexcept { return loop_ != nullptr; }

    void wake() noexcept {
        if (loop_) return loop_->wake(*loop_);
        waker_.wake();
    }

    void register_memory(std::span<std::byte>) noexcept {}

    char const* describe(peer_id peer) const noexcept { return of(peer).reason; }

    /// Returns the number of frames of another job or another sender, and of connections from outside this
    /// world.
    std::uint64_t dropped() const noexcept { return rejected_ + inbox_.dropped(); }

  private:
    using peer_state = detail::tcp_peer;
    using lane = detail::tcp_lane;

    static std::size_t lanes_for(transport_needs const& wanted) noexcept {
        return wanted.peers.size() * static_cast<std::size_t>(Tuning.connections);
    }

    HERRING_SETUP basic_tcp(world& ranks, transport_needs const& wanted, detail::loop_handle loop)
        : rank_(ranks.rank()), job_(ranks.job()),
          inbox_(ranks.job(), wanted.largest_message, Tuning.unexpected_bytes),
          polled_(lanes_for(wanted) + 1), waker_(!loop, rank_), loop_(std::move(loop)) {
        polled_[lanes_for(wanted)] = {waker_.descriptor(), POLLIN, 0};
        if (wanted.peers.empty()) return;
        detail::tcp_connections connections =
            detail::connect_all(ranks, wanted.peers, Tuning.connections, incarnation_, wanted.timeout);
        rejected_ = connections.rejected;
        take_over(ranks, connections, wanted);
        std::size_t const most = peers_.size() * (wanted.sends_per_peer + wanted.receives_per_peer + 1);
        done_ = detail::drain_buffer<completion>(most);
        ranks.barrier(wanted.timeout);
    }

    HERRING_SETUP void take_over(world& ranks, detail::tcp_connections& connections,
                                 transport_needs const& wanted) {
        peers_ = detail::fixed_array<peer_state>(wanted.peers.size());
        for (std::size_t i = 0; i < peers_.size(); ++i) {
            peer_state& peer = peers_[i];
            peer.id = peer_id::at(i);
            peer.rank = wanted.peers[i];
            peer.posted = detail::match_table(wanted.receives_per_peer);
            peer.lanes = detail::fixed_array<lane>(static_cast<std::size_t>(Tuning.connections));
            for (std::size_t n = 0; n < peer.lanes.size(); ++n) {
                lane& l = peer.lanes[n];
                l.at = i * peer.lanes.size() + n;
                l.socket = std::move(connections.all[l.at].socket);
                int const socket = l.socket.get();
                if (loop_) loop_->watch(*loop_, l.at, socket, rank_);
                peer.incarnation = connections.all[l.at].incarnation;
                detail::set_data_socket_options(socket, Tuning.control, wanted.timeout, rank_);
                l.out = detail::tcp_writer(wanted.sends_per_peer);
                l.in = detail::tcp_reader(detail::tcp_stash_bytes);
                l.watched = detail::data_socket(ranks.state().data, peer.rank, socket);
            }
        }
    }

    peer_state& of(peer_id peer) noexcept { return peers_[peer.place()]; }
    peer_state const& of(peer_id peer) const noexcept { return peers_[peer.place()]; }

    std::span<pollfd> lanes() noexcept { return {polled_.data(), polled_.size() - 1}; }

    // Finds the connections that can be read or written, by one call for all.
    void ask_for_news() noexcept {
        for (peer_state& peer : peers_)
            for (lane& l : peer.lanes) {
                bool const writing = l.is_open() && !l.out.is_empty();
                polled_[l.at] = {l.socket.get(), static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN), 0};
            }
        if (::poll(polled_.data(), lanes().size(), 0) < 0) // for example ENOMEM: try all
            for (pollfd& p : lanes()) p.revents = POLLIN | POLLOUT;
    }

    HERRING_ALWAYS_INLINE bool send(peer_id to, std::uint64_t tag, std::span<std::byte const> envelope,
                                    std::span<std::byte const> from, std::uint64_t token) noexcept {
        peer_state& peer = of(to);
        if (peer.is_lost) return false;
        lane& l = pick(peer, from.size());
        if (l.out.is_full() || !l.is_open()) return false;
        detail::tcp_writer::message& message = l.out.push();
        std::byte* const header = message.head.data();
        detail::encode({.job = job_,
                        .incarnation = incarnation_,
                        .tag = tag,
                        .length = from.size(),
                        .source = static_cast<std::uint32_t>(rank_),
                        .envelope = static_cast<std::uint32_t>(envelope.size())},
                       header);
        if (!envelope.empty()) std::memcpy(header + detail::frame_bytes, envelope.data(), envelope.size());
        message.from = from.data();
        message.length = from.size();
        message.note = token;
        message.head_bytes = detail::frame_bytes + envelope.size();
        flush(peer, l);
        return true;
    }

    static lane& pick(peer_state& peer, std::size_t bytes) noexcept {
        if constexpr (Tuning.connections == 1) return peer.lanes[0];
        if (bytes < 64_KiB) return peer.lanes[0];
        peer.next_lane = (peer.next_lane + 1) % peer.lanes.size();
        return peer.lanes[peer.next_lane];
    }

    void flush(peer_state& peer, lane& l) noexcept {
        auto const left = [&](detail::tcp_writer::message const& message) {
            done_.push(completion{message.note, message.length, peer.id, completion::sent, errc::ok});
        };
        if (int const number = l.out.write(l.socket, left); number != 0) lose(peer, number);
    }

    template <class OnCompletion>
    std::size_t read(peer_state& peer, lane& l, OnCompletion& on_completion) noexcept {
        std::size_t count = 0;
        auto const destination = [&](detail::frame const& header,
                                     std::span<std::byte const> envelope) noexcept {
            return inbox_.destination(peer, l, header, envelope, losing());
        };
        auto const received = [&](detail::frame const& header) noexcept {
            if (l.early != nullptr) return inbox_.complete(peer, *l.early, done_, losing());
            on_completion(completion{l.token, static_cast<std::size_t>(header.length), peer.id,
                                     completion::received, errc::ok, header.tag, l.envelope.view()});
            ++count;
        };
        switch (l.in.read(l.socket, 4, destination, received)) {
        case detail::stream_state::ok:
            break;
        case detail::stream_state::closed:
            close(peer, l);
            break;
        case detail::stream_state::failed:
            lose(peer, errno);
            break;
        case detail::stream_state::junk:
            lose(peer, EPROTO);
            break;
        }
        return count;
    }

    /// Returns the functor by which the inbox reports a peer that cannot go on.
    auto losing() noexcept {
        return [this](peer_state& peer, int number) noexcept { lose(peer, number); };
    }

    HERRING_SETUP void end(lane& ended) noexcept {
        if (loop_ && ended.socket.get() >= 0) loop_->forget(*loop_, ended.at);
        ended.watched.reset();
        ended.socket = detail::descriptor();
    }

    // The peer has closed this connection in order; its other connections are still read.
    HERRING_SETUP void close(peer_state& peer, lane& closed) noexcept {
        end(closed);
        for (lane const& l : peer.lanes)
            if (l.is_open()) return;
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
    detail::tcp_inbox inbox_;
    detail::fixed_array<peer_state> peers_;
    detail::fixed_array<pollfd> polled_; // one a connection, and the waker's
    detail::drain_buffer<completion> done_;
    std::uint64_t rejected_ = 0; // connections
    detail::tcp_waker waker_;    // used without a loop of the program
    detail::loop_handle loop_;   // destroyed first: it refers to the sockets
};

/// TCP with settings that suit a rack. Other settings: `basic_tcp<tcp_tuning{.chunk_bytes = 32_KiB}>`, with
/// `using namespace herring::literals;`.
using tcp = basic_tcp<>;

/// Settings for links of about 1 Gbit/s: short windows, so that pushes of several ranks to one do not
/// overflow the queue of the switch's port (256 kB with four hosts), and small chunks, so that the pipeline
/// fills soon. A whole bucket at one server, like one hop, takes N − 1 times the bytes over one link: both
/// end where that takes longer than a message.
inline constexpr tcp_tuning slow_link_tuning{.chunk_bytes = 16_KiB,
                                             .window_bytes = 32_KiB,
                                             .one_hop_bytes = 4_KiB,
                                             .one_hop_bytes_two_nodes = 256_KiB,
                                             .whole_bytes = 4_KiB};
using tcp_over_slow_links = basic_tcp<slow_link_tuning>;
static_assert(transport_policy<tcp>);

} // namespace HERRING_NAMESPACE::transport

#include "herring/base/compiled_apart.hpp"

#endif // HERRING_TRANSPORT_TCP_HPP

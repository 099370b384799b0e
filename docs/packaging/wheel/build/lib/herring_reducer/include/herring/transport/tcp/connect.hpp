// herring: establishes data connections: listen, connect, exchange hellos; other connections are rejected.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_CONNECT_HPP
#define HERRING_TRANSPORT_TCP_CONNECT_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/world.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/net/sockets.hpp"
#include "herring/transport/tcp/frame.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Connects this rank with each of its peers, `lanes` times. The lower rank of a pair connects, the higher
/// accepts.
///
/// An accepted connection has 5 s to say hello, a frame header with the world's job, its rank and its lane,
/// and to prove it:
///
/// lower → higher hello
///     higher → lower nonce
///     lower → higher nonce, proof (an HMAC of the hello and both nonces, by a key of the pair:
///     world::derive_key)
///     higher → lower hello, proof (of all messages before, by the same key)
///
/// A recorded proof proves nothing to a new nonce, and an end's own proof nothing to itself. In a world
/// without a secret the key is none. Anything else (a port scanner, another job, an unexpected rank, a lane
/// twice, a wrong proof) is closed and counted; of too many unidentified connections the oldest that has not
/// said hello is closed. A rank without an answer connects again, so other connections hold no rank up for
/// long.
///
/// Blocks: in the constructor, until all are connected, a rank failed, or `timeout`.
/// Errors: `no_resources`, `unreachable`, `timeout` naming the peer.
class tcp_connector {
  public:
    static constexpr std::size_t most_pending = 64;
    static constexpr std::chrono::seconds hello_time{5};

    HERRING_SETUP tcp_connector(world& ranks, std::span<int const> peers, int lanes,
                                std::uint32_t incarnation, std::chrono::milliseconds timeout)
        : ranks_(ranks), incarnation_(incarnation), deadline_(clock::now() + timeout) {
        listen();
        auto const all = ranks.all_gather(here_.bytes(), timeout);
        attempts_ = fixed_array<attempt>(peers.size() * static_cast<std::size_t>(lanes));
        polled_ = fixed_array<pollfd>(1 + most_pending + attempts_.size());
        std::size_t begun = 0;
        for (int const peer : peers) {
            endpoint there;
            if (!there.read(all[static_cast<std::size_t>(peer)]))
                throw error(
                    errc::protocol, ranks.rank(), peer, "connect",
                    "it says that it listens at what is no address; see that every rank runs the same build");
            for (int lane = 0; lane < lanes; ++lane) {
                attempt& l = attempts_[begun++];
                l.peer = peer;
                l.lane = lane;
                l.there = there;
                l.dials = peer > ranks.rank();
                if (l.dials) dial(l);
            }
        }
        while (std::any_of(attempts_.begin(), attempts_.end(), [](attempt const& l) { return !l.ready; })) {
            ranks.check();
            if (clock::now() >= deadline_) throw_timeout();
            step();
        }
    }

    /// The number of connections that were not of this world.
    std::uint64_t rejected() const noexcept { return rejected_; }

    /// A lane of a peer: the connected, non-blocking descriptor, which the caller owns from then on, and the
    /// incarnation of the peer that answered.
    struct connected {
        int descriptor = -1;
        std::uint32_t incarnation = 0;
    };
    connected release(int peer, int lane) noexcept {
        for (attempt& l : attempts_)
            if (l.peer == peer && l.lane == lane) return {l.socket.release(), l.incarnation};
        return {};
    }

  private:
    static constexpr std::size_t nonce_bytes = 32, proof_bytes = sizeof(sha256_digest);
    using nonce = std::array<std::byte, nonce_bytes>;

    struct attempt {
        int peer = -1;
        int lane = 0;
        endpoint there{};
        bool dials = false;
        bool ready = false;
        bool greeted = false;          // the hello is sent, the reply is due
        std::uint32_t incarnation = 0; // of the peer
        descriptor socket{};
        time_point again{};   // time of the next try, while there is no socket
        int why = 0;          // errno of the last try
        time_point refused{}; // since then every try was refused
        frame_buffer hello{}; // of this rank
        nonce own{};          // of this try
        std::array<std::byte, nonce_bytes + frame_bytes + proof_bytes>
            read{};          // nonce, hello and proof of the peer
        std::size_t got = 0; // bytes of `read`

        bool proved() const noexcept { return got >= nonce_bytes; } // its nonce is here, and answered
    };
    struct unidentified_connection {
        descriptor socket{};
        time_point until{};
        nonce own{};
        std::array<std::byte, frame_bytes + nonce_bytes + proof_bytes> read{}; // hello, nonce and proof
        std::size_t got = 0;

        bool greeted() const noexcept { return got >= frame_bytes; } // its hello is here, and answered
    };

    static constexpr std::uint64_t hello_tag = 0x68656c6c6f000000u; // "hello", then the lane

    HERRING_SETUP void listen() {
        std::string why;
        auto const found = resolve(ranks_.local_address(), 0, deadline_, why);
        if (found.empty())
            throw error(errc::unreachable, ranks_.rank(), -1, "listen",
                        {"'", ranks_.local_address(), "' is no address of this machine: ", why});
        listener_ = descriptor(listen_on(found[0]));
        if (listener_.get() < 0)
            throw error(errc::no_resources, ranks_.rank(), -1, "listen",
                        {"cannot listen on ", ranks_.local_address(), ": ", std::strerror(errno),
                         "; check HERRING_INTERFACE, the free ports and the limit of open files"});
        here_ = local_end(listener_.get());
    }

    /// Waits until something can be done, at most 50 ms, and does it.
    HERRING_SETUP void step() {
        std::size_t count = 0;
        polled_[count++] = {listener_.get(), POLLIN, 0};
        for (unidentified_connection const& s : unidentified())
            polled_[count++] = {s.socket.get(), POLLIN, 0};
        for (attempt const& l : attempts_)
            polled_[count++] = {l.dials && !l.ready ? l.socket.get() : -1,
                                static_cast<short>(l.greeted ? POLLIN : POLLOUT), 0};
        if (::poll(polled_.data(), count, 50) < 0 && errno != EINTR) return;
        std::size_t at = 1;
        for (unidentified_connection& s : unidentified())
            if (polled_[at++].revents != 0) read_hello(s);
        for (attempt& l : attempts_) {
            if (polled_[at++].revents != 0) l.greeted ? read_answer(l) : send_first(l);
            if (l.dials && !l.ready && l.socket.get() < 0 && clock::now() >= l.again) dial(l);
        }
        time_point const now = clock::now();
        for (unidentified_connection& s : unidentified()) {
            if (s.socket.get() >= 0 && now < s.until) continue;
            rejected_ += s.got < s.read.size() || s.socket.get() >= 0 ? 1u : 0u;
            s = unidentified_connection();
        }
        compact();
        if (polled_[0].revents != 0) accept();
    }

    HERRING_SETUP void accept() {
        for (bool first = true;; first = false) {
            endpoint from;
            descriptor next = accept_next(listener_.get(), from);
            if (next.get() < 0) {
                // The kernel looks for a descriptor before it looks for a connection: poll has announced only
                // the first.
                if (first && out_of_sockets(errno)) out_of_descriptors();
                return;
            }
            if (unidentified_count_ == most_pending) drop_oldest();
            unidentified_connection& s = unidentified_[unidentified_count_++];
            s = unidentified_connection(); // a moved-from entry had bytes
            s.socket = std::move(next);
            s.until = clock::now() + hello_time;
        }
    }

    std::span<unidentified_connection> unidentified() noexcept {
        return {unidentified_.data(), unidentified_count_};
    }
    // Removes entries without a socket.
    HERRING_SETUP void compact() noexcept {
        std::size_t kept = 0;
        for (unidentified_connection& s : unidentified()) {
            if (s.socket.get() < 0) continue;
            if (&s != &unidentified_[kept]) unidentified_[kept] = std::move(s);
            ++kept;
        }
        unidentified_count_ = kept;
    }

    // Closes the oldest connection that has not said hello, or else the oldest. Its hello may have come by
    // now: many ranks may connect at once.
    HERRING_SETUP void drop_oldest() {
        unidentified_connection* oldest = &unidentified_[0];
        for (unidentified_connection& s : unidentified()) {
            if (s.greeted()) continue;
            oldest = &s;
            break;
        }
        bool const was_silent = !oldest->greeted();
        read_hello(*oldest);
        if (was_silent && oldest->greeted() && oldest->until != time_point{}) return drop_oldest();
        if (oldest->socket.get() >= 0) ++rejected_;
        *oldest = unidentified_connection();
        compact();
    }

    // Closes the oldest unidentified connection, as no descriptor is left, or throws if there is none.
    HERRING_SETUP void out_of_descriptors() {
        int const why = errno;
        if (unidentified_count_ > 0) return drop_oldest();
        throw error(errc::no_resources, ranks_.rank(), -1, "connect",
                    {"no more sockets: ", std::strerror(why), "; raise the limit of open files (ulimit -n)"});
    }

    // Reads at most the bytes that are due: a hello, then nonce and proof.
    HERRING_SETUP void read_hello(unidentified_connection& from) {
        std::size_t const due = from.greeted() ? from.read.size() : frame_bytes;
        ssize_t const got = ::recv(from.socket.get(), from.read.data() + from.got, due - from.got, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got > 0) from.got += static_cast<std::size_t>(got);
        if (got > 0 && from.got < due) return;
        if (got <= 0 || !(due == frame_bytes ? challenge(from) : accept_proof(from)))
            from.until = time_point{};
    }

    /// Returns the attempt that is due and that the hello belongs to; nullptr without.
    HERRING_SETUP attempt* due(unidentified_connection const& from, frame& hello) {
        if (!decode(std::span(from.read).first<frame_bytes>(), hello) || hello.job != ranks_.job() ||
            hello.length != 0 || hello.epoch != 0)
            return nullptr;
        for (attempt& l : attempts_) {
            if (l.dials || l.ready || static_cast<std::uint32_t>(l.peer) != hello.source) continue;
            if (hello.tag == (hello_tag | static_cast<std::uint64_t>(l.lane))) return &l;
        }
        return nullptr;
    }

    HERRING_SETUP bool challenge(unidentified_connection& from) {
        frame hello;
        if (due(from, hello) == nullptr) return false;
        from.own = random_nonce();
        return send_whole(from.socket.get(), from.own);
    }

    HERRING_SETUP bool accept_proof(unidentified_connection& from) {
        frame hello;
        attempt* const l = due(from, hello);
        if (l == nullptr) return false;
        auto const all = std::span<std::byte const>(from.read);
        auto const said = all.first(frame_bytes), theirs = all.subspan(frame_bytes, nonce_bytes);
        if (!equal_in_constant_time(prove(l->peer, "dials", from.own, said, theirs, {}),
                                    all.last(proof_bytes)))
            return false;
        std::array<std::byte, frame_bytes + proof_bytes> answer{};
        frame_buffer const own = own_hello(l->lane);
        std::copy(own.begin(), own.end(), answer.begin());
        sha256_digest const shown = prove(l->peer, "accepts", from.own, said, theirs, own);
        std::copy(shown.begin(), shown.end(), answer.begin() + frame_bytes);
        if (!send_whole(from.socket.get(), answer)) return false;
        l->socket = std::move(from.socket);
        l->incarnation = hello.incarnation;
        l->ready = true;
        return true;
    }

    /// Returns the proof of one end that it has the key of the pair, over all messages of both.
    HERRING_SETUP sha256_digest prove(int peer, std::string_view role,
                                      std::span<std::byte const> nonce_of_acceptor,
                                      std::span<std::byte const> hello,
                                      std::span<std::byte const> nonce_of_dialler,
                                      std::span<std::byte const> answer) const {
        secret_key key;
        ranks_.derive_key(key.bytes(), "herring tcp connection 1", peer, bytes_of(role));
        // All parts but the last have fixed lengths: no two inputs meet.
        return hmac_sha256(key.bytes())
            .update(nonce_of_acceptor)
            .update(hello)
            .update(nonce_of_dialler)
            .update(answer)
            .finish();
    }

    HERRING_SETUP void dial(attempt& l) {
        l.greeted = false;
        l.got = 0;
        if (detail::dial(l.socket, l.there)) return;
        bool const without = l.socket.get() < 0;
        retry(l, errno);
        if (without) out_of_descriptors();
    }

    HERRING_SETUP frame_buffer own_hello(int lane) const {
        frame_buffer hello;
        encode({.job = ranks_.job(),
                .incarnation = incarnation_,
                .tag = hello_tag | static_cast<std::uint64_t>(lane),
                .source = static_cast<std::uint32_t>(ranks_.rank())},
               hello.data());
        return hello;
    }

    // The bytes fit an empty socket buffer.
    HERRING_SETUP static bool send_whole(int socket, std::span<std::byte const> bytes) noexcept {
        return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
    }

    // The connection is established, or has failed.
    HERRING_SETUP void send_first(attempt& l) {
        if (int const why = connect_error(l.socket.get()); why != 0) return retry(l, why);
        l.hello = own_hello(l.lane);
        if (!send_whole(l.socket.get(), l.hello)) return retry(l, errno);
        l.greeted = true;
    }

    HERRING_SETUP void read_answer(attempt& l) {
        std::size_t const due = l.proved() ? l.read.size() : nonce_bytes;
        ssize_t const got = ::recv(l.socket.get(), l.read.data() + l.got, due - l.got, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) return retry(l, got < 0 ? errno : ECONNRESET);
        l.got += static_cast<std::size_t>(got);
        if (l.got < due) return;
        auto const all = std::span<std::byte const>(l.read);
        auto const theirs = all.first(nonce_bytes), answer = all.subspan(nonce_bytes, frame_bytes);
        if (due == nonce_bytes) {
            l.own = random_nonce();
            std::array<std::byte, nonce_bytes + proof_bytes> said{};
            std::copy(l.own.begin(), l.own.end(), said.begin());
            sha256_digest const shown = prove(l.peer, "dials", theirs, l.hello, l.own, {});
            std::copy(shown.begin(), shown.end(), said.begin() + nonce_bytes);
            if (!send_whole(l.socket.get(), said)) retry(l, errno);
            return;
        }
        frame hello;
        bool const right = decode(std::span(l.read).subspan<nonce_bytes, frame_bytes>(), hello) &&
                           hello.job == ranks_.job() && hello.length == 0 && hello.epoch == 0 &&
                           hello.source == static_cast<std::uint32_t>(l.peer) &&
                           hello.tag == (hello_tag | static_cast<std::uint64_t>(l.lane)) &&
                           equal_in_constant_time(prove(l.peer, "accepts", theirs, l.hello, l.own, answer),
                                                  all.last(proof_bytes));
        if (!right) return retry(l, EPROTO);
        l.incarnation = hello.incarnation;
        l.ready = true;
    }

    // A full backlog or a lost packet needs another try. Every rank listens before it tells its address: if
    // no process listens there, and no rank has died in that time, the address is wrong. An address without
    // any answer may be right, until the deadline.
    HERRING_SETUP void retry(attempt& l, int why) {
        time_point const now = clock::now();
        l.socket = descriptor();
        l.why = why;
        l.again = now + std::chrono::milliseconds(50);
        if (why != ECONNREFUSED)
            l.refused = time_point{};
        else if (l.refused == time_point{})
            l.refused = now;
        else if (now - l.refused >= ranks_.peer_timeout()) {
            ranks_.check(); // a dead rank is named as such
            throw_unreachable(l);
        }
    }

    [[noreturn]] HERRING_SETUP void throw_unreachable(attempt const& absent) const {
        throw error(errc::unreachable, ranks_.rank(), absent.peer, "connect",
                    {"cannot connect to ", absent.there.text(), ": ", std::strerror(absent.why),
                     "; is a firewall between the hosts, or its HERRING_INTERFACE not routable from here?"});
    }
    [[noreturn]] HERRING_SETUP void throw_timeout() const {
        attempt const& absent =
            *std::find_if(attempts_.begin(), attempts_.end(), [](attempt const& l) { return !l.ready; });
        if (absent.why != 0) throw_unreachable(absent);
        throw error(errc::timeout, ranks_.rank(), absent.peer, "connect",
                    {"no data connection with that rank within the deadline; this rank listens on ",
                     here_.text(), ", ", rejected_,
                     " strangers were turned away; is the port open between the hosts?"});
    }

    world& ranks_;
    std::uint32_t incarnation_;
    time_point deadline_;
    descriptor listener_;
    endpoint here_;
    fixed_array<attempt> attempts_;
    fixed_array<unidentified_connection> unidentified_{most_pending}; // oldest first
    std::size_t unidentified_count_ = 0;
    fixed_array<pollfd> polled_;
    std::uint64_t rejected_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_CONNECT_HPP

// herring: establishes data connections: listen, connect, exchange hellos; other connections are rejected.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_CONNECT_HPP
#define HERRING_TRANSPORT_TCP_CONNECT_HPP

#include "herring/base/address.hpp"
#include "herring/base/config.hpp"
#include "herring/base/descriptor.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/transport/tcp/frame.hpp"
#include "herring/world.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Connects this rank with each of its peers, `lanes` times. The lower rank of a pair connects, the higher accepts.
///
/// An accepted connection has 5 s to send one hello: a frame header with the world's job, its rank and its lane. It is
/// answered by one. Anything else (a port scanner, another job, an unexpected rank, a lane twice) is closed and counted;
/// of too many unidentified connections the oldest is closed. A rank that gets no answer connects again, so others delay
/// nobody for long.
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

    /// Connections that were not of this world.
    std::uint64_t rejected() const noexcept { return rejected_; }

    /// A lane of a peer: the connected, non-blocking descriptor, which the caller owns from then on, and the incarnation of
    /// the peer that answered.
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
    struct attempt {
        int peer = -1;
        int lane = 0;
        endpoint there{};
        bool dials = false;
        bool ready = false;
        bool greeted = false;          // the hello is sent, the answer is due
        std::uint32_t incarnation = 0; // the peer's
        descriptor socket{};
        time_point again{}; // next try, while there is no socket
        int why = 0;        // errno of the last try
        frame_buffer answer{};
        std::size_t got = 0; // bytes of it
    };
    struct unidentified_connection {
        descriptor socket{};
        time_point until{};
        frame_buffer hello{};
        std::size_t got = 0;
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
            rejected_ += s.got < frame_bytes || s.socket.get() >= 0 ? 1u : 0u;
            s = unidentified_connection();
        }
        compact();
        if (polled_[0].revents != 0) accept();
    }

    HERRING_SETUP void accept() {
        for (bool first = true;; first = false) {
            descriptor next(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (next.get() < 0) {
                // The kernel looks for a descriptor before it looks for a connection: only the first was announced by poll.
                if (!first) return;
                if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                    out_of_descriptors();
                return;
            }
            if (unidentified_count_ == most_pending) drop_oldest();
            unidentified_connection& s = unidentified_[unidentified_count_++];
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

    // Its hello may have come by now: many ranks may connect at once.
    HERRING_SETUP void drop_oldest() {
        unidentified_connection& oldest = unidentified_[0];
        read_hello(oldest);
        if (oldest.socket.get() >= 0) ++rejected_;
        oldest = unidentified_connection();
        compact();
    }

    // No descriptor is left: closes the oldest unidentified connection, or throws if there is none.
    HERRING_SETUP void out_of_descriptors() {
        int const why = errno;
        if (unidentified_count_ > 0) return drop_oldest();
        throw error(errc::no_resources, ranks_.rank(), -1, "connect",
                    {"no more sockets: ", std::strerror(why), "; raise the limit of open files (ulimit -n)"});
    }

    // Reads at most the bytes of a hello.
    HERRING_SETUP void read_hello(unidentified_connection& from) {
        ssize_t const got =
            ::recv(from.socket.get(), from.hello.data() + from.got, frame_bytes - from.got, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got > 0) from.got += static_cast<std::size_t>(got);
        if (got > 0 && from.got < frame_bytes) return;
        if (from.got < frame_bytes || !accept_hello(from)) from.until = time_point{};
    }

    HERRING_SETUP bool accept_hello(unidentified_connection& from) {
        frame hello;
        if (!decode(from.hello, hello) || hello.job != ranks_.job() || hello.length != 0 || hello.epoch != 0)
            return false;
        for (attempt& l : attempts_) {
            if (l.dials || l.ready || static_cast<std::uint32_t>(l.peer) != hello.source) continue;
            if (hello.tag != (hello_tag | static_cast<std::uint64_t>(l.lane))) continue;
            if (!send_hello(from.socket.get(), l.lane)) return false;
            l.socket = std::move(from.socket);
            l.incarnation = hello.incarnation;
            l.ready = true;
            return true;
        }
        return false;
    }

    HERRING_SETUP void dial(attempt& l) {
        l.greeted = false;
        l.got = 0;
        l.socket = descriptor(::socket(l.there.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (l.socket.get() < 0) {
            retry(l, errno);
            return out_of_descriptors();
        }
        if (::connect(l.socket.get(), l.there.get(), l.there.size) != 0 && errno != EINPROGRESS)
            retry(l, errno);
    }

    // Fits an empty socket buffer.
    HERRING_SETUP bool send_hello(int socket, int lane) const {
        frame_buffer hello;
        encode({.job = ranks_.job(),
                .incarnation = incarnation_,
                .tag = hello_tag | static_cast<std::uint64_t>(lane),
                .source = static_cast<std::uint32_t>(ranks_.rank())},
               hello.data());
        return ::send(socket, hello.data(), frame_bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(frame_bytes);
    }

    // The connection is established, or has failed.
    HERRING_SETUP void send_first(attempt& l) {
        int why = 0;
        socklen_t size = sizeof why;
        ::getsockopt(l.socket.get(), SOL_SOCKET, SO_ERROR, &why, &size);
        if (why != 0) return retry(l, why);
        if (!send_hello(l.socket.get(), l.lane)) return retry(l, errno);
        l.greeted = true;
    }

    HERRING_SETUP void read_answer(attempt& l) {
        ssize_t const got = ::recv(l.socket.get(), l.answer.data() + l.got, frame_bytes - l.got, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) return retry(l, got < 0 ? errno : ECONNRESET);
        l.got += static_cast<std::size_t>(got);
        if (l.got < frame_bytes) return;
        frame theirs;
        bool const right = decode(l.answer, theirs) && theirs.job == ranks_.job() && theirs.length == 0 &&
                           theirs.epoch == 0 && theirs.source == static_cast<std::uint32_t>(l.peer) &&
                           theirs.tag == (hello_tag | static_cast<std::uint64_t>(l.lane));
        if (!right) return retry(l, EPROTO);
        l.incarnation = theirs.incarnation;
        l.ready = true;
    }

    // A full backlog or a lost packet needs another try; a wrong address ends at the deadline.
    void retry(attempt& l, int why) {
        l.socket = descriptor();
        l.why = why;
        l.again = clock::now() + std::chrono::milliseconds(50);
    }

    [[noreturn]] HERRING_SETUP void throw_timeout() const {
        attempt const& absent =
            *std::find_if(attempts_.begin(), attempts_.end(), [](attempt const& l) { return !l.ready; });
        if (absent.why != 0)
            throw error(
                errc::unreachable, ranks_.rank(), absent.peer, "connect",
                {"cannot connect to ", absent.there.text(), ": ", std::strerror(absent.why),
                 "; is a firewall between the hosts, or its HERRING_INTERFACE not routable from here?"});
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

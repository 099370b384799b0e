// herring: how ranks find each other's data sockets: listen, connect, say hello; strangers are turned away.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_TCP_CONNECT_HPP
#define HERRING_DETAIL_TCP_CONNECT_HPP

#include "herring/detail/frame.hpp"
#include "herring/world.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace herring::detail {

using tcp_executor = boost::asio::io_context::executor_type;
using tcp_socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, tcp_executor>;
using tcp_acceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, tcp_executor>;
using tcp_timer = boost::asio::basic_waitable_timer<clock, boost::asio::wait_traits<clock>, tcp_executor>;

/// Connects this rank with each of its peers, `lanes` times. The lower rank of a pair connects, the higher accepts.
///
/// An accepted connection has 5 s to send one hello: a frame header with the world's job, its rank and its lane. All
/// else (a scanner, another job, a rank that is not expected, a lane twice) is closed and counted; it delays nobody.
class tcp_connector {
  public:
    static constexpr std::size_t most_pending = 64;
    static constexpr std::chrono::seconds hello_time{5};

    tcp_connector(world& ranks, std::span<int const> peers, int lanes, std::chrono::milliseconds timeout)
        : ranks_(ranks), lanes_(lanes), deadline_(clock::now() + timeout), acceptor_(context_) {
        listen();
        auto const all = ranks.all_gather(std::as_bytes(std::span(endpoint_text_)), timeout);
        for (int const peer : peers) {
            for (int lane = 0; lane < lanes; ++lane) links_.emplace_back(peer, lane, context_);
            auto const& bytes = all[static_cast<std::size_t>(peer)];
            if (peer > ranks.rank())
                dial(peer, std::string(reinterpret_cast<char const*>(bytes.data()), bytes.size()));
        }
        accept();
        while (missing() > 0 && clock::now() < deadline_ && ranks.failed() == nullptr)
            context_.run_one_until(std::min(deadline_, clock::now() + std::chrono::milliseconds(50)));
        ranks.check();
        if (!refusal_.empty())
            throw error(errc::unreachable, ranks.rank(), refused_peer_, "connect", refusal_);
        if (missing() > 0) {
            link const& absent = first_missing();
            throw error(errc::timeout, ranks.rank(), absent.peer, "connect",
                        "no data connection with that rank within the deadline; is the port range between the hosts "
                        "open? This rank listens on " + endpoint_text_ + ", " + std::to_string(strangers_) +
                            " strangers were turned away");
        }
    }

    /// Connections that were not of this world.
    std::uint64_t strangers() const noexcept { return strangers_; }

    /// The connected descriptor of a peer's lane; the caller owns it from now on.
    int release(int peer, int lane) {
        for (link& l : links_)
            if (l.peer == peer && l.lane == lane) return l.socket.release();
        return -1;
    }
    boost::asio::ip::tcp protocol() const { return protocol_; }

  private:
    using error_code = boost::system::error_code;

    struct link {
        link(int to, int number, boost::asio::io_context& context) : peer(to), lane(number), socket(context) {}
        int peer;
        int lane;
        tcp_socket socket;
        bool ready = false;
    };
    struct inbound {
        tcp_socket socket;
        tcp_timer timer;
        frame_buffer hello{};
    };
    struct outbound {
        link* to;
        boost::asio::ip::tcp::endpoint where;
        tcp_timer timer;
        frame_buffer hello{};
    };

    static constexpr std::uint64_t hello_tag = 0x68656c6c6f000000u; // "hello", then the lane

    void listen() {
        error_code failed;
        auto const address = boost::asio::ip::make_address(ranks_.local_address(), failed);
        if (failed)
            throw error(errc::unreachable, ranks_.rank(), -1, "listen",
                        "'" + ranks_.local_address() + "' is no IP address: " + failed.message());
        boost::asio::ip::tcp::endpoint const wanted(address, 0);
        protocol_ = wanted.protocol();
        acceptor_.open(wanted.protocol(), failed);
        if (!failed) acceptor_.bind(wanted, failed);
        if (!failed) acceptor_.listen(512, failed);
        if (failed)
            throw error(errc::no_resources, ranks_.rank(), -1, "listen",
                        "cannot listen on " + ranks_.local_address() + ": " + failed.message() +
                            "; check HERRING_INTERFACE, the free ports and the limit of open files");
        endpoint_text_ = ranks_.local_address() + " " + std::to_string(acceptor_.local_endpoint().port());
    }

    void accept() {
        acceptor_.async_accept([this](error_code failed, auto socket) {
            if (failed == boost::asio::error::operation_aborted) return;
            if (!failed && pending_.size() < most_pending) {
                pending_.push_back({tcp_socket(std::move(socket)), tcp_timer(context_), {}});
                listen_to(std::prev(pending_.end()));
            } else if (!failed) {
                ++strangers_;
            }
            accept();
        });
    }

    void listen_to(std::list<inbound>::iterator from) {
        from->timer.expires_after(hello_time);
        from->timer.async_wait([from](error_code stopped) {
            if (!stopped) from->socket.close(stopped);
        });
        boost::asio::async_read(from->socket, boost::asio::buffer(from->hello),
                                [this, from](error_code failed, std::size_t) {
                                    if (failed || !welcome(*from)) ++strangers_;
                                    from->timer.cancel();
                                    boost::asio::post(context_, [this, from] { pending_.erase(from); });
                                });
    }

    bool welcome(inbound& from) {
        frame hello;
        if (!decode(from.hello.data(), hello) || hello.job != ranks_.job() || hello.length != 0) return false;
        for (link& l : links_) {
            if (static_cast<std::uint32_t>(l.peer) != hello.source || l.peer > ranks_.rank() || l.ready) continue;
            if (hello.tag != (hello_tag | static_cast<std::uint64_t>(l.lane))) continue;
            l.socket = std::move(from.socket);
            l.ready = true;
            return true;
        }
        return false;
    }

    void dial(int peer, std::string const& where) {
        std::size_t const space = where.rfind(' ');
        error_code failed;
        auto const address = boost::asio::ip::make_address(where.substr(0, space), failed);
        if (failed || space == std::string::npos)
            throw error(errc::protocol, ranks_.rank(), peer, "connect", "that rank published '" + where + "', no address");
        auto const port = static_cast<unsigned short>(std::strtoul(where.c_str() + space, nullptr, 10));
        for (int lane = 0; lane < lanes_; ++lane) {
            dials_.push_back({nullptr, {address, port}, tcp_timer(context_), {}});
            outbound& out = dials_.back();
            frame const hello{.job = ranks_.job(), .tag = hello_tag | static_cast<std::uint64_t>(lane),
                              .source = static_cast<std::uint32_t>(ranks_.rank())};
            encode(hello, out.hello.data());
            boost::asio::post(context_, [this, &out, peer, lane] {
                for (link& l : links_)
                    if (l.peer == peer && l.lane == lane) out.to = &l;
                try_dial(out);
            });
        }
    }

    void try_dial(outbound& out) {
        out.to->socket.async_connect(out.where, [this, &out](error_code failed) {
            if (failed) return retry(out, failed);
            boost::asio::async_write(out.to->socket, boost::asio::buffer(out.hello),
                                     [this, &out](error_code unsent, std::size_t) {
                                         if (unsent) return retry(out, unsent);
                                         out.to->ready = true;
                                     });
        });
    }

    // A listener with a full backlog or a lost packet deserves another try; a wrong address ends at the deadline.
    void retry(outbound& out, error_code why) {
        error_code ignored;
        out.to->socket.close(ignored);
        if (clock::now() + std::chrono::milliseconds(100) >= deadline_) {
            refused_peer_ = out.to->peer;
            refusal_ = "cannot connect to " + out.where.address().to_string() + ":" +
                       std::to_string(out.where.port()) + ": " + why.message() +
                       "; is a firewall between the hosts, or HERRING_INTERFACE not routable from here?";
            return;
        }
        out.timer.expires_after(std::chrono::milliseconds(50));
        out.timer.async_wait([this, &out](error_code stopped) {
            if (!stopped) try_dial(out);
        });
    }

    std::size_t missing() const noexcept {
        std::size_t count = 0;
        for (link const& l : links_) count += l.ready ? 0 : 1;
        return count;
    }
    link const& first_missing() const noexcept {
        for (link const& l : links_)
            if (!l.ready) return l;
        return links_.front();
    }

    world& ranks_;
    int lanes_;
    time_point deadline_;
    boost::asio::io_context context_{1};
    boost::asio::ip::tcp protocol_ = boost::asio::ip::tcp::v4();
    tcp_acceptor acceptor_;
    std::string endpoint_text_;
    std::list<link> links_;
    std::list<inbound> pending_;
    std::list<outbound> dials_;
    std::uint64_t strangers_ = 0;
    int refused_peer_ = -1;
    std::string refusal_;
};

} // namespace herring::detail

#endif // HERRING_DETAIL_TCP_CONNECT_HPP

// herring: tests of transport/tcp/connect.hpp: a rank beside one that speaks by hand, well or badly.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp/connect.hpp"

#include "doctest/doctest.h"

#include "herring/base/address.hpp"
#include "herring/base/descriptor.hpp"
#include "herring/error.hpp"
#include "herring/launch.hpp"
#include "herring/transport/tcp/frame.hpp"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

using namespace herring;
using namespace std::chrono_literals;
using detail::descriptor;
using detail::endpoint;
using detail::frame;
using detail::frame_buffer;
using detail::frame_bytes;
using detail::tcp_connector;

namespace {

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error(what);
}

/// A socket that listens on a free port of the loopback.
struct listener {
    descriptor socket{::socket(AF_INET, SOCK_STREAM, 0)};
    endpoint here;
    listener() {
        sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        require(::bind(socket.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0, "bind");
        require(::listen(socket.get(), 16) == 0, "listen");
        here = detail::local_end(socket.get());
    }
    descriptor accept() const {
        descriptor accepted(::accept(socket.get(), nullptr, nullptr));
        require(accepted.get() >= 0, "accept");
        return accepted;
    }
};

void limit(descriptor const& socket) { // a test that hangs fails
    timeval const most{20, 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
}
descriptor connected_to(endpoint const& to) {
    descriptor socket(::socket(to.family(), SOCK_STREAM, 0));
    require(::connect(socket.get(), to.get(), to.size) == 0, "connect");
    limit(socket);
    return socket;
}
constexpr std::uint64_t tag_of_lane(std::uint64_t lane) { return 0x68656c6c6f000000u | lane; }

void send_frame(descriptor const& socket, frame const& what) {
    frame_buffer bytes;
    detail::encode(what, bytes.data());
    require(::send(socket.get(), bytes.data(), frame_bytes, MSG_NOSIGNAL) ==
                static_cast<ssize_t>(frame_bytes),
            "send");
}
/// Nothing if the other end has closed the connection.
std::optional<frame> receive_frame(descriptor const& socket) {
    frame_buffer bytes;
    ssize_t const got = ::recv(socket.get(), bytes.data(), frame_bytes, MSG_WAITALL);
    require(got >= 0, "an answer, or an end");
    frame result;
    if (got != static_cast<ssize_t>(frame_bytes) || !detail::decode(bytes, result)) return {};
    return result;
}

/// Runs rank 0 and rank 1 as threads, and returns the error of rank `of`, or nothing.
template <class Zero, class One> std::string run_pair(Zero const& zero, One const& one) {
    std::string failed[2];
    int const status = launch_threads(2, [&](world& ranks) {
        try {
            if (ranks.rank() == 0)
                zero(ranks);
            else
                one(ranks);
        } catch (std::exception const& why) {
            failed[ranks.rank()] = why.what();
        }
        return 0;
    });
    CHECK(status == 0);
    return failed[0] + failed[1];
}

template <class Call> std::optional<failure> error_of(Call const& call) {
    try {
        call();
    } catch (error const& why) {
        return why.why();
    }
    return {};
}

int const to_one[] = {1}, to_zero[] = {0};

} // namespace

TEST_CASE("tcp_connector: what is not of this world, or of no lane that is due, is closed and counted") {
    std::string const failed = run_pair(
        [](world& ranks) { // connects, as the lower rank
            listener const own;
            auto const all = ranks.all_gather(own.here.bytes());
            endpoint other;
            require(other.read(all[1]), "an address");
            frame const right{.job = ranks.job(), .incarnation = 42, .tag = tag_of_lane(0), .source = 0};
            auto const refused = [&](frame const& hello) {
                descriptor const socket = connected_to(other);
                send_frame(socket, hello);
                return !receive_frame(socket).has_value();
            };
            auto const with = [&](auto const& change) {
                frame hello = right;
                change(hello);
                return hello;
            };
            require(refused(with([](frame& f) { f.job += 1; })), "another job is refused");
            require(refused(with([](frame& f) { f.source = 1; })), "another rank is refused");
            require(refused(with([](frame& f) { f.tag = tag_of_lane(2); })), "another lane is refused");
            require(refused(with([](frame& f) { f.tag = 0; })), "no hello is refused");
            require(refused(with([](frame& f) { f.length = 1; })), "a hello with a payload is refused");
            {
                descriptor const scanner = connected_to(other);
                std::string_view const request = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
                require(request.size() >= frame_bytes, "as long as a frame");
                require(::send(scanner.get(), request.data(), frame_bytes, MSG_NOSIGNAL) > 0, "send");
                require(!receive_frame(scanner).has_value(), "a scanner is refused");
            }
            descriptor const lane0 = connected_to(other);
            send_frame(lane0, right);
            auto const answer = receive_frame(lane0);
            require(answer.has_value() && answer->job == ranks.job() && answer->source == 1 &&
                        answer->incarnation == 9 && answer->tag == tag_of_lane(0),
                    "a hello is answered by one");
            require(refused(right), "a lane twice is refused");
            descriptor const lane1 = connected_to(other);
            send_frame(lane1, with([](frame& f) { f.tag = tag_of_lane(1), f.incarnation = 43; }));
            require(receive_frame(lane1).has_value(), "the other lane is answered");
            ranks.barrier();
        },
        [](world& ranks) {
            tcp_connector connector(ranks, to_zero, 2, 9, 20s);
            require(connector.rejected() == 7, "counted: seven, not " + std::to_string(connector.rejected()));
            auto const lane0 = connector.release(0, 0), lane1 = connector.release(0, 1);
            descriptor const own0(lane0.descriptor), own1(lane1.descriptor);
            require(own0.get() >= 0 && own1.get() >= 0, "both lanes are connected");
            require(lane0.incarnation == 42 && lane1.incarnation == 43, "incarnations as in the hellos");
            require(connector.release(0, 2).descriptor == -1, "there is no third lane");
            ranks.barrier();
        });
    CHECK(failed == "");
}

TEST_CASE(
    "tcp_connector: a connection that is closed before its answer, or answered wrongly, is tried again") {
    std::string const failed = run_pair(
        [](world& ranks) {
            tcp_connector connector(ranks, to_one, 1, 5, 20s);
            auto const lane = connector.release(1, 0);
            descriptor const own(lane.descriptor);
            require(lane.incarnation == 77, "the incarnation of the right answer");
            char byte = 0;
            ranks.barrier();
            limit(own);
            require(::recv(own.get(), &byte, 1, MSG_DONTWAIT) == 1 && byte == 'x', "the right connection");
        },
        [](world& ranks) { // accepts, as the higher rank
            listener const own;
            (void)ranks.all_gather(own.here.bytes());
            frame const right{.job = ranks.job(), .incarnation = 77, .tag = tag_of_lane(0), .source = 1};
            { descriptor const closed = own.accept(); }
            for (int wrong = 0; wrong < 3; ++wrong) {
                descriptor const socket = own.accept();
                limit(socket);
                require(receive_frame(socket).has_value(), "a hello");
                frame answer = right;
                if (wrong == 0) answer.job += 1;
                if (wrong == 1) answer.source = 0;
                if (wrong == 2) answer.tag = tag_of_lane(1);
                send_frame(socket, answer);
                require(!receive_frame(socket).has_value(), "closed after a wrong answer");
            }
            descriptor const socket = own.accept();
            limit(socket);
            auto const hello = receive_frame(socket);
            require(hello.has_value() && hello->job == ranks.job() && hello->source == 0 &&
                        hello->incarnation == 5 && hello->tag == tag_of_lane(0),
                    "a hello names the job, the rank and the lane");
            send_frame(socket, right);
            require(::send(socket.get(), "x", 1, MSG_NOSIGNAL) == 1, "send");
            ranks.barrier();
        });
    CHECK(failed == "");
}

TEST_CASE("tcp_connector: a peer that never answers is a timeout, and names it") {
    std::string const failed = run_pair(
        [](world& ranks) {
            auto const why = error_of([&] { tcp_connector(ranks, to_one, 1, 0, 300ms); });
            require(why.has_value() && why->what == errc::timeout && why->peer == 1, "a timeout of rank 1");
            ranks.barrier();
        },
        [](world& ranks) {
            listener const silent;
            (void)ranks.all_gather(silent.here.bytes());
            ranks.barrier();
        });
    CHECK(failed == "");
}

TEST_CASE("tcp_connector: a port where nobody listens is unreachable") {
    std::string const failed = run_pair(
        [](world& ranks) {
            auto const why = error_of([&] { tcp_connector(ranks, to_one, 1, 0, 300ms); });
            require(why.has_value() && why->what == errc::unreachable && why->peer == 1,
                    "rank 1 is unreachable");
            ranks.barrier();
        },
        [](world& ranks) {
            endpoint nobody;
            {
                listener const gone;
                nobody = gone.here;
            }
            (void)ranks.all_gather(nobody.bytes());
            ranks.barrier();
        });
    CHECK(failed == "");
}

TEST_CASE("tcp_connector: a rank that says no address is of another build") {
    std::string const failed = run_pair(
        [](world& ranks) {
            auto const why = error_of([&] { tcp_connector(ranks, to_one, 1, 0, 20s); });
            require(why.has_value() && why->what == errc::protocol && why->peer == 1,
                    "a protocol error of rank 1");
            ranks.barrier();
        },
        [](world& ranks) {
            std::uint32_t const number = 5;
            (void)ranks.all_gather(std::as_bytes(std::span(&number, 1)));
            ranks.barrier();
        });
    CHECK(failed == "");
}

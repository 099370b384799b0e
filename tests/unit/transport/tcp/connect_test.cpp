// herring: tests of transport/tcp/connect.hpp: a rank beside one that speaks by hand, well or badly.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp/connect.hpp"

#include "doctest/doctest.h"

#include "herring/error.hpp"
#include "herring/launch.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/transport/tcp/frame.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
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

/// Nothing if the other end has closed the connection.
std::optional<frame> receive_frame(descriptor const& socket) {
    frame_buffer bytes;
    ssize_t const got = ::recv(socket.get(), bytes.data(), frame_bytes, MSG_WAITALL);
    require(got >= 0, "an answer, or an end");
    frame result;
    if (got != static_cast<ssize_t>(frame_bytes) || !detail::decode(bytes, result)) return {};
    return result;
}

using nonce = std::array<std::byte, 32>;
using proof = herring::detail::sha256_digest;

template <std::size_t Size> bool receive_bytes(descriptor const& socket, std::array<std::byte, Size>& into) {
    return ::recv(socket.get(), into.data(), Size, MSG_WAITALL) == static_cast<ssize_t>(Size);
}
void send_bytes(descriptor const& socket, std::span<std::byte const> bytes) {
    require(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()),
            "send");
}
frame_buffer bytes_of(frame const& what) {
    frame_buffer bytes;
    detail::encode(what, bytes.data());
    return bytes;
}

/// The proof of one end, as connect.hpp documents it.
proof prove(world const& ranks, std::string_view role,
            std::initializer_list<std::span<std::byte const>> said) {
    std::array<std::byte, 32> key{};
    ranks.derive_key(key, "herring tcp connection 1", 1 - ranks.rank(), std::as_bytes(std::span(role)));
    herring::detail::hmac_sha256 with(key);
    for (auto const part : said) with.update(part);
    return with.finish();
}

/// What a rank that dials by hand has said and heard.
struct dialed {
    descriptor socket{};
    frame_buffer hello{};
    nonce theirs{}, own{};
    proof shown{};
};
/// Says hello; nothing if it is refused before the nonce.
std::optional<dialed> say_hello(endpoint const& to, frame const& hello) {
    dialed made;
    made.socket = connected_to(to);
    made.hello = bytes_of(hello);
    send_bytes(made.socket, made.hello);
    if (!receive_bytes(made.socket, made.theirs)) return {};
    return made;
}
void show_proof(world const& ranks, dialed& with) {
    with.own = herring::detail::random_nonce();
    with.shown = prove(ranks, "dials", {with.theirs, with.hello, with.own});
    send_bytes(with.socket, with.own);
    send_bytes(with.socket, with.shown);
}
/// The answer, if it comes and is proved.
std::optional<frame> receive_answer(world const& ranks, dialed const& with) {
    frame_buffer answer;
    proof shown;
    frame result;
    if (!receive_bytes(with.socket, answer) || !receive_bytes(with.socket, shown)) return {};
    require(shown == prove(ranks, "accepts", {with.theirs, with.hello, with.own, answer}), "its proof");
    require(detail::decode(answer, result), "a frame");
    return result;
}

/// Runs rank 0 and rank 1 as threads, and returns the error of rank `of`, or nothing.
template <class Zero, class One>
std::string run_pair(Zero const& zero, One const& one, launch_options const& how = {}) {
    std::string failed[2];
    int const status = launch_threads(
        2,
        [&](world& ranks) {
            try {
                if (ranks.rank() == 0)
                    zero(ranks);
                else
                    one(ranks);
            } catch (std::exception const& why) {
                failed[ranks.rank()] = why.what();
            }
            return 0;
        },
        how);
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
            auto const refused = [&](frame const& hello) { return !say_hello(other, hello).has_value(); };
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
            // Proofs that are none: a bit of one, that of another lane, one for another nonce, and one that was heard.
            auto const not_proved = [&](auto const& change) {
                auto again = say_hello(other, right);
                require(again.has_value(), "a nonce");
                change(*again);
                send_bytes(again->socket, again->own);
                send_bytes(again->socket, again->shown);
                return !receive_answer(ranks, *again).has_value();
            };
            require(not_proved([&](dialed& d) {
                        d.shown = prove(ranks, "dials", {d.theirs, d.hello, d.own});
                        d.shown[31] ^= std::byte{1};
                    }),
                    "a bit of the proof");
            require(not_proved([&](dialed& d) {
                        d.shown = prove(
                            ranks, "dials",
                            {d.theirs, bytes_of(with([](frame& f) { f.tag = tag_of_lane(1); })), d.own});
                    }),
                    "the proof of another lane");
            require(not_proved([&](dialed& d) {
                        d.shown = prove(ranks, "accepts", {d.theirs, d.hello, d.own});
                    }),
                    "the proof of the other end");
            descriptor const silent = connected_to(other);
            auto lane0 = say_hello(other, right);
            require(lane0.has_value(), "a nonce");
            // What lies in front of it goes, and another comes into its place.
            require(::send(silent.get(), bytes_of(frame{}).data(), frame_bytes, MSG_NOSIGNAL) > 0, "send");
            require(!receive_frame(silent).has_value(), "no hello is refused");
            require(say_hello(other, right).has_value(), "a connection in a place that was used is heard");
            show_proof(ranks, *lane0);
            auto const answer = receive_answer(ranks, *lane0);
            require(answer.has_value() && answer->job == ranks.job() && answer->source == 1 &&
                        answer->incarnation == 9 && answer->tag == tag_of_lane(0),
                    "a hello is answered by one");
            require(refused(right), "a lane twice is refused");
            auto lane1 = say_hello(other, with([](frame& f) { f.tag = tag_of_lane(1), f.incarnation = 43; }));
            require(lane1.has_value(), "a nonce");
            { // The recorded proof of lane 0, to a nonce of lane 1.
                auto again = say_hello(other, with([](frame& f) { f.tag = tag_of_lane(1); }));
                require(again.has_value(), "a nonce");
                require(again->theirs != lane1->theirs && again->theirs != lane0->theirs, "nonces differ");
                send_bytes(again->socket, lane0->own);
                send_bytes(again->socket, lane0->shown);
                require(!receive_answer(ranks, *again).has_value(), "a recorded proof is refused");
            }
            show_proof(ranks, *lane1);
            require(receive_answer(ranks, *lane1).has_value(), "the other lane is answered");
            ranks.barrier();
        },
        [](world& ranks) {
            tcp_connector connector(ranks, to_zero, 2, 9, 20s);
            require(connector.rejected() == 13,
                    "counted: thirteen, not " + std::to_string(connector.rejected()));
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
            frame_buffer hello;
            // Challenges who connects, and answers it.
            auto const answer = [&](descriptor const& socket, frame const& said, int how) {
                limit(socket);
                require(receive_bytes(socket, hello), "a hello");
                nonce const asked = herring::detail::random_nonce();
                send_bytes(socket, asked);
                nonce theirs;
                proof shown;
                require(receive_bytes(socket, theirs) && receive_bytes(socket, shown), "a proof");
                require(shown == prove(ranks, "dials", {asked, hello, theirs}), "the right one");
                frame_buffer const bytes = bytes_of(said);
                if (how != 3)
                    shown = prove(ranks, "accepts", {asked, hello, theirs, bytes}); // 3: reflects it
                if (how == 4) shown[0] ^= std::byte{1};
                send_bytes(socket, bytes);
                send_bytes(socket, shown);
            };
            { descriptor const closed = own.accept(); }
            for (int wrong = 0; wrong < 5; ++wrong) {
                descriptor const socket = own.accept();
                frame said = right;
                if (wrong == 0) said.job += 1;
                if (wrong == 1) said.source = 0;
                if (wrong == 2) said.tag = tag_of_lane(1);
                answer(socket, said, wrong);
                require(!receive_frame(socket).has_value(), "closed after a wrong answer");
            }
            descriptor const socket = own.accept();
            answer(socket, right, 9);
            frame said;
            require(detail::decode(hello, said) && said.job == ranks.job() && said.source == 0 &&
                        said.incarnation == 5 && said.tag == tag_of_lane(0),
                    "a hello names the job, the rank and the lane");
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

void listens_nowhere(world& ranks) {
    endpoint nobody;
    {
        listener const gone;
        nobody = gone.here;
    }
    (void)ranks.all_gather(nobody.bytes());
    ranks.barrier();
}

TEST_CASE("tcp_connector: a port where nobody listens is unreachable") {
    std::string const failed = run_pair(
        [](world& ranks) {
            auto const why = error_of([&] { tcp_connector(ranks, to_one, 1, 0, 300ms); });
            require(why.has_value() && why->what == errc::unreachable && why->peer == 1,
                    "rank 1 is unreachable");
            ranks.barrier();
        },
        listens_nowhere);
    CHECK(failed == "");
}

TEST_CASE("tcp_connector: an address that refuses for peer_timeout is wrong") {
    auto const began = std::chrono::steady_clock::now();
    std::string const failed = run_pair(
        [](world& ranks) {
            auto const why = error_of([&] { tcp_connector(ranks, to_one, 1, 0, 60s); });
            require(why.has_value() && why->what == errc::unreachable && why->peer == 1,
                    "rank 1 is unreachable");
            ranks.barrier();
        },
        listens_nowhere, {.failure_detector = {.peer_timeout = 500ms}});
    CHECK(failed == "");
    CHECK(std::chrono::steady_clock::now() - began < 30s);
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

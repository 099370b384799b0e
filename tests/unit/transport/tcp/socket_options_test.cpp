// herring: tests of transport/tcp/socket_options.hpp: what the kernel says of a socket afterwards.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp/socket_options.hpp"

#include "doctest/doctest.h"

#include "herring/error.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/time.hpp"

#include <chrono>
#include <limits>
#include <string>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

using namespace herring;
using namespace std::chrono_literals;
using transport::congestion;

namespace {

struct tcp_socket {
    detail::descriptor socket{::socket(AF_INET, SOCK_STREAM, 0)};
    int option(int level, int name) const {
        int value = -1;
        socklen_t size = sizeof value;
        CHECK(::getsockopt(socket.get(), level, name, &value, &size) == 0);
        return value;
    }
    std::string congestion_control() const {
        char name[64] = {};
        socklen_t size = sizeof name - 1;
        CHECK(::getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0);
        return name;
    }
};

bool allowed(std::string const& algorithm) {
    std::string const all =
        " " + detail::small_file("/proc/sys/net/ipv4/tcp_allowed_congestion_control") + " ";
    for (char const end : {' ', '\n'})
        if (all.find(" " + algorithm + end) != std::string::npos) return true;
    return false;
}

} // namespace

TEST_CASE("socket_options: small messages leave at once, and a dead peer is noticed") {
    tcp_socket const s;
    detail::set_data_socket_options(s.socket.get(), congestion::system, 5min, 0);
    CHECK(s.option(IPPROTO_TCP, TCP_NODELAY) != 0);
    CHECK(s.option(SOL_SOCKET, SO_KEEPALIVE) != 0);
    CHECK(s.option(IPPROTO_TCP, TCP_KEEPIDLE) == 2);
    CHECK(s.option(IPPROTO_TCP, TCP_KEEPINTVL) == 1);
    CHECK(s.option(IPPROTO_TCP, TCP_KEEPCNT) == 3);
    CHECK(s.option(IPPROTO_TCP, TCP_USER_TIMEOUT) == 300'000);
}

TEST_CASE("socket_options: the user timeout is at least the usual one, and fits the option") {
    tcp_socket const small, large;
    detail::set_data_socket_options(small.socket.get(), congestion::system, 1ms, 0);
    CHECK(small.option(IPPROTO_TCP, TCP_USER_TIMEOUT) == detail::usual_timeout.count());
    detail::set_data_socket_options(large.socket.get(), congestion::system, never, 0);
    CHECK(large.option(IPPROTO_TCP, TCP_USER_TIMEOUT) == std::numeric_limits<int>::max());
}

TEST_CASE("socket_options: the congestion control that is asked for, or an error") {
    std::string const of_system = tcp_socket().congestion_control();
    tcp_socket const system;
    detail::set_data_socket_options(system.socket.get(), congestion::system, 1s, 0);
    CHECK(system.congestion_control() == of_system);
    for (congestion const control : {congestion::reno, congestion::cubic, congestion::bbr}) {
        std::string const name = control == congestion::reno    ? "reno"
                                 : control == congestion::cubic ? "cubic"
                                                                : "bbr";
        CAPTURE(name);
        tcp_socket const s;
        errc what = errc::ok;
        try {
            detail::set_data_socket_options(s.socket.get(), control, 1s, 4);
        } catch (error const& why) {
            what = why.why().what;
            CHECK(why.why().reporter == 4);
            CHECK(std::string(why.what()).find("'" + name + "'") != std::string::npos);
        }
        if (what == errc::ok)
            CHECK(s.congestion_control() == name);
        else
            CHECK(what == errc::unsupported);
        if (allowed(name)) CHECK(what == errc::ok);
    }
    tcp_socket const unpaced;
    detail::set_data_socket_options(unpaced.socket.get(), congestion::unpaced, 1s, 0); // never an error
    if (allowed("reno")) CHECK(unpaced.congestion_control() == "reno");
}

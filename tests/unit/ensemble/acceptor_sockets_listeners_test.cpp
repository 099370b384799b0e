// herring: tests of ensemble/acceptor_sockets.hpp: addresses, the socket of the machine, and a pause in which nobody is let in.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/acceptor_sockets.hpp"

#include "doctest/doctest.h"
#include "herring/error.hpp"
#include "herring/machine/address.hpp"
#include "herring/net/event_thread.hpp"

#include <chrono>
#include <string>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace ensemble_acceptor_listeners_test {

namespace detail = herring::detail;
using detail::ensembles::acceptor_listeners;

struct opened {
    detail::event_thread thread{};
    acceptor_listeners at{thread};
    opened() { thread.open("test"); }
};

herring::errc refusal(std::string const& address) {
    try {
        opened().at.listen(address, false);
    } catch (herring::error const& why) {
        return why.code();
    }
    return {};
}

TEST_CASE("acceptor_listeners: an address with a free port, and what cannot be one") {
    opened d;
    d.at.listen("127.0.0.1:0", false);
    CHECK(d.at.address().rfind("127.0.0.1:", 0) == 0);
    CHECK(d.at.socket(0) >= 0);
    CHECK(d.at.socket(1) < 0);
    CHECK(d.at.local_name().empty());
    CHECK(refusal("0.0.0.0:0") == herring::errc::bad_argument);  // every interface, and no secret
    CHECK(refusal("192.0.2.1:0") == herring::errc::unreachable); // of no machine
}

TEST_CASE("acceptor_listeners: an address without a port is an error of the frontend's option") {
    std::string said;
    try {
        opened().at.listen("127.0.0.1", false);
    } catch (herring::error const& why) {
        said = why.what();
    }
    CHECK(said.find("frontend: bad argument: listen is '127.0.0.1', which has no port") != said.npos);
}

TEST_CASE("acceptor_listeners: a unix socket has a key and a name of its own") {
    opened d;
    d.at.listen("127.0.0.1:0", false);
    d.at.listen_here();
    CHECK(!d.at.local_name().empty());
    CHECK(d.at.is_local(acceptor_listeners::keys - 1));
    CHECK(d.at.socket(acceptor_listeners::keys - 1) >= 0);
    CHECK(!d.at.is_local(0));
}

TEST_CASE("acceptor_listeners: who knocks in a pause is heard after it") {
    opened d;
    d.at.listen("127.0.0.1:0", false);
    d.at.pause();
    detail::descriptor const knocks(::socket(AF_INET, SOCK_STREAM, 0));
    detail::endpoint to = detail::local_end(d.at.socket(0));
    REQUIRE(::connect(knocks.get(), to.get(), to.size) == 0);
    CHECK(d.thread.sleep(0).empty());
    auto const now = herring::clock::now();
    herring::time_point const due = d.at.resume(now);
    CHECK(due > now);
    CHECK(due <= now + std::chrono::milliseconds(100));
    CHECK(d.thread.sleep(0).empty());
    CHECK(d.at.resume(due) == herring::time_point::max());
    auto const events = d.thread.sleep(0);
    REQUIRE(events.size() == 1);
    std::uint64_t const key = events[0].data.u64; // of a packed struct: nothing may refer to it
    CHECK(key == 0);
}

} // namespace ensemble_acceptor_listeners_test

// herring: tests of net/sockets.hpp: how connecting ends, and what waits at a listener.
// SPDX-License-Identifier: Apache-2.0
#include "herring/net/sockets.hpp"

#include "herring/machine/name_lookup.hpp"

#include "doctest/doctest.h"

#include <cerrno>
#include <chrono>
#include <string>

#include <poll.h>
#include <sys/socket.h>

using namespace herring::detail;

namespace {

endpoint loopback() {
    std::string why;
    auto const found = resolve("127.0.0.1", 0, herring::clock::now() + std::chrono::seconds(30), why);
    REQUIRE(found.size() > 0);
    return found[0];
}
int connected(int socket) {
    pollfd ready{socket, POLLOUT, 0};
    REQUIRE(::poll(&ready, 1, 30'000) == 1);
    return connect_error(socket);
}

} // namespace

TEST_CASE("sockets: a connection is accepted once, with its address") {
    descriptor const listener(listen_on(loopback()));
    endpoint from;
    CHECK(accept_next(listener.get(), from).get() < 0);
    CHECK_FALSE(out_of_sockets(errno));
    descriptor dialler;
    REQUIRE(dial(dialler, local_end(listener.get()), std::chrono::seconds(5)));
    CHECK(connected(dialler.get()) == 0);
    descriptor const accepted = accept_next(listener.get(), from);
    CHECK(accepted.get() >= 0);
    CHECK(from.text() == local_end(dialler.get()).text());
    CHECK(accept_next(listener.get(), from).get() < 0);
}

TEST_CASE("sockets: a port where no process listens refuses, also a socket that meets itself there") {
    endpoint nobody;
    { nobody = local_end(descriptor(listen_on(loopback())).get()); }
    descriptor dialler;
    CHECK((!dial(dialler, nobody) || connected(dialler.get()) == ECONNREFUSED));
    descriptor const itself(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    endpoint const own = loopback();
    REQUIRE(::bind(itself.get(), own.get(), own.size) == 0);
    endpoint const there = local_end(itself.get());
    REQUIRE(::connect(itself.get(), there.get(), there.size) == 0);
    CHECK(connected(itself.get()) == ECONNREFUSED);
}

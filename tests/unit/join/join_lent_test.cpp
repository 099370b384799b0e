// herring: tests of join/join.hpp with servers that a service lends: whom rank 0's door admits, and the lease.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join/join.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

using namespace herring;
using namespace std::chrono_literals;

namespace {

std::string const of_job(64, 'a'), of_lease(64, 'b');
std::array<int, 2> ends{}; // of the lease: the service's, and the job's

/// A service that grants all.
detail::lease grant(lent_servers const&, detail::lease_terms const& of) {
    CHECK(of.workers == 1);
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    return {detail::descriptor(ends[1]), of_lease, "a service"};
}

join_options rank(int number, std::string const& address, std::string const& secret) {
    join_options how;
    how.rank = number;
    how.size = 2;
    how.address = address;
    how.secret = secret;
    how.timeout = 3s;
    if (number == 1) how.role = role::server;
    return how;
}
join_options rank_0(std::string const& address, detail::failure_handler const& on_drain = {}) {
    join_options how = rank(0, address, of_job);
    how.size = 1;
    how.servers.count = 1;
    how.servers.on_drain = on_drain;
    how.servers.ask = grant;
    return how;
}

/// What rank 0 and a rank behind the workers, which joins so, are told; empty: both have joined.
std::string joined(std::string const& secret, std::optional<role> as) {
    std::string const address = free_address();
    std::string said;
    std::thread server([&] {
        try {
            join_options how = rank(1, address, secret);
            how.role = as;
            world const w = join(how);
            CHECK(w.role() == role::server);
        } catch (error const& why) {
            said += why.why().text;
        }
    });
    try {
        world const w = join(rank_0(address));
        CHECK(w.servers() == 1);
    } catch (error const&) {
        server.join();
        return said.empty() ? "rank 0 failed" : said;
    }
    server.join();
    ::close(ends[0]);
    return said;
}

} // namespace

TEST_CASE("join with lent servers: the door admits them by the lease's secret, as servers, and nobody else "
          "in their place") {
    CHECK(joined(of_lease, role::server) == "");
    CHECK(joined(of_job, role::server).find("its secret is not rank 0's") != std::string::npos);
    CHECK(joined(of_lease, role::worker) != "");
}

TEST_CASE("join with lent servers: a worker's place is not had by the lease's secret") {
    std::string const address = free_address();
    std::string said;
    std::thread stranger([&] {
        try {
            join_options how = rank(1, address, of_lease);
            how.role = role::worker;
            how.size = 3;
            (void)join(how);
        } catch (error const& why) {
            said = why.why().text;
        }
    });
    join_options how = rank_0(address);
    how.size = 2; // two workers and a server
    how.servers.ask = [](lent_servers const&, detail::lease_terms const&) {
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
        return detail::lease{detail::descriptor(ends[1]), of_lease, "a service"};
    };
    CHECK_THROWS_AS(join(how), error);
    stranger.join();
    CHECK(said.find("its secret is not rank 0's") != std::string::npos);
    ::close(ends[0]);
}

TEST_CASE("join with lent servers: where none are lent, rank 0 tells the workers, and waits for no other") {
    std::string const address = free_address();
    auto const said = [&](int number, bool alone) {
        join_options how = rank(number, address, of_job);
        how.role = role::worker;
        how.servers.count = 1;
        if (alone) how.size = 3;
        how.timeout = 10s;
        how.servers.ask = [](lent_servers const&, detail::lease_terms const&) -> detail::lease {
            throw error(errc::no_resources, 0, -1, "join", "the service is full");
        };
        try {
            (void)join(how);
        } catch (error const& why) {
            return std::string(to_string(why.code())) + ": " + why.why().text;
        }
        return std::string("joined");
    };
    std::string of_worker;
    std::thread worker([&] { of_worker = said(1, false); });
    CHECK(said(0, false) == "no resources: the service is full");
    worker.join();
    CHECK(of_worker == "no resources: the service is full");
    CHECK(said(0, true) == "no resources: the service is full"); // no worker comes
}

TEST_CASE("join with lent servers: bytes over the lease are news, and its end is that of the servers") {
    std::string const address = free_address();
    std::atomic<int> told{0};
    std::atomic<bool> over{false};
    std::string said;
    std::thread server([&] {
        world w = join(rank(1, address, of_lease));
        while (!over) std::this_thread::yield();
        try {
            w.check();
        } catch (error const& why) {
            said = why.why().text;
        }
    });
    world w = join(rank_0(address, [&](failure const& why) {
        if (std::string(why.text) == "the service at a service is about to end: save, and leave") ++told;
    }));
    CHECK(::send(ends[0], "news", 4, 0) == 4);
    while (told == 0) std::this_thread::yield();
    CHECK(w.failed() == nullptr);
    ::close(ends[0]);
    while (w.failed() == nullptr) std::this_thread::yield();
    over = true;
    CHECK(w.failed()->peer == 1);
    CHECK(std::string(w.failed()->text).find("the service at a service, which lent it, has ended") !=
          std::string::npos);
    server.join();
}

TEST_CASE(
    "join with lent servers: while it waits, the lease's end ends the join; without a secret there is none") {
    join_options how = rank_0(free_address());
    how.timeout = 60s;
    how.servers.ask = [](lent_servers const& of, detail::lease_terms const& terms) {
        detail::lease granted = grant(of, terms);
        ::close(ends[0]);
        return granted;
    };
    try {
        (void)join(how);
        FAIL("joined");
    } catch (error const& why) {
        CHECK(why.code() == errc::peer_lost);
        CHECK(why.peer() == 1);
    }
    how.secret.reset();
    try {
        (void)join(how);
        FAIL("joined");
    } catch (error const& why) {
        CHECK(why.code() == errc::bad_argument);
        CHECK(std::string(why.what()).find("that has a secret") != std::string::npos);
    }
}

// herring: must not compile: an ensemble that names tcp, in a program that uses all that an ensemble has: one error still.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

#include <chrono>

#ifndef HERRING_TWIN
using mine = herring::ensemble<float, herring::transport::tcp, herring::combine::mean<herring::space::value>>;
#else
using mine = herring::ensemble<float, herring::combine::mean<herring::space::value>>;
#endif

void serve() {
    using namespace std::chrono_literals;
    mine::frontend front(
        {.listen = "0.0.0.0:7001", .members = {"a", "b"}, .elements = 10, .request_bytes = 8});
    std::byte const input[8] = {};
    mine::answer const a = front.ask(input, 2ms, {.k = 2});
    if (a) (void)a.values()[0];
    a.member_rows([](auto const& row) { (void)row.member(); });
    (void)a.contributors().count();
    (void)front.ready();
    (void)front.counters();
    (void)front.members();
    mine::frontend::answer done;
    std::uint64_t cookie = 0;
    if (front.submit(input, 2ms, 7).accepted() && front.next_done(done, cookie)) front.poll();
}
void answer() {
    mine::member me({.frontends = {"host:7001"}, .name = "a", .elements = 10, .request_bytes = 8});
    while (mine::job job = me.next()) {
        job.row()[0] = static_cast<float>(job.input().size());
        job.send();
    }
    (void)me.leave();
}

#include "use.hpp"

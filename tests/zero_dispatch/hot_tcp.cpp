// herring: the hot functions of transport::tcp, bare and checked, and of a reducer over it with shared memory, for the walk to look at.
// SPDX-License-Identifier: Apache-2.0
//
// With HOT_CONTROL the transport hands every completion to a virtual function, and the trace policy calls one: both must
// be caught. (A policy that is virtual itself is refused by the compiler: HRG-P10.)
//
// A rank may sleep in an event loop of the program's (transport/tcp_asio.hpp), which it reaches through pointers in three
// places: where it sleeps, where it is woken, and where a connection is closed. Without such a loop none is taken; the
// program here has none, so no code of Boost.Asio is in it.
//
// walk: --known herring/transport/tcp.hpp=3
#include "hot_calls.hpp"

#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/transport/checked.hpp>
#include <herring/transport/tcp.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

using tcp = herring::transport::tcp;
using checked = herring::transport::checked<tcp>;
using both =
    herring::reducer<float, tcp, herring::intra_node::shared_memory, herring::update::average, tracing>;

#ifndef HOT_CONTROL // whose one reducer and transport have the policies in every function
using committee =
    herring::reducer<float, tcp, herring::intra_node::shared_memory, herring::update::moments, tracing>;
#endif

extern "C" {
bool hot_tcp_post_send(tcp& t, herring::peer_id to, std::uint64_t tag,
                       std::span<std::byte const> const* from) {
    return t.post_send(to, tag, *from, 1);
}
bool hot_tcp_post_receive(tcp& t, herring::peer_id from, std::uint64_t tag,
                          std::span<std::byte> const* into) {
    return t.post_receive(from, tag, *into, 2);
}
std::size_t hot_tcp_poll(tcp& t) { return t.poll(counting{}); }
void hot_tcp_wait(tcp& t, herring::time_point until) { t.wait(until); }
void hot_tcp_wake(tcp& t) { t.wake(); }

#ifndef HOT_CONTROL
bool hot_checked_post_send(checked& t, herring::peer_id to, std::uint64_t tag,
                           std::span<std::byte const> const* from) {
    return t.post_send(to, tag, *from, 1);
}
bool hot_checked_post_receive(checked& t, herring::peer_id from, std::uint64_t tag,
                              std::span<std::byte> const* into) {
    return t.post_receive(from, tag, *into, 2);
}
std::size_t hot_checked_poll(checked& t) { return t.poll(counting{}); }
void hot_checked_wait(checked& t, herring::time_point until) { t.wait(until); }
void hot_checked_wake(checked& t) { t.wake(); }
#endif

void hot_both_ready(both& reduce, std::size_t i) { reduce.ready(i); }
void hot_both_ready_callers(both& reduce, std::size_t i, std::span<float> const* inout) {
    reduce.ready(i, *inout);
}
void hot_both_poll(both& reduce) { reduce.poll(); }
void hot_both_wait(both& reduce) { reduce.wait(); }
void hot_both_all_reduce(both& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }
void hot_both_collectives(both& reduce, std::span<float> const* all, std::span<float> const* mine) {
    run_collectives(reduce, *all, *mine);
}
#ifndef HOT_CONTROL
bool hot_both_moments(committee& reduce, std::span<float> const* all, std::span<float> const* mean,
                      std::span<float> const* deviation) {
    return run_moments(reduce, *all, *mean, *deviation);
}
#endif
}

namespace {
void ranks(herring::world& world) {
    calls_of_reducer<both>{.ready = hot_both_ready,
                           .ready_callers = hot_both_ready_callers,
                           .poll = hot_both_poll,
                           .wait = hot_both_wait,
                           .all_reduce = hot_both_all_reduce,
                           .collectives = hot_both_collectives}
        .run(world);
#ifndef HOT_CONTROL
    calls_of_committee<committee>{.moments = hot_both_moments}.run(world);
#endif
    // Each rank sends to the one of its number on the other node.
    calls_of_transport<tcp>{.post_send = hot_tcp_post_send,
                            .post_receive = hot_tcp_post_receive,
                            .poll = hot_tcp_poll,
                            .wait = hot_tcp_wait,
                            .wake = hot_tcp_wake}
        .run(world, (world.rank() + 2) % 4);
#ifndef HOT_CONTROL
    bytes_seen = 0;
    calls_of_transport<checked>{.post_send = hot_checked_post_send,
                                .post_receive = hot_checked_post_receive,
                                .poll = hot_checked_poll,
                                .wait = hot_checked_wait,
                                .wake = hot_checked_wake}
        .run(world, (world.rank() + 2) % 4);
#endif
}
} // namespace

int main(int count, char**) {
    if (count == 1) return herring::launch(4, ranks, {.nodes = {"a", "a", "b", "b"}});
#ifndef HOT_CONTROL
    // Not walked, but in the program: what join brings must have no vtable either.
    herring::world joined = herring::join();
    ranks(joined);
#endif
}

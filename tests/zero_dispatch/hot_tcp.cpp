// herring: the hot functions of transport::tcp, and of a reducer over it with shared memory, for the walk to look at.
// SPDX-License-Identifier: Apache-2.0
//
// With HOT_CONTROL the transport hands every completion to a virtual function, and the trace policy calls one: both must
// be caught. (A policy that is virtual itself is refused by the compiler: HRG-P10.)
//
// Boost.Asio, which `wait` sleeps in, calls its own operations through pointers: three calls a wake-up, namely the ready
// descriptor's, the pending wait's `perform`, and that wait's `complete`, which has Herring's handler inlined; one
// `complete` when `wake` ended the sleep. The code behind those pointers is walked too. The other places are not taken
// here: `destroy` where a socket or an io_context ends with waits pending, three for timers, of which there are none, and
// error_category::failed when a system call fails. Bytes move without Asio.
//
// Options for the walk, for Boost 1.74 (a file, and how many of its lines may call indirectly):
// walk: --behind ^boost::asio::detail::.*::do_(perform|complete)\(
// walk: --known boost/asio/detail/scheduler_operation.hpp=2
// walk: --known boost/asio/detail/reactor_op.hpp=1
// walk: --known boost/asio/detail/impl/timer_queue_set.ipp=3
// walk: --known boost/system/error_code.hpp=1
#include "hot_calls.hpp"

#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/transport/tcp.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

using tcp = herring::transport::tcp;
using both =
    herring::reducer<float, tcp, herring::intra_node::shared_memory, herring::update::average, tracing>;

extern "C" {
bool hot_tcp_post_send(tcp& t, int to, std::uint64_t tag, std::span<std::byte const> const* from) {
    return t.post_send(to, tag, *from, 1);
}
bool hot_tcp_post_receive(tcp& t, int from, std::uint64_t tag, std::span<std::byte> const* into) {
    return t.post_receive(from, tag, *into, 2);
}
std::size_t hot_tcp_poll(tcp& t) { return t.poll(counting{}); }
void hot_tcp_wait(tcp& t, herring::time_point until) { t.wait(until); }
void hot_tcp_wake(tcp& t) { t.wake(); }

void hot_both_ready(both& reduce, std::size_t i) { reduce.ready(i); }
void hot_both_ready_callers(both& reduce, std::size_t i, std::span<float> const* inout) {
    reduce.ready(i, *inout);
}
void hot_both_poll(both& reduce) { reduce.poll(); }
void hot_both_wait(both& reduce) { reduce.wait(); }
void hot_both_all_reduce(both& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }
}

namespace {
void ranks(herring::world& world) {
    calls_of_reducer<both>{.ready = hot_both_ready,
                           .ready_callers = hot_both_ready_callers,
                           .poll = hot_both_poll,
                           .wait = hot_both_wait,
                           .all_reduce = hot_both_all_reduce}
        .run(world);
    // Each rank sends to the one of its number on the other node.
    calls_of_transport<tcp>{.post_send = hot_tcp_post_send,
                            .post_receive = hot_tcp_post_receive,
                            .poll = hot_tcp_poll,
                            .wait = hot_tcp_wait,
                            .wake = hot_tcp_wake}
        .run(world, (world.rank() + 2) % 4);
}
} // namespace

int main(int count, char**) {
    if (count == 1) return herring::launch(4, ranks, {.nodes = {"a", "a", "b", "b"}});
    // Not walked, but in the program: what join brings must have no vtable either.
    herring::world joined = herring::join();
    ranks(joined);
}

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
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/transport/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#ifdef HOT_CONTROL
struct listener {
    virtual void heard(std::uint64_t) noexcept;
};
void listener::heard(std::uint64_t) noexcept {}
listener the_listener;
listener* volatile some_listener = &the_listener;

struct forwarding {
    using axis = herring::axes::trace;
    void operator()(herring::trace_event, std::uint32_t index) noexcept { some_listener->heard(index); }
};
using tracing = forwarding;
#else
using tracing = herring::trace::off;
#endif

using tcp = herring::transport::tcp;
using both = herring::reducer<float, tcp, herring::intra_node::shared_memory, tracing>;

std::size_t volatile bytes_seen = 0;

extern "C" {
bool hot_tcp_post_send(tcp& t, int to, std::uint64_t tag, std::span<std::byte const> const* from) {
    return t.post_send(to, tag, *from, 1);
}
bool hot_tcp_post_receive(tcp& t, int from, std::uint64_t tag, std::span<std::byte> const* into) {
    return t.post_receive(from, tag, *into, 2);
}
std::size_t hot_tcp_poll(tcp& t) {
    return t.poll([](herring::completion const& done) noexcept {
#ifdef HOT_CONTROL
        some_listener->heard(done.bytes);
#endif
        bytes_seen = bytes_seen + done.bytes;
    });
}
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
    herring::layout const tensors{{"a", 100}, {"b", 7}};
    std::vector<float> memory(7, 1.0f);
    std::span<float> const callers(memory);
    both one(world, tensors);
    hot_both_ready(one, 0);
    hot_both_ready_callers(one, 1, &callers);
    hot_both_poll(one);
    hot_both_wait(one);
    hot_both_all_reduce(one, &callers);

    // Each rank sends to the one of its number on the other node.
    int const peer = (world.rank() + 2) % 4;
    tcp two(world, {.peers = {&peer, 1},
                    .receives_per_peer = 1,
                    .sends_per_peer = 1,
                    .largest_message = sizeof(float) * 7});
    std::vector<float> received(7);
    auto const into = std::as_writable_bytes(std::span(received));
    auto const from = std::as_bytes(std::span<float const>(memory));
    hot_tcp_post_receive(two, peer, 3, &into);
    hot_tcp_wake(two);
    while (!hot_tcp_post_send(two, peer, 3, &from)) {
    }
    while (hot_tcp_poll(two) == 0 || bytes_seen < 2 * from.size())
        hot_tcp_wait(two, herring::clock::now() + std::chrono::milliseconds(10));
    world.barrier();
}
} // namespace

int main(int count, char**) {
    if (count == 1) return herring::launch(4, ranks, {.nodes = {"a", "a", "b", "b"}});
    // Not walked, but in the program: what join brings must have no vtable either.
    herring::world joined = herring::join();
    ranks(joined);
}

// herring: the hot functions of transport::ofi, and of a reducer over it, for the walk to look at.
// SPDX-License-Identifier: Apache-2.0
//
// With HOT_CONTROL the transport hands every completion to a virtual function, and the trace policy calls one: both must
// be caught.
//
// Libfabric is a table of functions for each of its objects: every fi_* call is one indirect call, in one line of one of
// its headers, and there is no other. On the hot path those are fi_tsend, fi_trecv and fi_trecvv, fi_cq_read with fi_cq_readerr and
// fi_cq_strerror for errors, and fi_trywait in front of a sleep; fi_close ends what a failed reduction has posted.
//
// needs: rdma/fabric.h
// link: -lfabric
// walk: --known rdma/fi_tagged.h=3
// walk: --known rdma/fi_eq.h=4
// walk: --known rdma/fabric.h=1
#include <herring/herring.hpp>
#include <herring/launch.hpp>
#include <herring/transport/ofi.hpp>

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

using ofi = herring::transport::ofi<herring::provider::tcp>;
using reducing = herring::reducer<float, ofi, tracing>;

std::size_t volatile bytes_seen = 0;

extern "C" {
bool hot_ofi_post_send(ofi& t, int to, std::uint64_t tag, std::span<std::byte const> const* from) {
    return t.post_send(to, tag, *from, 1);
}
bool hot_ofi_post_receive(ofi& t, int from, std::uint64_t tag, std::span<std::byte> const* into) {
    return t.post_receive(from, tag, *into, 2);
}
std::size_t hot_ofi_poll(ofi& t) {
    return t.poll([](herring::completion const& done) noexcept {
#ifdef HOT_CONTROL
        some_listener->heard(done.bytes);
#endif
        bytes_seen = bytes_seen + done.bytes;
    });
}
void hot_ofi_wait(ofi& t, herring::time_point until) { t.wait(until); }
void hot_ofi_wake(ofi& t) { t.wake(); }

void hot_reducing_ready(reducing& reduce, std::size_t i) { reduce.ready(i); }
void hot_reducing_ready_callers(reducing& reduce, std::size_t i, std::span<float> const* inout) {
    reduce.ready(i, *inout);
}
void hot_reducing_poll(reducing& reduce) { reduce.poll(); }
void hot_reducing_wait(reducing& reduce) { reduce.wait(); }
void hot_reducing_all_reduce(reducing& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }
}

namespace {
void ranks(herring::world& world) {
    herring::layout const tensors{{"a", 100}, {"b", 7}};
    std::vector<float> memory(7, 1.0f);
    std::span<float> const callers(memory);
    reducing one(world, tensors);
    hot_reducing_ready(one, 0);
    hot_reducing_ready_callers(one, 1, &callers);
    hot_reducing_poll(one);
    hot_reducing_wait(one);
    hot_reducing_all_reduce(one, &callers);

    int const peer = 1 - world.rank();
    ofi two(world, {.peers = {&peer, 1},
                    .receives_per_peer = 1,
                    .sends_per_peer = 1,
                    .largest_message = sizeof(float) * 7});
    std::vector<float> received(7);
    auto const into = std::as_writable_bytes(std::span(received));
    auto const from = std::as_bytes(std::span<float const>(memory));
    hot_ofi_post_receive(two, peer, 3, &into);
    hot_ofi_wake(two);
    while (!hot_ofi_post_send(two, peer, 3, &from)) {
    }
    while (hot_ofi_poll(two) == 0 || bytes_seen < 2 * from.size())
        hot_ofi_wait(two, herring::clock::now() + std::chrono::milliseconds(10));
    world.barrier();
}
} // namespace

int main() { return herring::launch(2, ranks); }

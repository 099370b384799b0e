// herring: the hot functions of transport::ofi, and of a reducer over it, for the walk to look at.
// SPDX-License-Identifier: Apache-2.0
//
// With HOT_CONTROL the transport hands every completion to a virtual function, and the trace policy calls one: both must
// be caught.
//
// Libfabric is a table of functions for each of its objects: every fi_* call is one indirect call, in one line of one of
// its headers, and there is no other. On the hot path those are fi_tsend, fi_tsendv, fi_trecv and fi_trecvv, fi_cq_read with fi_cq_readerr and
// fi_cq_strerror for errors, and fi_trywait in front of a sleep; fi_close ends what a failed reduction has posted.
//
// needs: rdma/fabric.h
// link: -lfabric
// walk: --known rdma/fi_tagged.h=4
// walk: --known rdma/fi_eq.h=4
// walk: --known rdma/fabric.h=1
#include "hot_calls.hpp"

#include <herring/herring.hpp>
#include <herring/launch.hpp>
#include <herring/transport/ofi.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

using ofi = herring::transport::ofi<herring::provider::tcp>;
using reducing = herring::reducer<float, ofi, herring::update::average, tracing>;

extern "C" {
bool hot_ofi_post_send(ofi& t, herring::peer_id to, std::uint64_t tag,
                       std::span<std::byte const> const* from) {
    return t.post_send(to, tag, *from, 1);
}
bool hot_ofi_post_receive(ofi& t, herring::peer_id from, std::uint64_t tag,
                          std::span<std::byte> const* into) {
    return t.post_receive(from, tag, *into, 2);
}
std::size_t hot_ofi_poll(ofi& t) { return t.poll(counting{}); }
void hot_ofi_wait(ofi& t, herring::time_point until) { t.wait(until); }
void hot_ofi_wake(ofi& t) { t.wake(); }

void hot_reducing_ready(reducing& reduce, std::size_t i) { reduce.ready(i); }
void hot_reducing_ready_callers(reducing& reduce, std::size_t i, std::span<float> const* inout) {
    reduce.ready(i, *inout);
}
void hot_reducing_poll(reducing& reduce) { reduce.poll(); }
void hot_reducing_wait(reducing& reduce) { reduce.wait(); }
void hot_reducing_all_reduce(reducing& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }
void hot_reducing_collectives(reducing& reduce, std::span<float> const* all, std::span<float> const* mine) {
    run_collectives(reduce, *all, *mine);
}
}

namespace {
void ranks(herring::world& world) {
    calls_of_reducer<reducing>{.ready = hot_reducing_ready,
                               .ready_callers = hot_reducing_ready_callers,
                               .poll = hot_reducing_poll,
                               .wait = hot_reducing_wait,
                               .all_reduce = hot_reducing_all_reduce,
                               .collectives = hot_reducing_collectives}
        .run(world);
    calls_of_transport<ofi>{.post_send = hot_ofi_post_send,
                            .post_receive = hot_ofi_post_receive,
                            .poll = hot_ofi_poll,
                            .wait = hot_ofi_wait,
                            .wake = hot_ofi_wake}
        .run(world, 1 - world.rank());
}
} // namespace

int main() { return herring::launch(2, ranks); }

// herring: the hot functions of transport::sealed, and of a reducer over it, for the walk to look at.
// SPDX-License-Identifier: Apache-2.0
//
// With HOT_CONTROL the transport hands every completion to a virtual function, and the trace policy calls one: both must
// be caught.
//
// Libcrypto reaches its ciphers through pointers of its own, behind functions of its shared library, which end the walk like a
// system call: EVP_CipherInit_ex, EVP_CipherUpdate, EVP_CipherFinal_ex and EVP_CIPHER_CTX_ctrl, and no other is called. The
// three places of tcp are those that hot_tcp.cpp tells of.
//
// needs: openssl/evp.h
// link: -lcrypto
// walk: --known herring/transport/tcp.hpp=3
#include "hot_calls.hpp"

#include <herring/herring.hpp>
#include <herring/launch.hpp>
#include <herring/transport/sealed.hpp>
#include <herring/transport/tcp.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

using sealed = herring::transport::sealed<herring::transport::tcp>;
using reducing = herring::reducer<float, sealed, herring::update::average, tracing>;

extern "C" {
bool hot_sealed_post_send(sealed& t, herring::peer_id to, std::uint64_t tag,
                          std::span<std::byte const> const* from) {
    return t.post_send(to, tag, *from, 1);
}
bool hot_sealed_post_receive(sealed& t, herring::peer_id from, std::uint64_t tag,
                             std::span<std::byte> const* into) {
    return t.post_receive(from, tag, *into, 2);
}
std::size_t hot_sealed_poll(sealed& t) { return t.poll(counting{}); }
void hot_sealed_wait(sealed& t, herring::time_point until) { t.wait(until); }
void hot_sealed_wake(sealed& t) { t.wake(); }

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
    calls_of_transport<sealed>{.post_send = hot_sealed_post_send,
                               .post_receive = hot_sealed_post_receive,
                               .poll = hot_sealed_poll,
                               .wait = hot_sealed_wait,
                               .wake = hot_sealed_wake}
        .run(world, 1 - world.rank());
}
} // namespace

int main() { return herring::launch(2, ranks); }

// herring: calls into libfabric that do not return, each at every place: ranks end in an error that names who is dead.
// SPDX-License-Identifier: Apache-2.0
// Own object: it replaces functions of libfabric.
//
// A call that spins on a dead rank's lock comes by chance; here it is made: each of libfabric's calls can be told to
// spin for ever. What is around them is real: processes, the provider, the reducer.
#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include <atomic>

namespace stuck {

enum class call { none, send, recv, tsend, trecv, read };
inline std::atomic<call> in{call::none};
inline std::atomic<int> passes{0};                // so many go through before one does not
inline std::atomic<std::atomic<long>*> witness{}; // gets a 1 when one is stuck

inline void at(call which) {
    if (in.load() != which || passes.fetch_sub(1) > 0) return;
    witness.load()->store(1);
    for (std::atomic<unsigned> spins{0};; spins.fetch_add(1)) {
    }
}
inline ssize_t send(fid_ep* ep, void const* from, size_t bytes, void* desc, fi_addr_t to, void* context) {
    at(call::send);
    return fi_send(ep, from, bytes, desc, to, context);
}
inline ssize_t recv(fid_ep* ep, void* into, size_t bytes, void* desc, fi_addr_t from, void* context) {
    at(call::recv);
    return fi_recv(ep, into, bytes, desc, from, context);
}
inline ssize_t tsend(fid_ep* ep, void const* from, size_t bytes, void* desc, fi_addr_t to, uint64_t tag,
                     void* context) {
    at(call::tsend);
    return fi_tsend(ep, from, bytes, desc, to, tag, context);
}
inline ssize_t trecvv(fid_ep* ep, iovec const* into, void** descs, size_t count, fi_addr_t from, uint64_t tag,
                      uint64_t ignore, void* context) {
    at(call::trecv);
    return fi_trecvv(ep, into, descs, count, from, tag, ignore, context);
}
inline ssize_t read(fid_cq* queue, void* into, size_t count) {
    at(call::read);
    return fi_cq_read(queue, into, count);
}

} // namespace stuck

#define fi_send stuck::send
#define fi_recv stuck::recv
#define fi_tsend stuck::tsend
#define fi_trecvv stuck::trecvv
#define fi_cq_read stuck::read
#include "scene.hpp"

#include "herring/transport/ofi.hpp"

#include <thread>

using namespace fault;
namespace provider = herring::provider;

namespace {

template <class Progress = herring::progress::caller>
using over = herring::reducer<float, herring::transport::ofi<provider::shm>, herring::update::sum,
                              herring::fusion::per_tensor, Progress>;

/// Rank 0 gets stuck from now on, and a while after it is the last rank dies.
void get_stuck(world& w, board& b, stuck::call where, int passes = 0) {
    if (w.rank() == 0) {
        stuck::passes.store(passes);
        stuck::witness.store(&b.ranks[0].value);
        stuck::in.store(where);
    }
    if (w.rank() == w.size() - 1)
        std::thread([&b] {
            while (b.ranks[0].value.load() == 0) std::this_thread::sleep_for(milliseconds(1));
            std::this_thread::sleep_for(
                milliseconds(250)); // waits for nothing: it has been stuck for a while then
            b.die();
        }).detach();
}

/// All ranks but the last name it; rank 0, which was in the call, as well.
template <class Function> void survive(std::string const& name, Function function) {
    for (start const how : {start::launch, start::join}) {
        setup s;
        s.how = how;
        s.ranks = 3;
        s.name = name;
        report const seen = play(s, function);
        check_named(s, seen, 2, {errc::peer_lost});
        CAPTURE(name);
        CHECK(seen.ranks[0].value == 1); // or it went by the place
    }
}

struct place {
    stuck::call where;
    char const* name;
};
constexpr place all[] = {{stuck::call::send, "fi_send"},
                         {stuck::call::recv, "fi_recv"},
                         {stuck::call::tsend, "fi_tsend"},
                         {stuck::call::trecv, "fi_trecvv"},
                         {stuck::call::read, "fi_cq_read"}};

template <class Progress> void in_a_step(std::string const& progress) {
    for (place const& one : {all[2], all[3], all[4]})
        survive(std::string(one.name) + " in a step, progress by " + progress, [&](world& w, board& b) {
            over<Progress> reduce(w, mixed_layout());
            step(reduce, w, 0);
            w.barrier();
            get_stuck(w, b, one.where, 3);
            for (int n = 1;; ++n) step(reduce, w, n);
        });
}

} // namespace

TEST_CASE("ofi: a call that does not return, in a step") {
    in_a_step<herring::progress::caller>("the caller");
}

TEST_CASE("ofi: a call that does not return, in a step of a reducer with a thread") {
    in_a_step<herring::progress::thread>("a thread");
}

TEST_CASE("ofi: a call that does not return, in construction") {
    for (place const& one : {all[0], all[1], all[4]})
        for (int const passes : {0, 1})
            survive(std::string(one.name) + " in construction", [&](world& w, board& b) {
                get_stuck(w, b, one.where, passes);
                over<> reduce(w, mixed_layout());
                for (int n = 0;; ++n) step(reduce, w, n);
            });
}

TEST_CASE("ofi: a call that does not return, in destruction") {
    for (place const& one : {all[0], all[4]})
        survive(std::string(one.name) + " in destruction", [&](world& w, board& b) {
            {
                over<> reduce(w, mixed_layout());
                step(reduce, w, 0);
                w.barrier();
                get_stuck(w, b, one.where);
                if (w.rank() == 2) await(b.steps, 1000); // it is killed while it waits
            }
            w.barrier(); // the destructor throws nothing; this tells
        });
}

TEST_CASE("ofi: a call that does not return, in a post from a completion") {
    survive("fi_tsend from a completion", [](world& w, board& b) {
        std::vector<int> peers;
        for (int r = 0; r < w.size(); ++r)
            if (r != w.rank()) peers.push_back(r);
        herring::transport_needs needs;
        needs.peers = peers;
        needs.receives_per_peer = needs.sends_per_peer = 4;
        needs.largest_message = 4096;
        std::byte in[8]{}, out[8]{};
        herring::transport::ofi<provider::shm> moves(w, needs);
        bool answered = false;
        auto const answer = [&](herring::completion const& done) noexcept {
            if (done.what == herring::completion::received && !answered)
                answered = true, moves.post_send(herring::peer_id{0}, 6, out, 3);
        };
        if (w.rank() == 0) moves.post_receive(herring::peer_id{0}, 5, in, 1);
        w.barrier();
        get_stuck(w, b, stuck::call::tsend);
        if (w.rank() == 1)
            while (!moves.post_send(herring::peer_id{0}, 5, out, 2)) moves.poll(answer);
        for (;;) {
            moves.poll(answer);
            w.check();
            moves.wait(herring::clock::now() + milliseconds(5));
        }
    });
}

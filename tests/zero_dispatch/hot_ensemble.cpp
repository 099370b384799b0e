// herring: the hot functions of an ensemble, of its frontend, its answers and its members, for the walk to look at.
// SPDX-License-Identifier: Apache-2.0
//
// A request: asked, sent by the lanes (TCP and shared memory), its rows polled, checked and folded, its answer read and let go.
// A member: the next job, its row encoded and sent, or declined; and rows that nobody asked for. Asleep and awake, as a thread
// that waits and as an event loop. What is left out is the thread of the acceptor, which calls the program's handler of changes, and
// the dialler's.
//
// Two places call through a pointer: the last answer of a frontend that has gone takes the frontend's memory with it, and with that
// the program's handler of changes, and the connections of members, whose cipher (ensembles have none) is destroyed by the library that
// made it. The question whether the frontend has gone is all that other answers meet.
//
// With HOT_CONTROL the waiting policy calls a virtual function: it must be caught.
//
// walk: --known herring/base/shared_handler.hpp=1 --known herring/crypto/seal_provider.hpp=1
#include <herring/ensemble.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace herring;

#ifdef HOT_CONTROL
struct listener {
    virtual void heard(std::uint64_t) noexcept;
};
void listener::heard(std::uint64_t) noexcept {}
listener the_listener;
listener* volatile some_listener = &the_listener;

struct told_of_waits {
    using axis = axes::waiting;
    static constexpr char const* name = "told_of_waits";
    wait_action next(std::uint32_t rounds, std::int64_t, bool) const noexcept {
        some_listener->heard(rounds);
        return wait_action::sleep;
    }
};
using waits = told_of_waits;
#else
using waits = waiting::adaptive;
#endif

using dense = ensemble<float, combine::mean<space::probability, weighting::renormalised>, wire::bf16,
                       outputs::of<outputs::variance>, quorum::at_least<2>, waits>;
using few = ensemble<float, combine::mean<space::probability>, wire::top_k<8>, quorum::at_least<2>, waits>;

namespace {
template <class Ensemble> bool ask(typename Ensemble::frontend& front, std::span<std::byte const> input) {
    auto const a = front.ask(input, std::chrono::milliseconds(2));
    return a.has_values() && a.contributors().count() > 1 && a.why(0) == miss::none;
}
template <class Ensemble>
std::size_t loop(typename Ensemble::frontend& front, std::span<std::byte const> input) {
    (void)front.submit(input, std::chrono::milliseconds(2), 7);
    front.poll();
    typename Ensemble::answer a;
    std::uint64_t cookie = 0;
    std::size_t done = 0;
    while (front.next_done(a, cookie)) ++done;
    return done;
}
template <class Ensemble> bool serve(typename Ensemble::member& me) {
    auto job = me.next(std::chrono::milliseconds(2));
    if (!job) return false;
    for (float& x : job.row()) x = static_cast<float>(job.input().size());
    return job.send() == job_end::sent;
}
template <class Ensemble> bool serve_of_loop(typename Ensemble::member& me) {
    auto job = me.try_next();
    if (!job) return me.arm();
    return job.decline() == job_end::declined;
}
} // namespace

extern "C" {
bool hot_dense_ask(dense::frontend& front, std::span<std::byte const> const* input) {
    return ask<dense>(front, *input);
}
std::size_t hot_dense_loop(dense::frontend& front, std::span<std::byte const> const* input) {
    return loop<dense>(front, *input);
}
bool hot_dense_expect(dense::frontend& front, std::uint64_t id) {
    return front.expect(id, std::chrono::milliseconds(2)).has_values();
}
bool hot_dense_serve(dense::member& me) { return serve<dense>(me); }
bool hot_dense_serve_of_loop(dense::member& me) { return serve_of_loop<dense>(me); }
std::size_t hot_dense_contribute(dense::member& me, std::span<float const> const* row) {
    return me.contribute(3, *row);
}
bool hot_few_ask(few::frontend& front, std::span<std::byte const> const* input) {
    return ask<few>(front, *input);
}
bool hot_few_serve(few::member& me) { return serve<few>(me); }
}

int main() {
    std::vector<std::byte> const memory(64);
    std::span<std::byte const> const input(memory);
    std::vector<float> const numbers(100);
    std::span<float const> const row(numbers);
    dense::frontend front(
        {.listen = "127.0.0.1:0", .members = {"a", "b"}, .elements = 100, .request_bytes = 64});
    dense::member me({.frontends = {front.address()}, .name = "a", .elements = 100, .request_bytes = 64});
    few::frontend other(
        {.listen = "127.0.0.1:0", .members = {"a", "b"}, .elements = 100, .request_bytes = 64});
    few::member them({.frontends = {other.address()}, .name = "a", .elements = 100, .request_bytes = 64});
    for (int i = 0; i < 100; ++i) {
        (void)hot_dense_ask(front, &input);
        (void)hot_dense_loop(front, &input);
        (void)hot_dense_expect(front, 5);
        (void)hot_dense_serve(me);
        (void)hot_dense_serve_of_loop(me);
        (void)hot_dense_contribute(me, &row);
        (void)hot_few_ask(other, &input);
        (void)hot_few_serve(them);
    }
}

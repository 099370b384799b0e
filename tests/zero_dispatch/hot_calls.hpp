// herring: what the programs that the walk looks at share: the policy that it must catch, and calls of their hot functions.
// SPDX-License-Identifier: Apache-2.0
//
// Where the walk starts is written in each program: its functions extern "C" whose names begin with hot_.
#ifndef HERRING_TESTS_HOT_CALLS_HPP
#define HERRING_TESTS_HOT_CALLS_HPP

#include <herring/collectives/all_gather.hpp>
#include <herring/collectives/all_moments.hpp>
#include <herring/collectives/all_to_all.hpp>
#include <herring/collectives/broadcast.hpp>
#include <herring/collectives/reduce_scatter.hpp>
#include <herring/herring.hpp>

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

/// Calls through a virtual function of an object that it points to: it must be caught. (A policy that is virtual itself
/// is refused by the compiler: HRG-P10.)
struct forwarding {
    using axis = herring::axes::trace;
    void operator()(herring::trace_event, std::uint32_t index) noexcept { some_listener->heard(index); }
};
using tracing = forwarding;
#else
using tracing = herring::trace::off;
#endif

inline std::size_t volatile bytes_seen = 0;

/// What a transport's completions are given to.
struct counting {
    void operator()(herring::completion const& done) const noexcept {
#ifdef HOT_CONTROL
        some_listener->heard(done.bytes);
#endif
        bytes_seen = bytes_seen + done.bytes;
    }
};

/// The collectives beside a reducer: of the gradients this rank gets its own range, and of the weights all ranges.
template <class Reducer> void run_collectives(Reducer& reduce, std::span<float> all, std::span<float> mine) {
    herring::reduce_scatter(reduce, all, mine);
    herring::all_gather(reduce, mine, all);
    herring::broadcast(reduce, all, 0);
    if constexpr (!Reducer::pack::placement::facts.dedicated_servers)
        herring::all_to_all(reduce, mine, all.first(mine.size()));
}

/// Mean and deviation of all ranks.
template <class Reducer>
bool run_moments(Reducer& reduce, std::span<float> all, std::span<float> mean, std::span<float> deviation) {
    return herring::all_moments(reduce, all, mean, deviation).exceeds(0.5f);
}
/// A program's hot function of a committee, which is called once.
template <class Reducer> struct calls_of_committee {
    bool (*moments)(Reducer&, std::span<float> const* all, std::span<float> const* mean,
                    std::span<float> const* deviation);

    void run(herring::world& world) const {
        std::vector<float> memory(3 * 5000, 1.0f);
        std::span<float> const all(memory.data(), 5000), mean(memory.data() + 5000, 5000),
            deviation(memory.data() + 10'000, 5000);
        Reducer reduce(world);
        moments(reduce, &all, &mean, &deviation);
    }
};

/// A program's hot functions of one reducer.
template <class Reducer> struct calls_of_reducer {
    void (*ready)(Reducer&, std::size_t);
    void (*ready_callers)(Reducer&, std::size_t, std::span<float> const*);
    void (*poll)(Reducer&);
    void (*wait)(Reducer&);
    void (*all_reduce)(Reducer&, std::span<float> const*);
    void (*collectives)(Reducer&, std::span<float> const* all, std::span<float> const* mine);

    void run(herring::world& world) const {
        std::vector<float> memory(7, 1.0f);
        std::span<float> const callers(memory);
        Reducer reduce(world, herring::layout{{"a", 100}, {"b", 7}});
        ready(reduce, 0);
        ready_callers(reduce, 1, &callers);
        poll(reduce);
        wait(reduce);
        all_reduce(reduce, &callers);
        std::vector<float> own(reduce.owned(memory.size(), world.rank()).elements);
        std::span<float> const mine(own);
        collectives(reduce, &callers, &mine);
    }
};

/// A program's hot functions of one transport.
template <class Transport> struct calls_of_transport {
    bool (*post_send)(Transport&, herring::peer_id, std::uint64_t, std::span<std::byte const> const*);
    bool (*post_receive)(Transport&, herring::peer_id, std::uint64_t, std::span<std::byte> const*);
    std::size_t (*poll)(Transport&);
    void (*wait)(Transport&, herring::time_point);
    void (*wake)(Transport&);

    /// One message each way.
    void run(herring::world& world, int peer) const {
        std::vector<float> const sent(7, 1.0f);
        std::vector<float> received(sent.size());
        auto const from = std::as_bytes(std::span(sent));
        auto const into = std::as_writable_bytes(std::span(received));
        Transport by(world, {.peers = {&peer, 1},
                             .receives_per_peer = 1,
                             .sends_per_peer = 1,
                             .largest_message = from.size()});
        post_receive(by, herring::peer_id{0}, 3, &into);
        wake(by);
        while (!post_send(by, herring::peer_id{0}, 3, &from)) {
        }
        while (poll(by) == 0 || bytes_seen < 2 * from.size())
            wait(by, herring::clock::now() + std::chrono::milliseconds(10));
        world.barrier();
    }
};

#endif // HERRING_TESTS_HOT_CALLS_HPP

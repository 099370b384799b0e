// herring: the hot functions of reducers with a timeline, over inproc and TCP with shared memory, for the walk to look at.
// SPDX-License-Identifier: Apache-2.0
//
// With HOT_CONTROL the timeline's place is taken by a trace policy that takes details as it does, and calls through a virtual
// function: it must be caught.
//
// walk: --known herring/transport/tcp.hpp=2
#include "hot_calls.hpp"

#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/trace/timeline.hpp>
#include <herring/transport/inproc.hpp>
#include <herring/transport/tcp.hpp>

#include <cstddef>
#include <span>

#ifdef HOT_CONTROL
struct telling {
    using axis = herring::axes::trace;
    static constexpr herring::trace_facts facts{.details = true};
    void record(herring::trace_event, herring::trace_details const& of) noexcept {
        some_listener->heard(of.index);
    }
};
using recording = telling;
#else
using recording = herring::trace::timeline<128>;
#endif

using near = herring::reducer<float, herring::transport::inproc, herring::intra_node::shared_memory,
                              herring::update::average, recording>;
#ifndef HOT_CONTROL // one reducer is enough
using far = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory,
                             herring::update::average, recording>;
#endif

extern "C" {
void hot_near_ready(near& reduce, std::size_t i) { reduce.ready(i); }
void hot_near_ready_callers(near& reduce, std::size_t i, std::span<float> const* inout) {
    reduce.ready(i, *inout);
}
void hot_near_poll(near& reduce) { reduce.poll(); }
void hot_near_wait(near& reduce) { reduce.wait(); }
void hot_near_all_reduce(near& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }
void hot_near_collectives(near& reduce, std::span<float> const* all, std::span<float> const* mine) {
    run_collectives(reduce, *all, *mine);
}

#ifndef HOT_CONTROL
void hot_far_ready(far& reduce, std::size_t i) { reduce.ready(i); }
void hot_far_ready_callers(far& reduce, std::size_t i, std::span<float> const* inout) {
    reduce.ready(i, *inout);
}
void hot_far_poll(far& reduce) { reduce.poll(); }
void hot_far_wait(far& reduce) { reduce.wait(); }
void hot_far_all_reduce(far& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }
void hot_far_collectives(far& reduce, std::span<float> const* all, std::span<float> const* mine) {
    run_collectives(reduce, *all, *mine);
}
#endif
}

int main() {
    herring::launch_threads(2, [](herring::world& world) {
        calls_of_reducer<near>{.ready = hot_near_ready,
                               .ready_callers = hot_near_ready_callers,
                               .poll = hot_near_poll,
                               .wait = hot_near_wait,
                               .all_reduce = hot_near_all_reduce,
                               .collectives = hot_near_collectives}
            .run(world);
    });
#ifndef HOT_CONTROL
    auto const apart = [](herring::world& world) {
        calls_of_reducer<far>{.ready = hot_far_ready,
                              .ready_callers = hot_far_ready_callers,
                              .poll = hot_far_poll,
                              .wait = hot_far_wait,
                              .all_reduce = hot_far_all_reduce,
                              .collectives = hot_far_collectives}
            .run(world);
    };
    return herring::launch(4, apart, {.nodes = {"a", "a", "b", "b"}});
#endif
}

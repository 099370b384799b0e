// herring: the hot functions of reducers over inproc, alone and with shared memory, for the walk to look at.
// SPDX-License-Identifier: Apache-2.0
//
// With HOT_CONTROL the trace policy calls through a virtual function of an object that it points to: it must be caught.
// (A policy that is virtual itself is refused by the compiler: HRG-P10.)
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/transport/inproc.hpp>

#include <chrono>
#include <cstddef>
#include <span>

#ifdef HOT_CONTROL
struct listener {
    virtual void heard(herring::trace_event, std::uint32_t) noexcept;
};
void listener::heard(herring::trace_event, std::uint32_t) noexcept {}
listener the_listener;
listener* volatile some_listener = &the_listener;

struct forwarding {
    using axis = herring::axes::trace;
    void operator()(herring::trace_event event, std::uint32_t index) noexcept {
        some_listener->heard(event, index);
    }
};
using trace = forwarding;
#else
using trace = herring::trace::off;
#endif

using flat = herring::reducer<float, herring::transport::inproc, trace>;
using local = herring::reducer<float, herring::transport::inproc, herring::intra_node::shared_memory, trace>;

extern "C" {
void hot_flat_ready(flat& reduce, std::size_t i) { reduce.ready(i); }
void hot_flat_ready_callers(flat& reduce, std::size_t i, std::span<float> const* inout) {
    reduce.ready(i, *inout);
}
void hot_flat_poll(flat& reduce) { reduce.poll(); }
void hot_flat_wait(flat& reduce) { reduce.wait(); }
void hot_flat_all_reduce(flat& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }

void hot_local_ready(local& reduce, std::size_t i) { reduce.ready(i); }
void hot_local_ready_callers(local& reduce, std::size_t i, std::span<float> const* inout) {
    reduce.ready(i, *inout);
}
void hot_local_poll(local& reduce) { reduce.poll(); }
void hot_local_wait(local& reduce) { reduce.wait(); }
void hot_local_all_reduce(local& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }
}

int main() {
    herring::launch_threads(2, [](herring::world& world) {
        herring::layout const tensors{{"a", 100}, {"b", 7}};
        std::vector<float> memory(7, 1.0f);
        std::span<float> const callers(memory);
        flat one(world, tensors);
        hot_flat_ready(one, 0);
        hot_flat_ready_callers(one, 1, &callers);
        hot_flat_poll(one);
        hot_flat_wait(one);
        hot_flat_all_reduce(one, &callers);
        local two(world, tensors);
        hot_local_ready(two, 0);
        hot_local_ready_callers(two, 1, &callers);
        hot_local_poll(two);
        hot_local_wait(two);
        hot_local_all_reduce(two, &callers);
    });
}

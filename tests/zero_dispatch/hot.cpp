// herring: the hot functions of reducers over inproc, alone and with shared memory, for the walk to look at.
// SPDX-License-Identifier: Apache-2.0
//
// With HOT_CONTROL the trace policy calls through a virtual function of an object that it points to: it must be caught.
// (A policy that is virtual itself is refused by the compiler: HRG-P10.)
#include "hot_calls.hpp"

#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/optimizer/adamw.hpp>
#include <herring/optimizer/clipped.hpp>
#include <herring/optimizer/lamb.hpp>
#include <herring/serve.hpp>
#include <herring/training.hpp>
#include <herring/transport/inproc.hpp>
#include <herring/update/any.hpp>

#include <cstddef>
#include <span>
#include <vector>

using flat = herring::reducer<float, herring::transport::inproc, herring::update::average, tracing>;
#ifndef HOT_CONTROL // whose one reducer has the policy in every function
using local = herring::reducer<float, herring::transport::inproc, herring::intra_node::shared_memory,
                               herring::update::average, tracing>;

using committee = herring::reducer<float, herring::transport::inproc, herring::intra_node::shared_memory,
                                   herring::update::moments, tracing>;

using rules = herring::update::any<herring::update::sum, herring::update::average, herring::update::min,
                                   herring::update::max, herring::update::product>;
using chosen =
    herring::reducer<float, herring::transport::inproc, herring::intra_node::shared_memory, rules, tracing>;

using trainer = herring::reducer<float, herring::transport::inproc, herring::intra_node::shared_memory,
                                 herring::optimizer::adamw, tracing>;
using in_two =
    herring::reducer<herring::bfloat16, herring::transport::inproc, herring::intra_node::shared_memory,
                     herring::optimizer::clipped<herring::optimizer::lamb>, tracing>;

using served = herring::reducer<float, herring::transport::inproc, herring::intra_node::shared_memory,
                                herring::placement::dedicated, herring::update::average, tracing>;
#endif

extern "C" {
#ifndef HOT_CONTROL
void hot_served_ready(served& reduce, std::size_t i) { reduce.ready(i); }
void hot_served_wait(served& reduce) { reduce.wait(); }
void hot_served_all_reduce(served& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }
void hot_served_collectives(served& reduce, std::span<float> const* all, std::span<float> const* mine) {
    run_collectives(reduce, *all, *mine);
}

void hot_chosen_all_reduce(chosen& reduce, std::span<float> const* inout, rules::rule by) {
    reduce.all_reduce(*inout, by);
}
void hot_chosen_reduce_scatter(chosen& reduce, std::span<float> const* all, std::span<float> const* mine,
                               rules::rule by) {
    herring::reduce_scatter(reduce, *all, *mine, by);
}

void hot_trainer_ready(trainer& train, std::size_t i) { train.ready(i); }
void hot_trainer_wait(trainer& train) { train.wait(); }
void hot_in_two_ready(in_two& train, std::size_t i) { train.ready(i); }
void hot_in_two_wait(in_two& train) { train.wait(); }
#endif

void hot_flat_ready(flat& reduce, std::size_t i) { reduce.ready(i); }
void hot_flat_ready_callers(flat& reduce, std::size_t i, std::span<float> const* inout) {
    reduce.ready(i, *inout);
}
void hot_flat_poll(flat& reduce) { reduce.poll(); }
void hot_flat_wait(flat& reduce) { reduce.wait(); }
void hot_flat_all_reduce(flat& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }
void hot_flat_collectives(flat& reduce, std::span<float> const* all, std::span<float> const* mine) {
    run_collectives(reduce, *all, *mine);
}

#ifndef HOT_CONTROL
void hot_local_ready(local& reduce, std::size_t i) { reduce.ready(i); }
void hot_local_ready_callers(local& reduce, std::size_t i, std::span<float> const* inout) {
    reduce.ready(i, *inout);
}
void hot_local_poll(local& reduce) { reduce.poll(); }
void hot_local_wait(local& reduce) { reduce.wait(); }
void hot_local_all_reduce(local& reduce, std::span<float> const* inout) { reduce.all_reduce(*inout); }
void hot_local_collectives(local& reduce, std::span<float> const* all, std::span<float> const* mine) {
    run_collectives(reduce, *all, *mine);
}
bool hot_local_moments(committee& reduce, std::span<float> const* all, std::span<float> const* mean,
                       std::span<float> const* deviation) {
    return run_moments(reduce, *all, *mean, *deviation);
}
#endif
}

int main() {
    herring::launch_threads(2, [](herring::world& world) {
        calls_of_reducer<flat>{.ready = hot_flat_ready,
                               .ready_callers = hot_flat_ready_callers,
                               .poll = hot_flat_poll,
                               .wait = hot_flat_wait,
                               .all_reduce = hot_flat_all_reduce,
                               .collectives = hot_flat_collectives}
            .run(world);
#ifndef HOT_CONTROL
        calls_of_reducer<local>{.ready = hot_local_ready,
                                .ready_callers = hot_local_ready_callers,
                                .poll = hot_local_poll,
                                .wait = hot_local_wait,
                                .all_reduce = hot_local_all_reduce,
                                .collectives = hot_local_collectives}
            .run(world);
        trainer train(world, herring::layout{{"a", 1000}});
        train.start(0, [](std::size_t, std::span<float> weights) {
            for (float& weight : weights) weight = 1;
        });
        hot_trainer_ready(train, 0);
        hot_trainer_wait(train);
        chosen reduce(world);
        std::vector<float> all(1000, 1.0f), mine(reduce.owned(1000).elements);
        std::span<float> const of_all(all), of_mine(mine);
        hot_chosen_all_reduce(reduce, &of_all, herring::update::max());
        hot_chosen_reduce_scatter(reduce, &of_all, &of_mine, herring::update::min());
        calls_of_committee<committee>{.moments = hot_local_moments}.run(world);
#endif
    });
#ifndef HOT_CONTROL
    herring::launch_options with_server;
    with_server.roles = {herring::role::worker, herring::role::worker, herring::role::server};
    auto const serves = [](herring::world& world) {
        herring::layout const tensors{{"a", 1000}};
        if (world.role() == herring::role::server) return herring::serve<served>(world, tensors);
        served reduce(world, tensors);
        hot_served_ready(reduce, 0);
        hot_served_wait(reduce);
        std::vector<float> all(1000, 1.0f), mine(reduce.owned(1000).elements);
        std::span<float> const of_all(all), of_mine(mine);
        hot_served_all_reduce(reduce, &of_all);
        hot_served_collectives(reduce, &of_all, &of_mine);
    };
    herring::launch_threads(3, serves, with_server);
#endif
}

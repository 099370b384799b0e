// herring: the end of a must-fail case whose reducer `gradients` is used in every way that a reducer can be.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_MUST_FAIL_TRAIN_HPP
#define HERRING_TESTS_MUST_FAIL_TRAIN_HPP

#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <chrono>
#include <cstdio>
#include <span>
#include <vector>

// As in the README.
void average(herring::world& world) {
    gradients reduce(world, {{"bias", 3}, {"weight", 1000}});
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        for (element& x : reduce.tensor(i)) x = static_cast<element>(world.rank());
        reduce.ready(i);
    }
    reduce.wait();
    double const result = reduce.tensor(1)[999];
    std::printf("rank %d of %d: %.1f\n", world.rank(), world.size(), result);
}

void one_line(herring::world& w) {
    gradients r(w, {{"a", 3}});
    r.ready(0);
    r.wait();
}

// The rest of what there is.
void train(herring::world& world, herring::layout const& layout) {
    gradients reduce{world, layout};
    std::vector<element> mine(10);
    reduce.ready(0, mine);
    reduce.poll();
    if (herring::status const ended = reduce.wait(herring::clock::now() + std::chrono::seconds(1)); !ended)
        ended.value();
    reduce.all_reduce(mine);
    reduce.all_reduce(std::span(mine).first(3), herring::clock::now() + std::chrono::seconds(1)).value();
    if (!reduce.wait(std::chrono::seconds(1))) return;
    if (!reduce.all_reduce(mine, std::chrono::milliseconds(1000)).ok()) return;
    std::printf("%zu buckets, %zu bytes\n", reduce.plan().buckets.size(),
                static_cast<std::size_t>(reduce.counters().bytes_sent));
    if (!reduce.all_reduce(mine, reduce.tensor(0), std::chrono::milliseconds(1000)).ok() || !reduce.done())
        return;
    mine[0] = reduce.all_reduce(mine[1]);
    reduce.trace()(herring::trace_event::wait_begin, 0);
    (void)reduce.transport();
}

void alone(herring::world& world) {
    gradients sums(world);
    gradients& other = sums;
    element x[] = {static_cast<element>(world.rank())};
    other.all_reduce(x);
}

#endif // HERRING_TESTS_MUST_FAIL_TRAIN_HPP

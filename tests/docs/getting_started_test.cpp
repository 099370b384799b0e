// herring: the code of docs/getting-started.md, at work.
// SPDX-License-Identifier: Apache-2.0
//
// What stands between [snippet] and [end] is shown there; tests/docs/check_snippets.sh compares.
#include "doctest/doctest.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <stdexcept>

// [snippet fit]
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/transport/tcp.hpp>

#include <cstdio>

using gradients = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory>;

/// Fits y = slope * x + offset to y = 3x + 1. Every rank has points of its own.
template <class Reducer> float fit(herring::world& world) {
    Reducer reduce(world, {{"slope", 1}, {"offset", 1}});
    float slope = 0, offset = 0;
    for (int step = 0; step < 200; ++step) {
        float of_slope = 0, of_offset = 0;
        for (int point = 0; point < 4; ++point) {
            float const x = static_cast<float>(point) - 2 + 0.1f * static_cast<float>(world.rank());
            float const miss = slope * x + offset - (3 * x + 1);
            of_slope += miss * x / 4;
            of_offset += miss / 4;
        }
        reduce.tensor(1)[0] = of_offset;
        reduce.ready(1); // any order
        reduce.tensor(0)[0] = of_slope;
        reduce.ready(0);
        reduce.wait(); // both are the average of all ranks now
        slope -= 0.3f * reduce.tensor(0)[0];
        offset -= 0.3f * reduce.tensor(1)[0];
    }
    return slope + offset;
}

int run() {
    herring::world world = herring::join();
    float const sum = fit<gradients>(world);
    std::printf("rank %d of %d: slope + offset = %.3f\n", world.rank(), world.size(),
                static_cast<double>(sum));
    return 0;
}
// [end]

// [snippet fork]
#include <herring/launch.hpp>

int run_four() {
    return herring::launch(4, [](herring::world& world) {
        std::printf("rank %d: %.3f\n", world.rank(), static_cast<double>(fit<gradients>(world)));
    });
}
// [end]

// [snippet policies]
#include <herring/transport/checked.hpp>

namespace policy {
using namespace herring;
using one_bucket = reducer<float, transport::tcp, intra_node::shared_memory, fusion::whole_model>;
using with_thread = reducer<float, transport::tcp, intra_node::shared_memory, progress::thread>;
using with_checksums = reducer<float, transport::checked<transport::tcp>, intra_node::shared_memory>;
} // namespace policy
// [end]

// [snippet own]
/// The average of gradients, none of which counts for more than 1.
struct bounded_average : herring::update::average {
    static constexpr char const* name = "bounded_average"; // what messages call it
    static constexpr herring::update_facts facts{.lifts = true, .with_finish = true};
    template <class Acc> static Acc lift(Acc x) noexcept { return x < -1 ? Acc(-1) : x > 1 ? Acc(1) : x; }
};
static_assert(herring::checked_policy<bounded_average>); // a slip is one sentence here

using robust =
    herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory, bounded_average>;
// [end]

// [snippet optimizer]
#include <herring/optimizer/adamw.hpp>
#include <herring/training.hpp>

using trainer = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory,
                                 herring::optimizer::adamw>;

/// Moves 1000 weights to 1, with an optimizer whose state is kept once, not on every rank.
float train(herring::world& world) {
    trainer model(world, {{"weight", 1000}});
    model.start(
        0, [](std::size_t, std::span<float> weights) { std::fill(weights.begin(), weights.end(), 0.f); });
    auto values = model.hyper();
    values.rate = 0.05;
    model.set(values);
    for (int step = 0; step < 200; ++step) {
        std::span<float const> const weights = model.weights(0);
        for (std::size_t i = 0; i < weights.size(); ++i) model.tensor(0)[i] = weights[i] - 1; // the gradient
        model.ready(0);
        model.wait(); // weights(0) are the new ones, on every rank
    }
    return model.weights(0)[0];
}
// [end]

// [snippet failure]
/// Rank 2 leaves in the middle of training.
void lose_a_rank(herring::world& world) {
    try {
        gradients reduce(world, {{"weight", 1000}});
        for (int step = 0; step < 3; ++step) {
            if (world.rank() == 2 && step == 1) throw std::runtime_error("out of data");
            reduce.ready(0);
            reduce.wait();
        }
    } catch (herring::error const& why) {
        std::printf("%s\n", why.what());
    }
}
// [end]

float const answer = 4; // 3 + 1

TEST_CASE("getting started: one rank, four ranks, and other policies fit the same line") {
    CHECK(run() == 0);
    CHECK(run_four() == 0);
    int const ends = herring::launch(
        4,
        [&](herring::world& world) {
            auto const is_near = [](float x) { return x > answer - 0.01f && x < answer + 0.01f; };
            if (!is_near(fit<gradients>(world)) || !is_near(fit<policy::one_bucket>(world)) ||
                !is_near(fit<policy::with_thread>(world)) || !is_near(fit<policy::with_checksums>(world)) ||
                !is_near(fit<robust>(world)))
                throw std::runtime_error("another line");
        },
        {.nodes = {"a", "a", "b", "b"}});
    CHECK(ends == 0);
}

TEST_CASE("getting started: an optimizer where gradients are summed") {
    CHECK(herring::launch(4, [](herring::world& world) {
              if (float const weight = train(world); weight < 0.9f || weight > 1.1f)
                  throw std::runtime_error("other weights");
          }) == 0);
}

TEST_CASE("getting started: the ranks that are left name the one that has gone") {
    std::atomic<int> named{0};
    herring::launch_threads(4, [&](herring::world& world) {
        gradients reduce(world, {{"weight", 1000}});
        try {
            for (int step = 0; step < 3; ++step) {
                if (world.rank() == 2 && step == 1) return;
                reduce.ready(0);
                reduce.wait();
            }
        } catch (herring::error const& why) {
            named += why.peer() == 2;
        }
    });
    CHECK(named == 3);
    CHECK(herring::launch(4, lose_a_rank) != 0);
}

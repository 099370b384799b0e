// herring: nothing is allocated between a reducer's construction and its destruction, also not in a blocked wait.
// SPDX-License-Identifier: Apache-2.0
// Own program: it replaces every operator new.
#include "herring/collectives/all_gather.hpp"
#include "herring/collectives/all_moments.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/transport/chaos.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"
#include "every_new.hpp"

#include <atomic>
#include <type_traits>
#include <vector>

namespace {
std::atomic<long> allocations{0};
}

bool every_new::allows(std::size_t) noexcept {
    ++allocations;
    return true;
}

using namespace herring;

namespace {

template <class Reducer>
constexpr bool gives_moments = std::is_same_v<typename Reducer::pack::update, update::moments>;

template <class Reducer> int work(world& ranks) {
    Reducer reduce(ranks, layout{{"a", 100}, {"b", 300'000}, {"c", 5}});
    std::vector<float> buffer(500'000, 1.0f);
    std::vector<float> own(300'000, 1.0f), deviation(gives_moments<Reducer> ? buffer.size() : 0);
    auto const turn = [&] {
        if (ranks.rank() == 0) // late, so that the others block
            for (auto const until = clock::now() + std::chrono::milliseconds(4); clock::now() < until;) {
            }
        reduce.ready(2);
        reduce.ready(1, std::span<float>(own));
        reduce.ready(0);
        reduce.wait();
        reduce.all_reduce(std::span<float>(buffer).first(10));
        reduce.all_reduce(buffer);
        for (std::size_t const n : {std::size_t{10}, buffer.size()}) {
            range const mine = reduce.owned(n, ranks.rank());
            std::span<float> const all = std::span(buffer).first(n),
                                   part = all.subspan(mine.offset, mine.elements);
            reduce_scatter(reduce, all, part);
            all_gather(reduce, part, all);
            broadcast(reduce, all, ranks.size() - 1);
            if constexpr (gives_moments<Reducer>)
                all_moments(reduce, all, all, std::span(deviation).first(n));
        }
    };
    turn();
    long const before = allocations.load();
    for (int i = 0; i < 20; ++i) turn();
    long const more = allocations.load() - before;
    if (more != 0) std::fprintf(stderr, "rank %d: %ld allocations\n", ranks.rank(), more);
    return more == 0 ? 0 : 1;
}

// A wait of a second is looked at for a deadlock, which allocates: on a busy machine some last so long.
launch_options on(std::vector<std::string> names) {
    launch_options options;
    options.nodes = std::move(names);
    options.failure_detector.long_wait = std::chrono::seconds(30);
    return options;
}
template <class Reducer> int of_ranks(int ranks, std::vector<std::string> names = {}) {
    return launch(ranks, work<Reducer>, on(std::move(names)));
}

} // namespace

TEST_CASE("allocations: none over tcp, polling or blocking") {
    CHECK(of_ranks<reducer<float, update::average, transport::tcp>>(2) == 0);
    CHECK(of_ranks<reducer<float, update::moments, transport::tcp, waiting::block>>(3) == 0);
}

TEST_CASE("allocations: none on one node") {
    CHECK(of_ranks<reducer<float, update::moments, transport::tcp, intra_node::shared_memory>>(3) == 0);
}

TEST_CASE("allocations: none over nodes of two, with a progress thread") {
    CHECK(of_ranks<reducer<float, update::moments, transport::tcp, intra_node::shared_memory>>(
              4, {"a", "a", "b", "b"}) == 0);
    CHECK(of_ranks<reducer<float, update::average, transport::tcp, progress::thread, waiting::block>>(2) ==
          0);
}

// A receive that is refused finds its message unexpected, which tcp allocates for; all else that chaos does allocates
// nothing.
TEST_CASE("allocations: none of chaos") {
    using late = transport::chaos<transport::tcp, transport::chaos_tuning{.not_now_per_1000 = 0}>;
    CHECK(of_ranks<reducer<float, update::average, late>>(3) == 0);
}

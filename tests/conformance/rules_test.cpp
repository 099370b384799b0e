// herring: every route gives what the rule says: lifted once, combined in the order of ranks and nodes, finished once.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

using namespace herring;

namespace {

using names = std::vector<std::string>;
using shared = intra_node::shared_memory;

// Small sizes, so that small tensors take every route, in many chunks.
struct small_inproc : transport::inproc {
    using inproc::inproc;
    static constexpr char const* name = "small_inproc";
    static constexpr exchange_tuning tuning{
        .chunk_bytes = 4096, .window_bytes = 12288, .one_hop_bytes = 2048, .pair_bytes = 9000};
};

// ---- rules ------------------------------------------------------------------------------------------------------------

struct mean_of_squares : update::average {
    static constexpr char const* name = "mean_of_squares";
    template <class Acc> static constexpr Acc lift(Acc x) noexcept { return x * x; }
};
struct most_distant : update::max { // by scalars
    static constexpr char const* name = "most_distant";
    static constexpr bool takes_vectors = false;
    template <class Acc> static constexpr Acc lift(Acc x) noexcept { return x > 9 ? x - 9 : 9 - x; }
};
// Adds 1000 for every time that it is called: who lifts a part of several ranks again, or not at all, is found.
struct counted : update::sum {
    static constexpr char const* name = "counted";
    template <class Acc> static constexpr Acc lift(Acc x) noexcept { return x + update::lane<Acc>(1000); }
};

// ---- values, and the result that is due -------------------------------------------------------------------------------

template <class T> T value(int rank, std::size_t i, int step) {
    return static_cast<T>(static_cast<float>((i * 7 + static_cast<std::size_t>(rank * 3 + step)) % 13));
}

template <class T> bool same(T const& a, T const& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

template <class T, class Update> accumulator<T> lifted(T const& x) {
    if constexpr (update_lifts<Update, accumulator<T>>)
        return Update::lift(static_cast<accumulator<T>>(x));
    else
        return static_cast<accumulator<T>>(x);
}

/// By scalars, in one place: the ranks of a node in their order, then the nodes.
template <class T, class Update> T due(topology const& map, std::size_t i, int step) {
    auto const of_node = [&](int node) {
        auto total = lifted<T, Update>(value<T>(map.rank_of(node, 0), i, step));
        for (int l = 1; l < map.local_size(node); ++l)
            total = Update::combine(total, lifted<T, Update>(value<T>(map.rank_of(node, l), i, step)));
        return total;
    };
    auto total = of_node(0);
    for (int node = 1; node < map.nodes(); ++node) total = Update::combine(total, of_node(node));
    return static_cast<T>(Update::finish(total, map.size()));
}

// ---- all calls over all routes ----------------------------------------------------------------------------------------

template <class T, class Update, class... Policies> void work(world& ranks) {
    using reducing = reducer<T, Update, small_inproc, Policies...>;
    bool const joins = (std::is_same_v<Policies, shared> || ...);
    topology const map = joins ? ranks.map() : ranks.map().flat();
    auto const check = [&](std::span<T const> got, int step, char const* what) {
        for (std::size_t i = 0; i < got.size(); ++i)
            if (!same(got[i], due<T, Update>(map, i, step)))
                throw std::runtime_error(std::string(what) + ": element " + std::to_string(i) + " of " +
                                         std::to_string(got.size()) + " is not what is due");
    };
    auto const fill = [&](std::span<T> at, int step) {
        for (std::size_t i = 0; i < at.size(); ++i) at[i] = value<T>(ranks.rank(), i, step);
    };

    std::vector<std::size_t> const sizes{1000, 0, 3, 6001, 17, 200, 2049, 1};
    reducing reduce(ranks, layout::of(sizes));
    std::vector<std::vector<T>> lent(sizes.size());
    for (int step = 0; step < 2; ++step) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            bool const lend = (i + static_cast<std::size_t>(step)) % 3 == 0;
            lent[i].resize(lend ? sizes[i] : 0);
            std::span<T> const at = lend ? std::span<T>(lent[i]) : reduce.tensor(i);
            fill(at, step);
            lend ? reduce.ready(i, at) : reduce.ready(i);
        }
        reduce.wait();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            bool const lend = (i + static_cast<std::size_t>(step)) % 3 == 0;
            check(lend ? std::span<T const>(lent[i]) : std::span<T const>(reduce.tensor(i)), step, "a step");
        }
    }
    for (std::size_t const count : {1u, 2u, 7u, 85u, 86u, 171u, 600u, 3000u, 20'001u}) {
        std::vector<T> x(count), y(count);
        fill(x, 3);
        reduce.all_reduce(x, y);
        check(y, 3, "from one buffer into another");
        reduce.all_reduce(x);
        check(x, 3, "in place");
    }
    T const one = reduce.all_reduce(value<T>(ranks.rank(), 0, 5));
    check(std::span(&one, 1), 5, "one value");
    std::vector<T> none;
    reduce.all_reduce(none);
}

template <class T, class Update, class... Policies> void every_route() {
    for (names const& nodes :
         {names{"a"}, names{"a", "b"}, names{"a", "b", "c", "d"}, names{"a", "a"}, names{"a", "a", "a"},
          names{"a", "a", "b"}, names{"a", "b", "b", "c", "c", "c"}, names{"a", "a", "b", "b"}}) {
        launch_options options;
        options.nodes = nodes;
        std::string text;
        for (auto const& node : nodes) text += node;
        CAPTURE(text);
        auto const n = static_cast<int>(nodes.size());
        CHECK_NOTHROW(launch_threads(n, work<T, Update, Policies...>, options));
        CHECK_NOTHROW(launch_threads(n, work<T, Update, shared, Policies...>, options));
    }
}

} // namespace

TEST_CASE("rules: lifted once on every route") {
    every_route<double, counted>();
    every_route<bfloat16, mean_of_squares>();
    every_route<int, most_distant>();
}
TEST_CASE("rules: product and the logical ones") {
    every_route<unsigned, update::product>();
    every_route<long long, update::logical_and>();
    every_route<unsigned long, update::logical_or>();
}

TEST_CASE("rules: the quadratic mean of four ranks") {
    // 1, 4, 5 and 6.63: (1 + 16 + 25 + 44) / 4 is 21.5, whose root is 4.64.
    launch_options options;
    for (names const& nodes : {names{"a", "a", "a", "a"}, names{"a", "a", "b", "b"},
                               names{"a", "b", "c", "d"}, names{"a", "b", "b", "b"}}) {
        options.nodes = nodes;
        CHECK_NOTHROW(launch_threads(
            4,
            [](world& ranks) {
                reducer<double, small_inproc, shared, mean_of_squares> reduce(ranks);
                double const mine[] = {1, 4, 5, 6.6332495807108};
                double const mean = reduce.all_reduce(mine[ranks.rank()]);
                if (mean < 21.499 || mean > 21.501) throw std::runtime_error(std::to_string(mean));
            },
            options));
    }
}

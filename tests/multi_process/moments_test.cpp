// herring: all_moments between processes: TCP and shared memory, against long double, the same bits on every rank.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_moments.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace moments_between_processes {

using namespace herring;
using names = std::vector<std::string>;
using shared = intra_node::shared_memory;

// Small sizes, so that small buffers take every route, in many chunks.
using small_tcp = transport::basic_tcp<transport::tcp_tuning{.chunk_bytes = 4096,
                                                             .window_bytes = 12288,
                                                             .loopback_chunk_bytes = 4096,
                                                             .loopback_window_bytes = 12288,
                                                             .one_hop_bytes = 2048,
                                                             .one_hop_bytes_two_nodes = 9000}>;

template <class T> T given(int rank, std::size_t i, int turn) {
    std::uint64_t x =
        (i + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank * 64 + turn) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
    return static_cast<T>(static_cast<float>(x >> 40) * 0x1p-24f + 2.0f); // from 2 to 3
}

/// Off by: of sums in T's accumulator, and of rounding to T once.
template <class T>
constexpr double step = std::is_same_v<T, double>  ? 1e-14
                        : std::is_same_v<T, float> ? 4e-6
                                                   : 0.02;

template <class Reducer> int works(world& ranks) {
    using T = typename Reducer::element_type;
    using number = accumulator<T>;
    Reducer reduce(ranks, layout{{"small", 7}, {"large", 20'000}});
    int const size = ranks.size(), divisor = Reducer::pack::update::divisor_of_squares(size);
    int turn = 0;
    for (std::size_t const n : {1u, 3u, 100u, 513u, 1025u, 2500u, 20'001u, 70'003u, 100u}) {
        ++turn;
        std::vector<T> mine(n), mean(n), deviation(n);
        for (std::size_t i = 0; i < n; ++i) mine[i] = given<T>(ranks.rank(), i, turn);
        moments_result<number> const told = all_moments(reduce, mine, mean, deviation);
        double largest = 0;
        for (std::size_t i = 0; i < n; ++i) {
            long double sum = 0, squares = 0;
            for (int r = 0; r < size; ++r) sum += static_cast<number>(given<T>(r, i, turn));
            for (int r = 0; r < size; ++r) {
                long double const off = static_cast<number>(given<T>(r, i, turn)) - sum / size;
                squares += off * off;
            }
            auto const due = static_cast<double>(std::sqrt(squares / divisor));
            if (std::fabs(static_cast<double>(static_cast<number>(mean[i])) -
                          static_cast<double>(sum / size)) > step<T>)
                return 2;
            if (std::fabs(static_cast<double>(static_cast<number>(deviation[i])) - due) > step<T>) return 3;
            largest = std::max(largest, static_cast<double>(static_cast<number>(deviation[i])));
        }
        if (static_cast<double>(told.largest_deviation) != largest ||
            static_cast<number>(deviation[told.index]) != told.largest_deviation)
            return 4;
        // Rank 0's, on every rank.
        std::vector<T> first_mean = mean, first_deviation = deviation;
        broadcast(reduce, first_mean, 0);
        broadcast(reduce, first_deviation, 0);
        if (std::memcmp(first_mean.data(), mean.data(), n * sizeof(T)) != 0 ||
            std::memcmp(first_deviation.data(), deviation.data(), n * sizeof(T)) != 0)
            return 5;
        // A step between calls: its tensors get means.
        for (std::size_t t = 0; t < reduce.size(); ++t) {
            for (std::size_t i = 0; i < reduce.tensor(t).size(); ++i)
                reduce.tensor(t)[i] = given<T>(ranks.rank(), i, turn);
            reduce.ready(t);
        }
        reduce.wait();
        std::size_t const both = std::min(n, reduce.tensor(1).size());
        if (std::memcmp(reduce.tensor(1).data(), mean.data(), both * sizeof(T)) != 0) return 6;
    }
    return 0;
}

template <class T, class Update, class... Policies> void every_shape() {
    for (names const& nodes : {names{"a"}, names{"a", "a"}, names{"a", "b"}, names{"a", "a", "a"},
                               names{"a", "a", "b"}, names{"a", "b", "c"}, names{"a", "b", "a", "b"},
                               names{"a", "b", "b", "b"}, names{"a", "b", "c", "d"}}) {
        if (nodes.size() == 1 && Update::divisor_of_squares(1) == 0) continue;
        launch_options options;
        options.nodes = nodes;
        options.timeout = std::chrono::seconds(120);
        std::string text;
        for (auto const& node : nodes) text += node;
        INFO("nodes: ", text);
        CHECK(launch(static_cast<int>(nodes.size()), works<reducer<T, Update, Policies...>>, options) == 0);
    }
}

} // namespace moments_between_processes

using namespace moments_between_processes;

TEST_CASE("moments between processes: one to four ranks, TCP, each a node or with shared memory") {
    every_shape<float, update::moments, small_tcp>();
    every_shape<float, update::moments, small_tcp, shared>();
    every_shape<bfloat16, update::sample_moments, small_tcp, shared, progress::thread>();
}
TEST_CASE("moments between processes: doubles, as TCP and shared memory are tuned") {
    every_shape<double, update::sample_moments, transport::tcp, shared>();
}

TEST_CASE("moments between threads: one to four ranks, inproc") {
    for (names const& nodes :
         {names{"a"}, names{"a", "b"}, names{"a", "a", "b"}, names{"a", "b", "c", "d"}}) {
        launch_options options;
        options.nodes = nodes;
        auto const n = static_cast<int>(nodes.size());
        CHECK(launch_threads(n, works<reducer<float, update::moments, transport::inproc, shared>>, options) ==
              0);
        CHECK(launch_threads(n, works<reducer<float16, update::moments, transport::inproc>>, options) == 0);
    }
}

TEST_CASE("moments between processes: a rank that is in another call is told, and so are the others") {
    for (names const& nodes : {names{"a", "b"}, names{"a", "a"}, names{"a", "b", "b"}}) {
        launch_options options;
        options.nodes = nodes;
        for (std::size_t const n : {10u, 100'000u})
            for (bool const other_size : {false, true})
                CHECK(launch(
                          static_cast<int>(nodes.size()),
                          [&](world& ranks) {
                              reducer<float, update::moments, small_tcp, shared> reduce(ranks);
                              bool const odd = ranks.rank() + 1 == ranks.size();
                              std::vector<float> in(n + (odd && other_size ? 1 : 0)), mean(in.size()),
                                  deviation(in.size());
                              moments_result<float> told;
                              status const ended = odd && !other_size
                                                       ? reduce.all_reduce(in, std::chrono::seconds(20))
                                                       : all_moments(reduce, in, mean, deviation, told,
                                                                     std::chrono::seconds(20));
                              return ended.why().what == errc::mismatch ? 0 : 1;
                          },
                          options) == 0);
    }
}

// herring: tests of reducer.hpp with elements of another library: one session with Herring's own, and the same bits from every call.
// SPDX-License-Identifier: Apache-2.0
#include "herring/reducer.hpp"

#include "brain_float.hpp"
#include "doctest/doctest.h"

#include "herring/checkpoint.hpp"
#include "herring/collectives/all_gather.hpp"
#include "herring/collectives/all_moments.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/sync/selective.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/rules.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <stdlib.h>

namespace same_bits_test {

using namespace herring;
using other_library::brain_float;
using shared = intra_node::shared_memory;
template <class T, class... Policies> using on_nodes = reducer<T, transport::inproc, shared, Policies...>;

// One engine, whichever type a program names.
template <class Reducer> using session_of = detail::session<typename Reducer::pack>;
using of_theirs = on_nodes<brain_float, update::sum>;
using of_ours = on_nodes<bfloat16, update::sum>;
static_assert(std::is_same_v<session_of<of_theirs>, session_of<of_ours>> &&
              !std::is_same_v<of_theirs, of_ours>);
static_assert(std::is_same_v<of_theirs::element_type, brain_float> &&
              std::is_same_v<of_theirs::tensor_span, std::span<brain_float>>);
static_assert(!element_type<brain_float>); // no kernel is instantiated with it
#if defined __FLT16_MANT_DIG__
static_assert(
    std::is_same_v<session_of<on_nodes<_Float16, update::max>>, session_of<on_nodes<float16, update::max>>>);
#endif

// Numbers of which sums are rounded, with both infinities and a NaN.
template <class T> std::vector<T> numbers(int rank, std::size_t count) {
    std::vector<T> made;
    for (std::size_t i = 0; i < count; ++i)
        made.push_back(
            T(static_cast<float>((i * 2654435761u + static_cast<unsigned>(rank) * 40503u) % 9973u) / 64.0f));
    if (count > 9) {
        made[5] = T(rank == 0 ? __builtin_inff() : 1.0f);
        made[7] = T(rank == 1 ? __builtin_nanf("") : 1.0f);
        made[9] = T(rank == 1 ? -__builtin_inff() : 1.0f);
    }
    return made;
}
template <class T> void keep(std::string& all, std::span<T const> some) {
    all.append(reinterpret_cast<char const*>(some.data()), some.size_bytes());
}

/// The bytes of the results of all calls of a reducer.
template <class T> std::string calls(world& ranks) {
    std::string all;
    on_nodes<T, update::average> reduce(ranks, layout{{"a", 1000}, {"b", 17}, {"c", 300}});
    std::vector<T> lent = numbers<T>(ranks.rank(), 300);
    for (std::size_t i = 0; i < 2; ++i) {
        std::vector<T> const from = numbers<T>(ranks.rank(), reduce.tensor(i).size());
        std::span<T> const to = reduce.tensor(i);
        for (std::size_t k = 0; k < to.size(); ++k) to[k] = from[k];
        reduce.ready(i);
    }
    reduce.ready(2, lent);
    reduce.wait();
    for (std::size_t i = 0; i < 2; ++i) keep<T>(all, reduce.tensor(i));
    keep<T>(all, lent);

    std::vector<T> out(777), in = numbers<T>(ranks.rank(), 777);
    reduce.all_reduce(in, out);
    keep<T>(all, out);
    T one = reduce.all_reduce(T(static_cast<float>(ranks.rank()) + 0.25f));
    REQUIRE(reduce.all_reduce(one, std::chrono::seconds(30)).ok());
    keep<T>(all, std::span(&one, 1));
    std::vector<T> mine(reduce.owned(in.size()).elements);
    reduce_scatter(reduce, in, mine);
    all_gather(reduce, mine, out);
    keep<T>(all, out);
    broadcast(reduce, in, 1);
    keep<T>(all, in);
    return all;
}
template <class T> std::string deviations(world& ranks) {
    std::string all;
    on_nodes<T, update::moments> moments(ranks);
    std::vector<T> mean(500), deviation(500);
    auto const largest = all_moments(moments, numbers<T>(ranks.rank(), 500), mean, deviation);
    static_assert(std::is_same_v<decltype(largest.largest_deviation), float>);
    all += std::to_string(largest.index);
    keep<T>(all, mean);
    keep<T>(all, deviation);
    return all;
}

/// The bytes of the weights after some steps. A checkpoint is written to the folder, or read from it.
template <class T> std::string trained(world& ranks, std::string const& folder, bool writes) {
    std::string all;
    on_nodes<T, optimizer::adamw> train(ranks, layout{{"a", 900}});
    auto const fill = [](std::size_t, std::span<T> weights) {
        for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = T(static_cast<float>(k) / 128.0f);
    };
    writes ? train.start(0, fill) : void(train.load(folder));
    for (int step = 0; step < 3; ++step) {
        for (std::size_t k = 0; T & gradient : train.tensor(0))
            gradient = T(static_cast<float>(k++ % 7) - static_cast<float>(ranks.rank()));
        train.ready(0);
        train.wait();
        if (writes && step == 0) train.save(folder);
        keep<T>(all, train.weights(0));
        if (!writes && step == 1) break;
    }
    if (writes) all.erase(0, 900 * sizeof(T)); // what the reader does not see
    static_assert(std::is_same_v<decltype(train.state()), std::vector<state_range<float>>>);
    for (state_range<float> const& one : train.state()) all += std::to_string(one.span[0]);

    on_nodes<T, sync::selective<>> lazy(ranks, layout{{"a", 900}});
    lazy.start(0, fill);
    for (int step = 0; step < 4; ++step) {
        std::vector<T> const outside = numbers<T>(ranks.rank(), 900);
        for (std::size_t k = 0; T & gradient : lazy.tensor(0)) gradient = outside[k++];
        step % 2 == 0 ? lazy.ready(0) : lazy.ready(0, outside);
        lazy.wait();
        for (T& weight : lazy.weights(0)) weight = T(static_cast<float>(weight) * 0.75f);
        lazy.updated(0);
        lazy.settle();
        keep<T>(all, lazy.weights(0));
    }
    return all;
}

struct scratch {
    scratch() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
    ~scratch() { (void)!std::system(("rm -rf " + path).c_str()); }
    std::string path = "/tmp/herring_same_bits_XXXXXX";
};

launch_options three_ranks() {
    launch_options options;
    options.nodes = {"a", "a", "b"};
    return options;
}

TEST_CASE("same bits: every call gives what it gives of Herring's own type") {
    CHECK(launch_threads(
              3,
              [](world& ranks) {
                  return calls<brain_float>(ranks) == calls<bfloat16>(ranks) &&
                                 deviations<brain_float>(ranks) == deviations<bfloat16>(ranks)
                             ? 0
                             : 1;
              },
              three_ranks()) == 0);
#if defined __FLT16_MANT_DIG__
    CHECK(launch_threads(
              3, [](world& ranks) { return calls<_Float16>(ranks) == calls<float16>(ranks) ? 0 : 1; },
              three_ranks()) == 0);
#endif
}

TEST_CASE("same bits: ranks that name either type agree, and have the same results") {
    CHECK(launch_threads(
              3,
              [](world& ranks) {
                  std::string const mine =
                      ranks.rank() == 1 ? calls<brain_float>(ranks) : calls<bfloat16>(ranks);
                  return mine == calls<bfloat16>(ranks) ? 0 : 1;
              },
              three_ranks()) == 0);
}

TEST_CASE("same bits: weights, and checkpoints that reducers of either type read") {
    scratch const folder;
    CHECK(launch_threads(
              3,
              [&](world& ranks) {
                  std::string const written = trained<brain_float>(ranks, folder.path, true);
                  return trained<bfloat16>(ranks, folder.path, false) == written ? 0 : 1;
              },
              three_ranks()) == 0);
}

} // namespace same_bits_test

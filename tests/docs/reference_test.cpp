// herring: the code of docs/launching.md, docs/reference.md and docs/concepts.md, at work.
// SPDX-License-Identifier: Apache-2.0
//
// What stands between [snippet] and [end] is shown there; tests/docs/check_snippets.sh compares.
#include "checkpoint_files.hpp"
#include "doctest/doctest.h"

#include <herring/checkpoint.hpp>
#include <herring/collectives/all_gather.hpp>
#include <herring/collectives/broadcast.hpp>
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/lazy_reducer.hpp>
#include <herring/optimizer/adamw.hpp>
#include <herring/training.hpp>
#include <herring/transport/tcp.hpp>
#include <herring/update/any.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

// A gradient that any order of additions sums exactly, also in 16 bits.
float slope(int rank, std::size_t tensor, std::size_t i) {
    return static_cast<float>(rank + static_cast<int>((tensor + i) % 5));
}

// [snippet overlap]
using namespace herring::literals; // _KiB, _MiB, _GiB
using gradients =
    herring::reducer<herring::bfloat16,                         // 16-bit tensors, summed in float
                     herring::transport::tcp,                   // between nodes
                     herring::intra_node::shared_memory,        // within one
                     herring::fusion::balanced_buffer<64_KiB>>; // a bucket leaves when it holds 64 KiB

/// Two steps. Returns how many elements are not the average.
int train(herring::world& world, std::string const& layers) {
    gradients reduce(world, herring::layout::from_csv(layers));
    int wrong = 0;
    for (int step = 0; step < 2; ++step) {
        for (std::size_t i = 0; i < reduce.size(); ++i) { // as backward finishes them
            std::span<herring::bfloat16> const gradient = reduce.tensor(i);
            for (std::size_t k = 0; k < gradient.size(); ++k) {
                gradient[k] = herring::bfloat16(slope(world.rank(), i, k)); // from float: rounded to nearest
                if (k % 4096 == 0) reduce.poll(); // moves what has left, while this is computed
            }
            reduce.ready(i);
        }
        reduce.wait();
        for (std::size_t i = 0; i < reduce.size(); ++i)
            for (std::size_t k = 0; k < reduce.tensor(i).size(); ++k) {
                float const average = float(reduce.tensor(i)[k]); // to float: exact
                wrong += average != slope(0, i, k) + 1.5f;        // (0 + 1 + 2 + 3) / 4
            }
    }
    return wrong;
}
// [end]

// [snippet two]
/// Gradients are averaged, and how many samples each class had is added up: two reducers on one world.
int two(herring::world& world) {
    using herring::transport::tcp;
    herring::reducer<float, tcp> averages(world, {{"weight", 1000}});
    herring::reducer<std::int64_t, tcp, herring::update::sum> counts(world, {{"samples", 10}});
    int wrong = 0;
    for (int step = 0; step < 5; ++step) {
        for (std::int64_t& n : counts.tensor(0)) n = world.rank() + step;
        counts.ready(0); // both are under way
        for (float& x : averages.tensor(0)) x = static_cast<float>(world.rank());
        averages.ready(0);
        averages.wait(); // first this, then that, on every rank
        counts.wait();
        int const n = world.size();
        for (float const x : averages.tensor(0)) wrong += x != static_cast<float>(n - 1) / 2;
        for (std::int64_t const c : counts.tensor(0)) wrong += c != n * (n - 1) / 2 + n * step;
    }
    return wrong;
}
// [end]

// [snippet threads]
/// The same work, each reducer on a thread of its own: both are constructed before, in one order on every rank.
int two_threads(herring::world& world) {
    using herring::transport::tcp;
    herring::reducer<float, tcp, herring::update::average> averages(world);
    herring::reducer<std::int64_t, tcp, herring::update::sum> counts(world);
    int const n = world.size();
    int wrong_counts = 0;
    std::thread counting([&] {
        for (int call = 0; call < 50; ++call) {
            std::vector<std::int64_t> c(100, world.rank() + call);
            counts.all_reduce(c);
            for (std::int64_t const x : c) wrong_counts += x != n * (n - 1) / 2 + n * call;
        }
    });
    int wrong = 0;
    for (int call = 0; call < 50; ++call) {
        std::vector<float> g(5000, static_cast<float>(world.rank()));
        averages.all_reduce(g);
        for (float const x : g) wrong += x != static_cast<float>(n - 1) / 2;
    }
    counting.join();
    return wrong + wrong_counts;
}
// [end]

// [snippet split]
/// A grid with rows of two: this rank's gradients are averaged over its row, its loss is added up over its column.
int rows_and_columns(herring::world& world) {
    using herring::transport::tcp;
    int const row = world.rank() / 2, column = world.rank() % 2;
    herring::world rows = world.split(row, world.rank());       // colour, key: the order in the group
    herring::world columns = world.split(column, world.rank()); // every rank calls both, in this order
    herring::reducer<float, tcp> averages(rows, {{"weight", 1000}});
    herring::reducer<double, tcp, herring::update::sum> losses(columns, {{"loss", 1}});
    for (float& x : averages.tensor(0)) x = static_cast<float>(world.rank());
    averages.ready(0);
    losses.tensor(0)[0] = world.rank();
    losses.ready(0); // both are under way
    averages.wait();
    losses.wait();
    int wrong = 0;
    for (float const x : averages.tensor(0)) wrong += x != static_cast<float>(2 * row) + 0.5f;
    int const n = columns.size(); // ranks column, column + 2, ...
    return wrong + (losses.tensor(0)[0] != n * column + n * (n - 1));
}
// [end]

herring::launch_options on(std::vector<std::string> nodes) {
    herring::launch_options options;
    options.nodes = std::move(nodes);
    options.timeout = std::chrono::seconds(120);
    return options;
}

// [snippet rules]
/// The sum and the least of all ranks' first values, and a bound of each element, by one reducer.
int bounds(herring::world& world, std::vector<double>& field, bool upper) {
    namespace update = herring::update;
    using rules = update::any<update::sum, update::min, update::max>;
    herring::reducer<double, herring::transport::tcp, herring::intra_node::shared_memory, rules> reduce(
        world);
    double const total = reduce.all_reduce(field[0], update::sum{});
    double const least = reduce.all_reduce(field[0], update::min{});
    rules::rule const by = upper ? rules::rule(update::max{}) : update::min{}; // chosen at run time
    reduce.all_reduce(field, by);
    return total == world.size() * (world.size() - 1) / 2 && least == 0 && field[0] == world.size() - 1 ? 0
                                                                                                        : 1;
}
// [end]

// [snippet bytes]
/// Rank 0's text, on every rank.
std::string text_of_rank_0(herring::world& world, std::string const& text) {
    std::span<char const> const mine(text.data(), world.rank() == 0 ? text.size() : 0);
    herring::gather_result const all = world.all_gather(std::as_bytes(mine)); // rank → its bytes
    return {reinterpret_cast<char const*>(all[0].data()), all[0].size()};
}
// [end]

using sums = herring::reducer<float, herring::transport::tcp, herring::update::sum>;

// [snippet types]
struct particle {
    double position[3];
    std::int32_t id;
};

/// What all ranks own of `all`, on every rank, and the name that rank 0 has for it.
void share(sums& reduce, std::vector<particle>& all, std::string& name) {
    herring::range const own = reduce.owned(all.size());
    herring::all_gather(reduce, std::span(all).subspan(own.offset, own.elements), all);
    herring::broadcast(reduce, name, 0); // as long on every rank
}
// [end]

// [snippet errors]
/// The main function of a rank.
int average() {
    try {
        herring::world world = herring::join();
        herring::reducer<float, herring::transport::tcp> reduce(world, {{"weight", 1000}, {"bias", 10}});
        for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
        reduce.wait(); // throws; wait(deadline) returns a [[nodiscard]] herring::status
        return 0;
    } catch (herring::error const& why) { // why.code(): what happened; why.peer(): the rank that it is about
        std::fprintf(stderr, "%s\n", why.what());
        return 1;
    }
}
// [end]
} // namespace

namespace {

float gradient_of(std::size_t i, int epoch) { return static_cast<float>(i % 7) - static_cast<float>(epoch); }

// [snippet checkpoint]
using trainer = herring::reducer<float, herring::transport::tcp, herring::optimizer::adamw>;

/// Trains from the checkpoint in a folder, or from the start, up to an epoch; returns the first weight.
float train_until(herring::world& world, std::string const& folder, bool resume, int last) {
    trainer train(world, {{"fc.weight", 10'000}, {"fc.bias", 10}});
    int epoch = 0;
    if (resume)
        std::memcpy(&epoch, train.load(folder).data(), sizeof epoch); // in place of start
    else
        train.start(0, [](std::size_t, std::span<float> weights) { std::ranges::fill(weights, 0.5f); });
    while (epoch < last) {
        for (std::size_t i = 0; i < train.size(); ++i) {
            for (float& x : train.tensor(i)) x = gradient_of(i, epoch);
            train.ready(i);
        }
        train.wait();
        ++epoch;
        train.save(folder, std::as_bytes(std::span(&epoch, 1))); // weights, state and these bytes of rank 0
    }
    return train.weights(0)[0];
}
// [end]

template <class Reducer> void take_a_step(Reducer& reduce) {
    for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
    reduce.wait();
    for (std::size_t i = 0; i < reduce.size(); ++i) reduce.updated(i);
    reduce.settle();
}

// [snippet checkpoint_of_replicas]
using averaged = herring::reducer<float, herring::transport::tcp, herring::sync::every<8>>;

/// Saves behind step 0, with the place in the data; goes on in another reducer from there. Returns its first weight.
float saved_and_loaded(herring::world& world, std::string const& folder) {
    herring::layout const tensors{{"fc.weight", 1000}, {"fc.bias", 10}};
    int place = 7;
    {
        averaged reduce(world, tensors);
        reduce.start(0, [](std::size_t, std::span<float> weights) { std::ranges::fill(weights, 0.5f); });
        take_a_step(reduce);
        reduce.save(folder, std::as_bytes(std::span(&place, 1)));
    }
    averaged reduce(world, tensors);
    std::memcpy(&place, reduce.load(folder).data(), sizeof place); // in place of start
    return reduce.weights(0)[0];                                   // this rank's
}
// [end]

} // namespace

TEST_CASE("reference: a checkpoint of a reducer whose steps skip exchanges") {
    herring::tests::scratch_folder const folder;
    auto const same = [&](herring::world& world) {
        return saved_and_loaded(world, folder.path()) == 0.5f ? 0 : 1;
    };
    CHECK(herring::launch(2, same, on({"a", "b"})) == 0);
}

TEST_CASE(
    "reference: a training that goes on from its checkpoint, on other nodes, as if it had not stopped") {
    herring::tests::scratch_folder const folder, other;
    herring::world alone;
    float const due = train_until(alone, other.path(), false, 5);
    auto const until = [&](int last, bool resume) {
        return [&, last, resume](herring::world& world) {
            float const found = train_until(world, folder.path(), resume, last);
            return last < 5 || found == due ? 0 : 1;
        };
    };
    CHECK(herring::launch(2, until(3, false), on({"a", "b"})) == 0);
    CHECK(herring::launch(4, until(5, true), on({"a", "a", "b", "c"})) == 0);
}

TEST_CASE("reference: overlap by poll(), a layout from CSV, bfloat16") {
    std::string const here = __FILE__;
    std::string const layers = here.substr(0, here.rfind('/') + 1) + "layers.csv";
    CHECK(herring::launch(
              4, [&](herring::world& world) { return train(world, layers) == 0 ? 0 : 1; },
              on({"a", "a", "b", "b"})) == 0);
}

// [snippet slices]
constexpr std::size_t layers = 12;
struct kind {
    char const* name;
    std::size_t elements; // of one layer
    float* gradients;     // of all layers, the first one first
};

/// What lies at i of `slices` is tensor i: layer by layer, the last one first.
struct slices {
    std::vector<std::span<float>> at;
    std::vector<herring::tensor_spec> tensors;

    explicit slices(std::span<kind const> kinds) {
        for (std::size_t layer = layers; layer-- > 0;)
            for (kind const& k : kinds) {
                at.emplace_back(k.gradients + layer * k.elements, k.elements);
                tensors.push_back({std::string(k.name) + "." + std::to_string(layer), k.elements});
            }
    }
};

using by_layers = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory>;
template <class Backward>
void step(by_layers& reduce, slices const& of, std::size_t kinds, Backward&& backward) {
    for (std::size_t layer = layers; layer-- > 0;) {
        backward(layer);
        for (std::size_t k = 0; k < kinds; ++k) {
            std::size_t const i = (layers - 1 - layer) * kinds + k;
            reduce.ready(i, of.at[i]);
        }
    }
    reduce.wait(); // the averages lie in the arrays
}
// [end]
TEST_CASE("reference: arrays that hold all layers, made ready by layers") {
    CHECK(herring::launch(
              3,
              [](herring::world& world) {
                  std::vector<float> weights(layers * 1000), biases(layers * 10);
                  kind const kinds[] = {{"bias", 10, biases.data()}, {"weight", 1000, weights.data()}};
                  slices const table(kinds);
                  by_layers reduce(world, herring::layout(table.tensors));
                  int wrong = 0;
                  for (int turn = 0; turn < 2; ++turn) {
                      step(reduce, table, std::size(kinds), [&](std::size_t layer) {
                          for (kind const& k : kinds)
                              for (std::size_t i = 0; i < k.elements; ++i)
                                  k.gradients[layer * k.elements + i] = slope(world.rank(), layer, i);
                      });
                      for (kind const& k : kinds)
                          for (std::size_t i = 0; i < layers * k.elements; ++i)
                              wrong += k.gradients[i] != slope(1, i / k.elements, i % k.elements);
                  }
                  return wrong == 0 ? 0 : 1;
              },
              {.nodes = {"a", "a", "b"}}) == 0);
}

TEST_CASE("reference: two reducers on one world, by turns and on two threads") {
    for (auto const& nodes : {std::vector<std::string>{"a", "b"}, {"a", "b", "c"}}) {
        int const ranks = static_cast<int>(nodes.size());
        CHECK(herring::launch(
                  ranks, [](herring::world& world) { return two(world) == 0 ? 0 : 1; }, on(nodes)) == 0);
        CHECK(herring::launch(
                  ranks, [](herring::world& world) { return two_threads(world) == 0 ? 0 : 1; }, on(nodes)) ==
              0);
    }
}

TEST_CASE("reference: rows and columns of a grid") {
    CHECK(herring::launch(
              6, [](herring::world& world) { return rows_and_columns(world) == 0 ? 0 : 1; },
              on({"a", "a", "b", "b", "c", "c"})) == 0);
}

TEST_CASE("reference: rules named by calls") {
    CHECK(herring::launch(
              4,
              [](herring::world& world) {
                  std::vector<double> field(100, world.rank());
                  return bounds(world, field, true);
              },
              on({"a", "a", "b", "b"})) == 0);
}

TEST_CASE("reference: structs and text by a reducer of floats") {
    CHECK(herring::launch(
              3,
              [](herring::world& world) {
                  sums reduce(world);
                  std::vector<particle> all(10);
                  for (particle& one : all) one = {{1, 2, 3}, world.rank()};
                  std::string name = "rank " + std::to_string(world.rank());
                  share(reduce, all, name);
                  return name == "rank 0" && all[0].id == 0 && all[9].id == 2 && all[9].position[2] == 3 ? 0
                                                                                                         : 1;
              },
              on({"a", "a", "b"})) == 0);
}

TEST_CASE("reference: bytes of one rank for all") {
    CHECK(herring::launch(
              3,
              [](herring::world& world) {
                  std::string const text = text_of_rank_0(world, "of rank " + std::to_string(world.rank()));
                  return text == "of rank 0" ? 0 : 1;
              },
              on({"a", "a", "b"})) == 0);
}

TEST_CASE("reference: the two of 16-bit floats, and bytes") {
    // [snippet sixteen]
    herring::bfloat16 const b(1.0f / 3); // explicit, from float: rounded to nearest, ties to even
    float const f = float(b);            // explicit, to float: exact
    CHECK(f == 0.333984375f);
    CHECK(float(herring::float16(1.0f / 3)) == 0.333251953125f);
    CHECK(herring::bfloat16::from_bits(0x3eab) == b);
    CHECK(b.bits == 0x3eab);
    // [end]
    // [snippet layouts]
    herring::layout const named{{"fc.bias", 10}, {"fc.weight", 20480}};
    herring::layout const counted = herring::layout::of(std::vector<std::size_t>{10, 20480}); // "0" and "1"
    herring::layout const text = herring::layout::from_csv_text("name,shape,elements\nfc.bias,10,10\n");
    // [end]
    CHECK(named.elements() == 20490);
    CHECK(counted[1].name == "1");
    CHECK(counted.elements() == named.elements());
    CHECK(text[0].elements == 10);
}

TEST_CASE("reference: a program that handles errors itself") {
    CHECK(average() == 0); // alone
}

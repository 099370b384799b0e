// herring: checkpoints: saved by some ranks, routes and chunks and loaded by others, with the bits of training that never stopped;
// and those that are damaged or belong to something else, which change nothing.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/optimizer_suite.hpp"

#include "checkpoint_files.hpp"
#include "conformance/dissemination_suite.hpp"
#include "doctest/doctest.h"

#include "herring/checkpoint.hpp"
#include "herring/checkpoint/file.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/clipped.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/serve.hpp"
#include "herring/training.hpp"
#include "herring/transport/chaos.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>

using namespace herring::conformance;
namespace optimizer = herring::optimizer;
using herring::errc;
using herring::layout;
using herring::tests::scratch_folder;
using shared = herring::intra_node::shared_memory;

namespace checkpoint_conformance {

template <class Transport, class Optimizer, class... More>
using trainer_of = herring::reducer<float, Transport, Optimizer, herring::update::average, More...>;
using small_chunks = trainer_of<with_dear_messages<herring::transport::inproc>, optimizer::adamw, shared,
                                herring::fusion::per_tensor>;
using large_chunks = trainer_of<herring::transport::inproc, optimizer::adamw>;
using sockets = trainer_of<herring::transport::tcp, optimizer::adamw, shared>;
using stateless = trainer_of<herring::transport::inproc, optimizer::sgd, shared>;

using served =
    trainer_of<herring::transport::inproc, optimizer::adamw, shared, herring::placement::dedicated>;
template <class... More>
using clipped = trainer_of<herring::transport::inproc, optimizer::clipped<optimizer::adamw>, shared, More...>;
using rough = herring::transport::chaos<
    herring::transport::inproc,
    herring::transport::chaos_tuning{
        .not_now_per_1000 = 250, .delay_per_1000 = 500, .hold_back_per_1000 = 400, .longest = 25}>;
using roughly_served = trainer_of<rough, optimizer::adamw, shared, herring::placement::dedicated>;
using partly_served = trainer_of<herring::transport::inproc, optimizer::adamw, herring::placement::optimal>;

/// Nodes by rank; a rank of node "server" is one.
using nodes = std::vector<std::string>;
/// Every route, and numbers of ranks that divide nothing.
nodes const shapes[] = {{"a", "a", "a", "a"}, {"a", "b", "c", "d"}, {"a", "b", "b"},
                        {"a", "b"},           {"a", "a"},           {"a"}};

std::string name_of(nodes const& shape) {
    std::string name;
    for (auto const& node : shape) name += node;
    return name;
}

/// Small whole numbers, whose sums are exact: the mean over any number of ranks, in any order, is that of `base`.
float gradient(int rank, int ranks, std::size_t i, std::size_t at, int step) {
    std::uint64_t mixed =
        (i * 131 + at) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(step) * 0xc2b2ae3d27d4eb4fu;
    mixed ^= mixed >> 29;
    int const base = static_cast<int>(mixed % 401) - 200, apart = static_cast<int>(mixed >> 32 & 15);
    return static_cast<float>(base + (2 * rank - (ranks - 1)) * apart) / 64;
}
float first_weight(std::size_t i, std::size_t at) { return gradient(0, 1, i + 50, at, 77); }

template <class Trainer> void start(Trainer& train, herring::world const& ranks) {
    int root = 0;
    while (ranks.topology().worker(root) != 0) ++root;
    train.start(root, [](std::size_t i, std::span<float> into) {
        for (std::size_t at = 0; at < into.size(); ++at) into[at] = first_weight(i, at);
    });
}
template <class Trainer> void run_step(Trainer& train, herring::world& ranks, int step) {
    for (std::size_t i = 0; i < train.size(); ++i) {
        std::span<float> const into = train.tensor(i);
        for (std::size_t at = 0; at < into.size(); ++at)
            into[at] = gradient(ranks.worker(), ranks.workers(), i, at, step);
        train.ready(i);
    }
    train.wait();
}
/// Steps from..till − 1. A rate that is no default is set before step 1.
template <class Trainer> void run_steps(Trainer& train, herring::world& ranks, int from, int till) {
    for (int step = from; step < till; ++step) {
        if (step == 1) {
            auto values = train.hyper();
            values.rate = 0.1; // has no exact double
            train.set(values);
        }
        run_step(train, ranks, step);
    }
}

/// What gradients of a step are clipped by. The sum of their squares is exact.
template <class Optimizer> float factor_of(int step) {
    if constexpr (Optimizer::facts.clips) {
        double squares = 0;
        for (std::size_t i = 0; i < sizes_of_optimizers.size(); ++i)
            for (std::size_t at = 0; at < sizes_of_optimizers[i]; ++at) {
                double const one = gradient(0, 1, i, at, step);
                squares += one * one;
            }
        double const norm = std::sqrt(squares), most = typename Optimizer::hyper{}.clip;
        if (norm > most) return static_cast<float>(most / norm);
    }
    return 1;
}

/// One's own weights after each step, of a training that never stopped.
template <class Optimizer> std::vector<std::vector<float>> const& own_weights(int steps) {
    static std::map<int, std::vector<std::vector<float>>> known;
    auto& all = known[steps];
    if (!all.empty()) return all;
    for (std::size_t i = 0; i < sizes_of_optimizers.size(); ++i) {
        std::vector<float> first(sizes_of_optimizers[i]), mean(first.size());
        for (std::size_t at = 0; at < first.size(); ++at) first[at] = first_weight(i, at);
        own_update<Optimizer, float> own(first);
        typename Optimizer::hyper values{};
        for (int step = 0; step < steps; ++step) {
            if (step == 1) values.rate = 0.1;
            for (std::size_t at = 0; at < mean.size(); ++at) mean[at] = gradient(0, 1, i, at, step);
            own.step(mean, values, static_cast<std::uint64_t>(step) + 1, 1, factor_of<Optimizer>(step), {});
        }
        all.push_back(own.weights());
    }
    return all;
}

template <class Trainer> std::string differs(Trainer& train, std::vector<std::vector<float>> const& own) {
    for (std::size_t i = 0; i < own.size(); ++i)
        if (!std::ranges::equal(std::as_bytes(train.weights(i)), std::as_bytes(std::span(own[i]))))
            return "tensor " + std::to_string(i) + " has other weights";
    return "";
}

std::vector<std::byte> user_bytes(std::size_t size) {
    std::vector<std::byte> all(size);
    pattern(size).fill(all);
    return all;
}

/// A server serves, and returns true.
template <class Trainer> bool serves(herring::world& ranks) {
    if constexpr (Trainer::pack::placement::facts.dedicated_servers)
        if (ranks.role() == herring::role::server) {
            herring::serve<Trainer>(ranks, layout::of(sizes_of_optimizers));
            return true;
        }
    return false;
}

/// Trains two steps, and saves.
template <class Trainer>
findings save(std::string const& folder, nodes const& shape, std::size_t user, settings const& how = {}) {
    own_weights<typename Trainer::pack::optimizer>(2); // before there are threads
    own_weights<typename Trainer::pack::optimizer>(4);
    return run_case("save on " + name_of(shape), static_cast<int>(shape.size()), shape, how, [&](auto& on) {
        if (serves<Trainer>(on.ranks)) return;
        Trainer train(on.ranks, layout::of(sizes_of_optimizers));
        start(train, on.ranks);
        run_steps(train, on.ranks, 0, 2);
        train.save(folder, user_bytes(on.ranks.worker() == 0 ? user : user + 1));
        on.expect(differs(train, own_weights<typename Trainer::pack::optimizer>(2)) == "",
                  "save changed weights");
    });
}
/// Loads, and goes on for two steps.
template <class Trainer>
findings load(std::string const& folder, nodes const& shape, std::size_t user, settings const& how = {}) {
    return run_case("load on " + name_of(shape), static_cast<int>(shape.size()), shape, how, [&](auto& on) {
        if (serves<Trainer>(on.ranks)) return;
        Trainer train(on.ranks, layout::of(sizes_of_optimizers));
        on.expect(train.load(folder) == user_bytes(user), "the program's bytes are those of worker 0");
        on.expect(train.hyper().rate == 0.1, "the hyper values are those that were saved");
        using optimizer = typename Trainer::pack::optimizer;
        on.expect(differs(train, own_weights<optimizer>(2)) == "", "weights after load");
        run_steps(train, on.ranks, 2, 4);
        std::string const found = differs(train, own_weights<optimizer>(4));
        on.expect(found == "", found + " two steps after load");
    });
}

/// What a call throws: its code and text, or "".
template <class Call> std::string thrown(Call const& call) {
    try {
        call();
    } catch (herring::error const& why) {
        return std::string(herring::to_string(why.code())) + ": " + why.why().text;
    }
    return "";
}
bool has(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

} // namespace checkpoint_conformance

using namespace checkpoint_conformance;

TEST_CASE("checkpoint: from any ranks and nodes to any others, the bits of training that never stopped") {
    bool const slow = HERRING_TEST_ASAN || HERRING_TEST_TSAN;
    auto const some = std::span(shapes).first(slow ? 3 : 6);
    for (nodes const& from : some) {
        scratch_folder const folder;
        REQUIRE(text(save<small_chunks>(folder.path(), from, 1000)) == "");
        for (nodes const& to : some) CHECK(text(load<small_chunks>(folder.path(), to, 1000)) == "");
        CHECK(text(load<large_chunks>(folder.path(), from, 1000)) == "");
    }
}

TEST_CASE("checkpoint: to other routes and chunks, and between processes") {
    settings const processes{.start = ranks_as::processes};
    scratch_folder const folder;
    REQUIRE(text(save<large_chunks>(folder.path(), {"a", "b", "c", "d"}, 0)) == "");
    CHECK(text(load<small_chunks>(folder.path(), {"a", "a", "a", "a"}, 0)) == "");
    CHECK(text(load<sockets>(folder.path(), {"a", "b", "a"}, 0, processes)) == "");
    REQUIRE(text(save<sockets>(folder.path(), {"a", "b", "a"}, 40, processes)) ==
            ""); // in place of the other
    CHECK(text(load<small_chunks>(folder.path(), {"a", "b", "c", "d"}, 40)) == "");
    CHECK(herring::tests::files_of(folder.path()).size() == 5); // none of the other is left
}

TEST_CASE("checkpoint: from ranks that serve for themselves to servers of their own, and back") {
    scratch_folder const folder;
    REQUIRE(text(save<small_chunks>(folder.path(), {"a", "b", "c", "d"}, 100)) == "");
    CHECK(text(load<served>(folder.path(), {"a", "b", "c", "d", "server", "server"}, 100)) == "");
    REQUIRE(text(save<served>(folder.path(), {"server", "a", "a", "server", "b", "server"}, 200)) == "");
    CHECK(text(load<served>(folder.path(), {"a", "server"}, 200)) == "");
    CHECK(text(load<small_chunks>(folder.path(), {"a", "b", "b"}, 200)) == "");
    CHECK(text(load<partly_served>(folder.path(), {"a", "server", "b"}, 200)) == "");
    REQUIRE(text(save<partly_served>(folder.path(), {"server", "a", "b", "c"}, 300)) == "");
    CHECK(text(load<served>(folder.path(), {"a", "a", "server", "server"}, 300)) == "");
}

TEST_CASE(
    "checkpoint: servers whose messages are refused and late are waited for by workers that save and load") {
    scratch_folder const folder;
    for (int round = 0; round < 3; ++round) {
        REQUIRE(text(save<roughly_served>(folder.path(), {"a", "b", "server", "server"}, 100)) == "");
        CHECK(text(load<roughly_served>(folder.path(), {"server", "a", "b", "b"}, 100)) == "");
    }
}

TEST_CASE(
    "checkpoint: in two phases, from ranks that serve for themselves to servers of their own, and back") {
    using clipped_served = clipped<herring::placement::dedicated>;
    using clipped_partly_served = clipped<herring::placement::optimal>;
    scratch_folder const folder;
    REQUIRE(text(save<clipped<>>(folder.path(), {"a", "b", "a"}, 100)) == "");
    CHECK(text(load<clipped_served>(folder.path(), {"a", "b", "server", "c", "server"}, 100)) == "");
    REQUIRE(text(save<clipped_served>(folder.path(), {"server", "a", "a", "server", "b"}, 200)) == "");
    CHECK(text(load<clipped_served>(folder.path(), {"a", "server"}, 200)) == "");
    CHECK(text(load<clipped_partly_served>(folder.path(), {"a", "server", "b", "a"}, 200)) == "");
    REQUIRE(text(save<clipped_partly_served>(folder.path(), {"server", "a", "b", "c"}, 300)) == "");
    CHECK(text(load<clipped_served>(folder.path(), {"a", "a", "server", "server"}, 300)) == "");
    CHECK(text(load<clipped<>>(folder.path(), {"a", "b", "b"}, 300)) == "");
}

TEST_CASE(
    "checkpoint: with servers of their own, one that cannot be had leaves workers and servers as they were") {
    scratch_folder const folder;
    CHECK(text(run_case("no checkpoint", 4, {"a", "b", "server", "server"}, {}, [&](auto& on) {
              if (serves<served>(on.ranks)) return;
              served train(on.ranks, layout::of(sizes_of_optimizers));
              start(train, on.ranks);
              run_steps(train, on.ranks, 0, 2);
              std::string const elsewhere = thrown([&] { (void)train.state(); });
              on.expect(elsewhere.find("call save") != elsewhere.npos, "servers keep it: " + elsewhere);
              std::string const absent = thrown([&] { train.load(folder.path()); });
              on.expect(has(absent, "there is no checkpoint"), "load said: " + absent);
              std::string const nowhere = thrown([&] { train.save(folder.path() + "/absent"); });
              on.expect(has(nowhere, "/absent"), "save said: " + nowhere);
              run_steps(train, on.ranks, 2, 4);
              on.expect(differs(train, own_weights<optimizer::adamw>(4)) == "", "two steps after that");
          })) == "");
}

TEST_CASE(
    "checkpoint: elements of 16 bits go on from what was not rounded, and groups with values of their own") {
    using rounded = herring::reducer<herring::bfloat16, herring::transport::inproc, optimizer::adamw, shared,
                                     herring::update::average>;
    layout const tensors{{"a", 5000, 1}, {"b", 70'000, 0}, {"c", 17, 2}};
    auto const run = [](rounded& train, herring::world const& ranks, int from, int till) {
        for (int step = from; step < till; ++step) {
            for (std::size_t i = 0; i < train.size(); ++i) {
                auto const into = train.tensor(i);
                for (std::size_t at = 0; at < into.size(); ++at)
                    into[at] = herring::bfloat16(gradient(ranks.rank(), ranks.size(), i, at, step));
                train.ready(i);
            }
            train.wait();
        }
    };
    auto const begin = [](rounded& train) {
        train.start(0, [](std::size_t i, std::span<herring::bfloat16> into) {
            for (std::size_t at = 0; at < into.size(); ++at)
                into[at] = herring::bfloat16(first_weight(i, at));
        });
        train.set(1, {.rate = 0.02});
        train.freeze(2);
    };
    scratch_folder const folder;
    CHECK(text(run_case("16 bits", 3, {"a", "b", "b"}, {}, [&](auto& on) {
              rounded whole(on.ranks, tensors);
              begin(whole);
              run(whole, on.ranks, 0, 4);
              {
                  rounded first(on.ranks, tensors);
                  begin(first);
                  run(first, on.ranks, 0, 2);
                  first.save(folder.path());
              }
              rounded second(on.ranks, tensors);
              (void)second.load(folder.path());
              on.expect(second.hyper(1).rate == 0.02 && second.hyper(0).rate == 0.001 && second.frozen(2) &&
                            !second.frozen(1),
                        "values of groups");
              run(second, on.ranks, 2, 4);
              for (std::size_t i = 0; i < tensors.size(); ++i)
                  on.expect(
                      std::ranges::equal(std::as_bytes(whole.weights(i)), std::as_bytes(second.weights(i))),
                      "tensor " + std::to_string(i) + " has other weights");
              for (auto const& one : second.state())
                  on.expect(one.array <= 2 && one.span.size() <= tensors[one.tensor].elements, "state");
          })) == "");
    CHECK(text(run_case("other groups", 1, {"a"}, {}, [&](auto& on) {
              rounded train(on.ranks, {{"a", 5000, 1}, {"b", 70'000, 0}, {"c", 17, 0}});
              std::string const other = thrown([&] { train.load(folder.path()); });
              on.expect(has(other, "3 groups"), "load said: " + other);
          })) == "");
}

TEST_CASE("checkpoint: an optimizer without state, and the program's bytes in more than one message") {
    scratch_folder const folder;
    std::size_t const many = (std::size_t{16} << 20) + 77;
    REQUIRE(text(save<stateless>(folder.path(), {"a", "b", "b"}, many)) == "");
    CHECK(text(load<stateless>(folder.path(), {"a", "a"}, many)) == "");
}

namespace checkpoint_conformance {

/// Everything goes to the last node, so that rank 0 owns nothing.
struct all_to_the_last {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "all_to_the_last";
    template <class Assign>
    static constexpr void shard(herring::bucket_view const& bucket, herring::roles const& of,
                                Assign&& assign) {
        if (bucket.elements > 0) assign(0, bucket.elements, herring::server_id{of.server_count() - 1});
    }
};

} // namespace checkpoint_conformance

TEST_CASE("checkpoint: rank 0 owns nothing, and its bytes are saved; and nobody owns anything") {
    using at_the_last = trainer_of<herring::transport::inproc, optimizer::adamw, all_to_the_last>;
    for (std::size_t const elements : {std::size_t{70'000}, std::size_t{0}}) {
        scratch_folder const folder;
        std::vector<float> weights;
        for (nodes const& shape : {nodes{"a", "b", "c"}, nodes{"a", "b"}})
            CHECK(
                text(run_case("the last owns all", static_cast<int>(shape.size()), shape, {}, [&](auto& on) {
                    at_the_last train(on.ranks, layout{{"one", elements}});
                    bool const first = shape.size() == 3;
                    if (first) {
                        start(train, on.ranks);
                        run_step(train, on.ranks, 0);
                        on.expect(train.state().empty() == (on.rank() != 2 || elements == 0), "who owns");
                        train.save(folder.path(), user_bytes(on.rank() == 0 ? 33 : 44));
                    } else {
                        on.expect(train.load(folder.path()) == user_bytes(33), "the bytes of rank 0");
                    }
                    auto const found = train.weights(0);
                    if (on.rank() == 0 && first) weights.assign(found.begin(), found.end());
                    on.expect(on.rank() != 0 || std::ranges::equal(found, weights), "weights");
                    on.ranks.barrier();
                })) == "");
        auto const saved = herring::tests::files_of(folder.path());
        CHECK(saved.size() == (elements > 0 ? 3 : 2));
        CHECK(saved.contains("herring-1-1.2") == (elements > 0));
    }
}

TEST_CASE("checkpoint: state() has every element once, of weights and of each number of the state") {
    for (nodes const& shape : shapes)
        CHECK(text(run_case(
                  "state on " + name_of(shape), static_cast<int>(shape.size()), shape, {}, [&](auto& on) {
                      small_chunks train(on.ranks, layout::of(sizes_of_optimizers));
                      start(train, on.ranks);
                      run_step(train, on.ranks, 0);
                      std::vector<herring::detail::checkpoints::tensor_range> mine;
                      for (auto const& one : train.state()) {
                          for (std::size_t at = 0; at < one.span.size(); ++at) {
                              float const g = gradient(0, 1, one.tensor, one.offset + at, 0);
                              float const due = one.array == 0 ? train.weights(one.tensor)[one.offset + at]
                                                : one.array == 1
                                                    ? herring::lanes::product(g, float(1 - 0.9))
                                                    : herring::lanes::product(g * g, float(1 - 0.999));
                              if (one.span[at] != due) {
                                  on.find("array " + std::to_string(one.array) + " has another value");
                                  return;
                              }
                          }
                          mine.push_back({one.array * sizes_of_optimizers.size() + one.tensor, one.offset,
                                          one.span.size()});
                      }
                      auto const all = on.ranks.all_gather(std::as_bytes(std::span(mine)));
                      std::vector<herring::detail::checkpoints::tensor_range> together;
                      for (std::size_t r = 0; r < all.size(); ++r) {
                          std::size_t const before = together.size();
                          together.resize(before + all[r].size() / sizeof mine[0]);
                          if (!all[r].empty())
                              std::memcpy(together.data() + before, all[r].data(), all[r].size());
                      }
                      std::vector<std::uint64_t> elements;
                      for (int array = 0; array < 3; ++array)
                          elements.insert(elements.end(), sizes_of_optimizers.begin(),
                                          sizes_of_optimizers.end());
                      on.expect(herring::detail::checkpoints::cover_once(together, elements),
                                "every element once");
                  })) == "");
}

TEST_CASE("checkpoint: spans of state() stay, and have what load has read") {
    scratch_folder const folder;
    auto const same = [&](auto const& name, auto& train, auto& on) {
        using number = std::remove_const_t<typename decltype(train.state().front().span)::value_type>;
        start(train, on.ranks);
        run_steps(train, on.ranks, 0, 1);
        train.save(folder.path());
        auto const spans = train.state();
        std::vector<std::vector<number>> saved;
        for (auto const& one : spans) saved.emplace_back(one.span.begin(), one.span.end());
        run_steps(train, on.ranks, 1, 3);
        bool changed = false;
        for (std::size_t i = 0; i < spans.size(); ++i)
            changed |= !std::ranges::equal(spans[i].span, saved[i]);
        on.expect(changed, std::string(name) + ": steps change what the spans have");
        train.load(folder.path());
        auto const after = train.state();
        on.expect(after.size() == spans.size(), std::string(name) + ": as many spans");
        for (std::size_t i = 0; i < spans.size(); ++i) {
            if (after[i].span.data() != spans[i].span.data()) { // which may not be looked at
                on.find(std::string(name) + ": array " + std::to_string(spans[i].array) + " lies elsewhere");
                return;
            }
            on.expect(std::ranges::equal(spans[i].span, saved[i]),
                      std::string(name) + ": array " + std::to_string(spans[i].array));
        }
        on.ranks.barrier();
    };
    CHECK(text(run_case("spans of state", 3, {"a", "b", "b"}, {}, [&](auto& on) {
              layout const tensors = layout::of(sizes_of_optimizers);
              {
                  small_chunks train(on.ranks, tensors);
                  same("adamw", train, on);
              }
              {
                  clipped<> train(on.ranks, tensors);
                  same("two phases", train, on);
              }
          })) == "");
}

TEST_CASE("checkpoint: calls that come too soon, or in the middle of a step") {
    scratch_folder const folder;
    CHECK(text(run_case("misuse", 2, {"a", "b"}, {}, [&](auto& on) {
              small_chunks train(on.ranks, layout{{"a", 10}, {"b", 20}});
              on.expect(has(thrown([&] { train.ready(0); }), "load"), "ready before start or load");
              on.expect(has(thrown([&] { train.save(folder.path()); }), "bad state"), "save before start");
              on.expect(has(thrown([&] { (void)train.state(); }), "bad state"), "state before start");
              start(train, on.ranks);
              train.ready(0);
              on.expect(has(thrown([&] { train.save(folder.path()); }), "a step is under way"),
                        "save in a step");
              on.expect(has(thrown([&] { train.load(folder.path()); }), "a step is under way"),
                        "load in a step");
              on.expect(has(thrown([&] { (void)train.state(); }), "a step is under way"), "state in a step");
              train.ready(1);
              train.wait();
              std::string const said = thrown([&] { train.load(folder.path()); });
              on.expect(
                  has(said, "bad argument: herring.manifest: there is no checkpoint (in " + folder.path()),
                  said);
              train.save(folder.path());
              on.expect(train.load(folder.path()).empty(), "no bytes of the program's");
              std::string const other = on.rank() == 0 ? "a" : "b";
              on.ranks.barrier();
              on.expect(has(thrown([&] { // another call ends nobody by a deadline
                                if (on.rank() == 0)
                                    train.save(folder.path());
                                else
                                    train.load(folder.path());
                            }),
                            "mismatch: it is in another collective"),
                        "save and load at once");
          })) == "");
}

namespace checkpoint_conformance {

layout const small_layout{{"first", 10}, {"second", 700}};

/// One world whose ranks load, again and again, what one of them makes of a sound checkpoint. `with(attempt)`, where
/// attempt(files, words): the files are in the folder, all ranks are refused, with these words, and have what they had.
template <class With> findings bad_checkpoints(std::string const& folder, With const& with) {
    return run_case("bad checkpoints", 3, {"a", "a", "b"}, {}, [&](auto& on) {
        small_chunks train(on.ranks, small_layout), twin(on.ranks, small_layout);
        for (auto* const one : {&train, &twin}) {
            start(*one, on.ranks);
            run_steps(*one, on.ranks, 0, 2);
        }
        auto const attempt = [&](herring::tests::files const& made, std::string const& words) {
            if (on.rank() == 0) herring::tests::put_files(folder, made);
            on.ranks.barrier();
            std::string const said = thrown([&] { train.load(folder); });
            on.expect(has(said, words), words + ", not: " + said);
            std::string const all = words + std::to_string(std::hash<std::string>()(said));
            auto const heard = on.ranks.all_gather(std::as_bytes(std::span(all)));
            on.expect(std::ranges::equal(heard[0], heard[2]) && std::ranges::equal(heard[0], heard[1]),
                      "all ranks hear the same");
            for (std::size_t i = 0; i < 2; ++i)
                on.expect(std::ranges::equal(train.weights(i), twin.weights(i)), "weights were overwritten");
        };
        with(attempt);
        run_steps(train, on.ranks, 2, 3);
        run_steps(twin, on.ranks, 2, 3);
        for (std::size_t i = 0; i < 2; ++i)
            on.expect(std::ranges::equal(train.weights(i), twin.weights(i)), "state was overwritten");
        on.ranks.barrier();
    });
}
template <class Trainer> herring::tests::files saved(layout const& tensors, nodes const& shape, int steps) {
    scratch_folder const folder;
    CHECK(text(run_case("saved", static_cast<int>(shape.size()), shape, {}, [&](auto& on) {
              Trainer train(on.ranks, tensors);
              start(train, on.ranks);
              run_steps(train, on.ranks, 0, steps);
              train.save(folder.path(), user_bytes(90));
          })) == "");
    return herring::tests::files_of(folder.path());
}

} // namespace checkpoint_conformance

TEST_CASE(
    "checkpoint: bits that flip and files that are cut or missing are named, and nothing is overwritten") {
    auto const sound = saved<small_chunks>(small_layout, {"a", "b"}, 1);
    REQUIRE(sound.size() == 4);
    scratch_folder const folder;
    CHECK(text(bad_checkpoints(folder.path(), [&](auto const& attempt) {
              for (auto const& [name, bytes] : sound) {
                  // Every byte of manifest and tables, and of data some.
                  std::size_t const data = name == "herring.manifest" ? 0 : bytes.size() - 80;
                  std::size_t const some = static_cast<std::size_t>(HERRING_TEST_SLOW ? 15 : 1);
                  for (std::size_t at = 0; at < bytes.size(); at += at < data ? 101 : some) {
                      auto made = sound;
                      made[name][at] = static_cast<char>(made[name][at] ^ 1 << at % 8);
                      attempt(made, "corrupted: " + name + ": ");
                  }
                  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 17) {
                      auto made = sound;
                      made[name].resize(size);
                      attempt(made, "corrupted: " + name + ": ");
                  }
                  auto made = sound;
                  made[name] += '\0';
                  attempt(made, "corrupted: " + name + ": ");
                  made = sound;
                  made.erase(name);
                  attempt(made, name == "herring.manifest" ? "there is no checkpoint"
                                                           : "corrupted: " + name + ": the file is missing");
              }
          })) == "");
}

TEST_CASE("checkpoint: of another layout, type or optimizer, or put together from two") {
    auto const sound = saved<small_chunks>(small_layout, {"a", "b"}, 1);
    using doubles = herring::reducer<double, herring::transport::inproc, optimizer::momentum>;
    using other = trainer_of<herring::transport::inproc, optimizer::momentum>;
    scratch_folder const folder;
    auto const rest = saved<small_chunks>(layout{{"first", 10}, {"second", 700}, {"third", 0}}, {"a"}, 1);
    auto const name = saved<small_chunks>(layout{{"first", 10}, {"sec\nond", 700}}, {"a"}, 1);
    auto const size = saved<small_chunks>(layout{{"first", 10}, {"second", 701}}, {"a"}, 1);
    auto const momentum = saved<other>(small_layout, {"a"}, 1);
    auto const twin = saved<small_chunks>(small_layout, {"a", "b"}, 1);
    auto later = saved<small_chunks>(small_layout, {"a", "b"}, 2);
    herring::tests::files of_doubles;
    {
        scratch_folder const another;
        herring::world alone;
        doubles train(alone, small_layout);
        train.start(0, [](std::size_t, std::span<double> into) { std::ranges::fill(into, 1.0); });
        train.save(another.path());
        of_doubles = herring::tests::files_of(another.path());
    }
    CHECK(text(bad_checkpoints(folder.path(), [&](auto const& attempt) {
              attempt(rest,
                      "mismatch: herring.manifest: the checkpoint has 3 tensors, this reducer's layout 2");
              attempt(name, "tensor 1 of the checkpoint is 'sec");
              attempt(size, "tensor 1 of the checkpoint is 'second' with 701 elements");
              attempt(momentum, "optimizer 'momentum' with 1 states, this reducer has 'adamw' with 2");
              attempt(of_doubles, "the checkpoint is of double, this reducer of float");
              auto made = sound; // a file of another checkpoint, under the same name
              for (auto const& [file, bytes] : later)
                  if (has(file, ".1")) made["herring-1-1.1"] = bytes;
              attempt(made, "corrupted: herring-1-1.1: the table");
              made = sound;
              made["herring.manifest"] = later["herring.manifest"];
              attempt(made, "corrupted: herring-2-1.0: the file is missing");
              // As it is written, but for the generation of the format.
              made = sound;
              made["herring.manifest"].replace(0, 20, "herring checkpoint 2");
              attempt(made, "another version");
          })) == "");
    CHECK(twin == sound); // the same training makes the same files
}

TEST_CASE(
    "checkpoint: a save that fails on one rank fails on all, the one before stays, and training goes on") {
    scratch_folder const folder, elsewhere;
    CHECK(text(run_case("failed saves", 3, {"a", "b", "b"}, {}, [&](auto& on) {
              small_chunks train(on.ranks, small_layout), twin(on.ranks, small_layout);
              start(train, on.ranks);
              start(twin, on.ranks);
              run_steps(train, on.ranks, 0, 1);
              run_steps(twin, on.ranks, 0, 1);
              auto const refused = [&](std::string const& where, std::string const& words) {
                  std::string const said = thrown([&] { train.save(where); });
                  on.expect(has(said, words), words + ", not: " + said);
              };
              bool const odd = on.rank() == 1;
              refused("/no/such/folder", "bad argument: the folder cannot be opened: No such file");
              train.save(folder.path(), user_bytes(7));
              auto const before = herring::tests::files_of(folder.path());
              run_steps(train, on.ranks, 1, 2);
              refused(odd ? folder.path() + "/missing" : folder.path(), "missing");
              for (int attempt = 0; attempt < 3; ++attempt)
                  refused(odd ? elsewhere.path() : folder.path(),
                          "bad argument: herring-2-2.1: rank 1 has written it, and rank 0 does not see it");
              on.expect(herring::tests::files_of(elsewhere.path()).empty() || !odd,
                        "what a failed save leaves in a folder of one rank");
              on.ranks.barrier(); // rank 0 tidies
              on.expect(herring::tests::files_of(folder.path()) == before, "what a failed save leaves");
              on.ranks.barrier();
              run_steps(twin, on.ranks, 1, 2);
              run_steps(train, on.ranks, 2, 3);
              run_steps(twin, on.ranks, 2, 3);
              for (std::size_t i = 0; i < 2; ++i)
                  on.expect(std::ranges::equal(train.weights(i), twin.weights(i)),
                            "training after failed saves");
              on.expect(train.load(folder.path()) == user_bytes(7), "the checkpoint from before");
              on.ranks.barrier();
          })) == "");
}

// herring: sync policies and checkpoints: a run that is saved and loaded goes on with the bits and decisions of one that never stopped.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint.hpp"
#include "herring/lazy_reducer.hpp"

#include "checkpoint_files.hpp"
#include "conformance/loudest.hpp"
#include "conformance/suite.hpp"
#include "doctest/doctest.h"

#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

using namespace herring::conformance;
namespace sync_policies = herring::sync;
using herring::tests::scratch_folder;
using herring::transport::inproc;
using shared = herring::intra_node::shared_memory;
using per_tensor = herring::fusion::per_tensor;

namespace sync_checkpoints {

using third = sync_policies::every<3>;
using warm = sync_policies::post_local<2, 3>;
using outer = sync_policies::diloco<3, herring::optimizer::nesterov>;
template <int Ahead, bool PerBucket>
using picky = sync_policies::selective<sync_policies::selective_tuning{
    .threshold = 0.3f, .window = 3, .smoothing = 0.5f, .ahead = Ahead, .per_bucket = PerBucket}>;
template <class Sync, class Element = float, class... More>
using lazy_of = herring::reducer<Element, inproc, per_tensor, Sync, herring::update::average, More...>;

herring::layout const tensors{{"a", 40}, {"b", 3000}, {"c", 0}, {"d", 7}};

/// Of other sizes in other steps, so that policies which look at gradients decide now so, now otherwise.
inline float gradient(int rank, int step, std::size_t tensor, std::size_t at) {
    int const loud = (step * 7 + static_cast<int>(tensor) * 3 + rank) % 5;
    return static_cast<float>((static_cast<int>(at) % 7 - 3 + rank) * (1 << loud)) / 64.0f;
}
inline float first_weight(std::size_t tensor, std::size_t at) {
    return static_cast<float>(tensor * 8 + at % 11) / 8.0f;
}

template <class Lazy> void begin(Lazy& lazy) {
    using element = typename Lazy::element_type;
    lazy.start(0, [](std::size_t i, std::span<element> into) {
        for (std::size_t at = 0; at < into.size(); ++at) into[at] = element(first_weight(i, at));
    });
    if constexpr (requires { lazy.hyper().rate; }) {
        auto values = lazy.hyper();
        values.rate = 0.5;
        lazy.set(values);
    }
}

/// What a rank sees of a step: what became of it, what was and will be exchanged, and all its weights.
template <class Lazy> std::string step(Lazy& lazy, int rank, int number) {
    using element = typename Lazy::element_type;
    std::string seen;
    for (std::size_t i = 0; i < lazy.size(); ++i) {
        auto const into = lazy.tensor(i);
        for (std::size_t at = 0; at < into.size(); ++at) into[at] = element(gradient(rank, number, i, at));
        lazy.ready(i);
    }
    seen += std::to_string(static_cast<int>(lazy.wait()));
    for (std::size_t i = 0; i < lazy.size(); ++i) {
        auto const weights = lazy.weights(i);
        auto const by = lazy.tensor(i);
        for (std::size_t at = 0; at < weights.size(); ++at)
            weights[at] = element(static_cast<float>(weights[at]) - 0.125f * static_cast<float>(by[at]));
        lazy.updated(i);
    }
    lazy.settle();
    for (std::size_t i = 0; i < lazy.size(); ++i) {
        seen += lazy.synchronized(i) ? 's' : '-';
        seen.append(reinterpret_cast<char const*>(lazy.weights(i).data()), lazy.weights(i).size_bytes());
    }
    return seen;
}
template <class Lazy> std::vector<std::string> steps(Lazy& lazy, int rank, int from, int till) {
    std::vector<std::string> seen;
    for (int n = from; n < till; ++n) seen.push_back(step(lazy, rank, n));
    return seen;
}

/// Saved behind each number of steps, and loaded by reducers that know nothing.
template <class Lazy>
findings goes_on(std::vector<std::string> nodes, settings const& how = {}, int last = 9) {
    scratch_folder const folder;
    return run_case("goes on", static_cast<int>(nodes.size()), nodes, how, [&](auto& on) {
        int const rank = on.ranks.rank();
        Lazy whole(on.ranks, tensors);
        begin(whole);
        std::vector<std::string> const due = steps(whole, rank, 0, last);
        Lazy first(on.ranks, tensors);
        begin(first);
        for (int saved = 0; saved < last; ++saved) {
            std::byte const mark{static_cast<unsigned char>(saved)};
            first.save(folder.path(), std::span(&mark, 1));
            Lazy second(on.ranks, tensors);
            std::vector<std::byte> const user = second.load(folder.path());
            on.expect(user.size() == 1 && user[0] == mark, "the program's bytes");
            if (saved > 0)
                for (std::size_t i = 0; i < tensors.size(); ++i)
                    on.expect(second.synchronized(i) == first.synchronized(i),
                              "what the last step exchanged");
            std::vector<std::string> const seen = steps(second, rank, saved, last);
            for (std::size_t n = 0; n < seen.size(); ++n)
                on.expect(seen[n] == due[n + static_cast<std::size_t>(saved)],
                          "saved behind " + std::to_string(saved) + " steps, step " +
                              std::to_string(n + static_cast<std::size_t>(saved)) + " differs");
            (void)step(first, rank, saved);
        }
    });
}

/// What a call that must fail says.
template <class Call> std::string said(Call&& call) {
    try {
        call();
    } catch (herring::error const& why) {
        return why.what();
    }
    return "nothing";
}
inline bool has(std::string const& text, std::string_view part) { return text.find(part) != text.npos; }

std::vector<std::string> const two_nodes{"a", "a", "b"};

} // namespace sync_checkpoints

using namespace sync_checkpoints;

TEST_CASE("sync_checkpoint: policies of steps go on as if they had not stopped") {
    CHECK(text(goes_on<lazy_of<third, float, shared>>(two_nodes)) == "");
    CHECK(text(goes_on<lazy_of<warm, double>>({"a", "b"})) == "");
    CHECK(text(goes_on<lazy_of<sync_policies::hierarchical<3>, float, shared>>(two_nodes)) == "");
    CHECK(text(goes_on<lazy_of<third, herring::bfloat16>>({"a"})) == "");
}

TEST_CASE("sync_checkpoint: and so do those that look at gradients, each rank's at its own") {
    CHECK(text(goes_on<lazy_of<picky<1, true>, float, shared>>(two_nodes)) == "");
    CHECK(text(goes_on<lazy_of<picky<0, false>>>({"a", "b"})) == "");
    CHECK(text(goes_on<lazy_of<loudest, float, shared>>(two_nodes)) == "");
}

TEST_CASE("sync_checkpoint: an outer optimizer has its anchor, its momentum and its steps again") {
    CHECK(text(goes_on<lazy_of<outer, float, shared>>(two_nodes)) == "");
    CHECK(text(goes_on<lazy_of<sync_policies::diloco<2, herring::optimizer::adamw>, double>>({"a", "b"})) ==
          "");
}

TEST_CASE("sync_checkpoint: between processes, over sockets and shared memory") {
    using lazy = herring::reducer<float, herring::transport::tcp, per_tensor, picky<1, true>, shared>;
    CHECK(text(goes_on<lazy>(two_nodes, {.start = ranks_as::processes}, 6)) == "");
}

namespace sync_checkpoints {

/// Saved by three ranks behind so many steps. In `weights`: rank 0's.
template <class Lazy> void save_of_three(std::string const& folder, int after, std::vector<float>* weights) {
    findings const found = run_case("saved", 3, {"a", "a", "b"}, {}, [&](auto& on) {
        Lazy lazy(on.ranks, tensors);
        begin(lazy);
        (void)steps(lazy, on.ranks.rank(), 0, after);
        lazy.save(folder);
        if (weights != nullptr && on.ranks.rank() == 0)
            weights->assign(lazy.weights(1).begin(), lazy.weights(1).end());
    });
    CHECK(text(found) == "");
}

template <class Lazy> void by_other_ranks() {
    scratch_folder const folder;
    std::vector<float> due;
    save_of_three<Lazy>(folder.path(), 3, &due);
    CHECK(std::filesystem::exists(folder.path() + "/herring-3-1.sync")); // one for all
    CHECK(text(run_case("alike, by two", 2, {"a", "b"}, {}, [&](auto& on) {
              Lazy lazy(on.ranks, tensors);
              (void)lazy.load(folder.path());
              on.expect(std::ranges::equal(lazy.weights(1), due), "weights");
              on.expect(lazy.synchronized(1), "what the last step exchanged");
              on.expect(!lazy.due(0), "its place in the period");
              (void)steps(lazy, on.ranks.rank(), 3, 6);
              on.expect(lazy.synchronized(0), "the sixth step exchanges");
          })) == "");

    save_of_three<Lazy>(folder.path(), 4, nullptr);
    CHECK(std::filesystem::exists(folder.path() + "/herring-4-2.sync2"));
    CHECK_FALSE(std::filesystem::exists(folder.path() + "/herring-3-1.sync"));
    CHECK(text(run_case("not alike, by two", 2, {"a", "b"}, {}, [&](auto& on) {
              Lazy lazy(on.ranks, tensors);
              begin(lazy);
              std::string const why = said([&] { (void)lazy.load(folder.path()); });
              on.expect(has(why, "mismatch") && has(why, "saved by 3 ranks whose weights") &&
                            has(why, "are 2;"),
                        "load said: " + why);
              on.expect(lazy.weights(1)[1] == first_weight(1, 1), "it has the weights that it had");
              (void)steps(lazy, on.ranks.rank(), 0, 3); // and goes on
              on.expect(lazy.synchronized(0), "and the policy's state");
          })) == "");
}

} // namespace sync_checkpoints

TEST_CASE("sync_checkpoint: what ranks have alike any number of ranks loads, and else as many") {
    by_other_ranks<lazy_of<third, float, shared>>();
    by_other_ranks<lazy_of<outer, float, shared>>();
}

TEST_CASE("sync_checkpoint: weights that lie in memory of the program's") {
    scratch_folder const folder;
    CHECK(text(run_case("elsewhere", 2, {"a", "b"}, {}, [&](auto& on) {
              herring::layout const one{{"a", 4}};
              lazy_of<third> lazy(on.ranks, one);
              lazy.start(0, [](std::size_t, std::span<float> into) { std::ranges::fill(into, 0.0f); });
              std::vector<float> mine(4, static_cast<float>(on.ranks.rank()));
              lazy.ready(0);
              std::string const too_soon = said([&] { lazy.save(folder.path()); });
              on.expect(has(too_soon, "bad state") && has(too_soon, "a step is under way"), too_soon);
              lazy.wait();
              lazy.updated(0, mine);
              lazy.settle();
              std::string const why = said([&] { lazy.save(folder.path()); });
              on.expect(has(why, "bad state") && has(why, "tensor 0 ('a') lie in memory of the program's"),
                        why);
              lazy.save(folder.path(),
                        [&](std::size_t, std::span<float> into) { std::ranges::copy(mine, into.begin()); });
              lazy_of<third> other(on.ranks, one);
              (void)other.load(folder.path());
              on.expect(std::ranges::equal(other.weights(0), mine), "weights");
          })) == "");
}

TEST_CASE("sync_checkpoint: of another policy, other buckets, another kind of reducer; cut and damaged") {
    scratch_folder const folder, trained;
    save_of_three<lazy_of<third>>(folder.path(), 4, nullptr);
    auto const sound = herring::tests::files_of(folder.path());
    using trainer = herring::reducer<float, inproc, herring::optimizer::nesterov>;
    auto const alone = [&](auto type, herring::layout const& layout, auto const& expected) {
        using lazy = typename decltype(type)::type;
        CHECK(text(run_case("foreign", 3, {"a", "b", "c"}, {}, [&](auto& on) {
                  lazy other(on.ranks, layout);
                  std::string const why = said([&] { (void)other.load(folder.path()); });
                  for (std::string_view const part : expected) on.expect(has(why, part), "load said: " + why);
              })) == "");
    };
    using parts = std::array<std::string_view, 2>;
    alone(std::type_identity<lazy_of<sync_policies::every<4>>>(), tensors,
          parts{"mismatch", "the checkpoint is of sync policy '"});
    alone(std::type_identity<herring::reducer<float, inproc, third, herring::update::average>>(), tensors,
          parts{"mismatch", "buckets, this reducer has 1"});
    alone(std::type_identity<lazy_of<outer>>(), tensors, parts{"mismatch", "optimizer 'none'"});
    alone(std::type_identity<lazy_of<third>>(), herring::layout{{"a", 40}, {"b", 3000}},
          parts{"mismatch", "4 tensors"});

    // An optimizer's state is not that of an outer optimizer, and the other way round.
    save_of_three<lazy_of<outer>>(folder.path(), 3, nullptr);
    alone(std::type_identity<trainer>(), tensors,
          parts{"mismatch", "of a reducer with a sync policy that skips steps, this one is without"});
    CHECK(text(run_case("trained", 1, {"a"}, {}, [&](auto& on) {
              trainer train(on.ranks, tensors);
              train.start(0, [](std::size_t, std::span<float> into) { std::ranges::fill(into, 1.0f); });
              train.save(trained.path());
              lazy_of<outer> lazy(on.ranks, tensors);
              std::string const why = said([&] { (void)lazy.load(trained.path()); });
              on.expect(has(why, "of a reducer without a sync policy"), "load said: " + why);
          })) == "");

    for (std::string const name : {"herring-4-1.sync0", "herring-4-1.sync1", "herring-4-1.sync2"})
        for (bool const cut : {false, true}) {
            auto damaged = sound;
            std::string& bytes = damaged.at(name);
            if (cut)
                bytes.resize(bytes.size() / 2);
            else
                bytes[4] = static_cast<char>(bytes[4] ^ 1); // the number of steps
            herring::tests::put_files(folder.path(), damaged);
            alone(std::type_identity<lazy_of<third>>(), tensors,
                  std::array<std::string_view, 2>{"corrupted", name});
        }
    auto without = sound;
    without.erase("herring-4-1.sync1");
    herring::tests::put_files(folder.path(), without);
    alone(std::type_identity<lazy_of<third>>(), tensors,
          std::array<std::string_view, 2>{"herring-4-1.sync1: the file is missing", "corrupted"});
    herring::tests::put_files(folder.path(), sound);
    alone(std::type_identity<lazy_of<third>>(), tensors, std::array<std::string_view, 1>{"nothing"});
}

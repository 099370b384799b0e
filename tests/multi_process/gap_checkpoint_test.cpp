// herring: checkpoints that real processes write while their steps wait: they have the bytes of one that is saved at once at that step,
// and a rank whose disk is full goes on training.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gap_checkpoint.hpp"

#include "checkpoint_files.hpp"
#include "doctest/doctest.h"
#include "sanitizers.hpp"

#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/session/saved_in_gaps.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>

namespace gap_checkpoint_test {

using namespace std::chrono_literals;
using herring::layout;
using herring::world;
using herring::tests::files_of;
using herring::tests::scratch_folder;

template <class Optimizer, class... More>
using trainer_of =
    herring::reducer<float, herring::transport::tcp, Optimizer, herring::progress::thread, More...>;
layout const tensors{{"first", 40}, {"second", 300'000}, {"third", 5'000}};

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error("not so: " + what);
}
template <class Trainer> void start(Trainer& train) {
    train.start(0, [](std::size_t i, std::span<float> into) {
        for (std::size_t at = 0; at < into.size(); ++at) into[at] = static_cast<float>(at % 1000 + i);
    });
}
/// `waits`: the trainer, or its work in gaps.
template <class Trainer, class Waits> void run_step(Trainer& train, Waits& waits, int step) {
    for (std::size_t i = 0; i < train.size(); ++i) {
        std::span<float> const into = train.tensor(i);
        for (std::size_t at = 0; at < into.size(); ++at)
            into[at] = static_cast<float>((at * 7 + i * 3 + static_cast<std::size_t>(step) * 11) % 64) - 20;
        train.ready(i);
    }
    waits.wait();
}
template <class Trainer> std::vector<float> weights_of(Trainer& train) {
    std::vector<float> all;
    for (std::size_t i = 0; i < train.size(); ++i) {
        auto const one = train.weights(i);
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}
std::span<std::byte const> bytes_of(int const& number) { return std::as_bytes(std::span(&number, 1)); }
herring::launch_options nodes(std::vector<std::string> names) {
    herring::launch_options options;
    options.nodes = std::move(names);
    return options;
}

/// Trains on while the checkpoint of step 5 is written in the gaps: those of rank 0 while rank 1 computes for longer, and then the other
/// way round.
template <class Trainer>
void write_in_gaps(world& w, std::string const& at_once, std::string const& in_gaps) {
    Trainer train(w, tensors);
    start(train);
    int steps = 0;
    for (; steps < 5; ++steps) run_step(train, train, steps);
    train.save(at_once, bytes_of(steps));
    herring::gap_checkpoint checkpoint(train);
    require(!checkpoint.under_way() && !checkpoint.next(), "nothing to do before begin");
    checkpoint.begin(in_gaps, bytes_of(steps));
    require(checkpoint.under_way() && !std::filesystem::exists(in_gaps + "/herring.manifest"),
            "it is in force when it is whole");
    auto work = train.in_gaps(checkpoint);
    for (int const slow : {w.size() - 1, 0}) {
        bool written = false; // by the others
        for (int most = 0; !written && most < 200; ++most) {
            for (int i = 0; i < 10; ++i, ++steps) {
                if (w.rank() == slow) std::this_thread::sleep_for(4ms);
                run_step(train, work, steps);
            }
            written = true;
            auto const mine = static_cast<std::byte>(w.rank() == slow || checkpoint.written());
            for (auto const& one : w.all_gather({&mine, 1})) written = written && one[0] == std::byte{1};
        }
    }
    require(work.report().quanta > 0 && work.report().used > 0ns,
            "gaps were used: " + to_string(work.report()));
    require(checkpoint.written() && checkpoint.failed() == nullptr, "gaps were enough");
    w.barrier();
    require(!std::filesystem::exists(in_gaps + "/herring.manifest"), "all ranks finish it");
    checkpoint.finish();
    require(!checkpoint.under_way(), "it has ended");
    w.barrier();
    require(files_of(at_once) == files_of(in_gaps), "the bytes are those of a save at that step");

    // The next one is of now; it has the same memory.
    auto const now = weights_of(train);
    checkpoint.begin(in_gaps, bytes_of(steps));
    run_step(train, work, steps);
    checkpoint.finish(); // writes what is left
    int found = 0;
    std::memcpy(&found, train.load(in_gaps).data(), sizeof found);
    require(found == steps, "the bytes of that step");
    require(weights_of(train) == now, "the weights of that step");
}
template <class Trainer> int trains(std::vector<std::string> names) {
    scratch_folder const at_once, in_gaps;
    auto const ranks = static_cast<int>(names.size());
    return herring::launch(
        ranks,
        [&](world& w) {
            write_in_gaps<Trainer>(w, at_once.path(), in_gaps.path());
            return 0;
        },
        nodes(std::move(names)));
}
bool too_few_cores() { return std::thread::hardware_concurrency() < 2; }

TEST_CASE("gap_checkpoint: written in gaps it has the bytes of a save at that step") {
    if (too_few_cores()) return;
    CHECK(trains<trainer_of<herring::optimizer::adamw>>({"a", "b"}) == 0);
    CHECK(trains<trainer_of<herring::optimizer::adamw, herring::intra_node::shared_memory>>({"a", "a"}) == 0);
    CHECK(trains<trainer_of<herring::optimizer::sgd>>({"a", "b"}) == 0);
}

TEST_CASE("gap_checkpoint: a disk that is full on one rank ends no step, and finish throws on all; the next "
          "one is whole") {
    if (too_few_cores()) return;
    scratch_folder const folder;
    using trainer = trainer_of<herring::optimizer::adamw>;
    CHECK(
        herring::launch(
            2,
            [&](world& w) {
                trainer train(w, tensors);
                start(train);
                int steps = 0;
                for (; steps < 2; ++steps) run_step(train, train, steps);
                train.save(folder.path(), bytes_of(steps));
                auto const first = files_of(folder.path());
                herring::gap_checkpoint checkpoint(train);
                rlimit usual{};
                ::getrlimit(RLIMIT_FSIZE, &usual);
                std::signal(SIGXFSZ, SIG_DFL); // would end the process
                rlimit small = usual;
                small.rlim_cur = 200'000;
                run_step(train, train, steps++);
                w.barrier();
                if (w.rank() == 1) ::setrlimit(RLIMIT_FSIZE, &small);
                checkpoint.begin(folder.path(), bytes_of(steps));
                while (checkpoint.next()) {
                }
                run_step(train, train, steps++);
                require((checkpoint.failed() != nullptr) == (w.rank() == 1), "the rank knows before");
                try {
                    checkpoint.finish();
                    require(false, "a full disk is told");
                } catch (herring::error const& why) {
                    std::string const text = why.what();
                    require(why.code() == herring::errc::no_resources && why.peer() == 1 &&
                                text.find("herring-3-2.1: it cannot be written: File too large") != text.npos,
                            "it is told so: " + text);
                }
                ::setrlimit(RLIMIT_FSIZE, &usual);
                require(!checkpoint.under_way(), "it has ended");
                w.barrier();
                require(files_of(folder.path()) == first, "nothing is left, and the one before is in force");
                w.barrier();
                auto const now = weights_of(train);
                checkpoint.begin(folder.path(), bytes_of(steps));
                run_step(train, train, steps);
                checkpoint.finish();
                train.load(folder.path());
                require(weights_of(train) == now, "the next one is whole");
                return 0;
            },
            nodes({"a", "b"})) == 0);
}

TEST_CASE("gap_checkpoint: a rank without memory for a copy throws with all, and not alone; the next one is "
          "whole") {
    scratch_folder const folder;
    using herring::detail::checkpoints::tensor_memory;
    constexpr auto too_much = std::size_t{1} << 50;
    constexpr bool ends_nothing = !HERRING_TEST_ASAN && !HERRING_TEST_TSAN; // to ask them for as much does
    CHECK(herring::launch(
              2,
              [&](world& w) {
                  layout const two{{"first", 1000}, {"second", 1000}};
                  herring::detail::checkpoint_kind const kind{
                      .element = "float",
                      .optimizer = "none",
                      .groups = 1,
                      .group_values = 0,
                      .tensors = two,
                      .shape = {.weight_bytes = 4, .number_bytes = 4, .states = 0, .stride_bytes = 0}};
                  std::vector<float> weights(1000, 1.0f);
                  tensor_memory owned{.tensor = static_cast<std::size_t>(w.rank()),
                                      .elements = weights.size(),
                                      .weights = reinterpret_cast<std::byte*>(weights.data())};
                  std::vector<std::byte> const user(10);
                  herring::detail::saved_in_gaps saved(w.rank());
                  auto const told_by_all = [&](auto&& call) {
                      try {
                          call();
                      } catch (herring::error const& why) {
                          require(why.code() == herring::errc::no_resources && why.peer() == 1,
                                  std::string("it names rank 1: ") + why.what());
                          require(!saved.under_way(), "none is under way");
                          return;
                      }
                      require(false, "all ranks throw");
                  };
                  auto const begin = [&](std::span<std::byte const> bytes) {
                      saved.begin(w, folder.path(), kind, {}, {&owned, 1}, bytes);
                  };
                  if (w.rank() == 1) owned.elements = too_much;
                  begin(user);
                  require((saved.part().how().what == herring::errc::ok) == (w.rank() == 0),
                          "the rank knows before");
                  told_by_all([&] { saved.finish(w, kind); });
                  owned.elements = weights.size();
                  if (ends_nothing)
                      told_by_all([&] {
                          begin(w.rank() == 1 ? std::span<std::byte const>(user.data(), too_much) : user);
                      });
                  begin(user);
                  saved.finish(w, kind);
                  w.barrier();
                  auto const found = files_of(folder.path());
                  require(found.size() == 4 && found.contains("herring.manifest"), "two parts, and two more");
                  return 0;
              },
              nodes({"a", "b"})) == 0);
}

TEST_CASE("gap_checkpoint: calls that do not fit, and folders that are not there") {
    scratch_folder const folder;
    world alone;
    herring::reducer<float, herring::transport::tcp, herring::optimizer::adamw> train(alone, tensors);
    herring::gap_checkpoint checkpoint(train);
    auto const code_of = [](auto&& call) {
        try {
            call();
        } catch (herring::error const& why) {
            return why.code();
        }
        return herring::errc::ok;
    };
    CHECK(code_of([&] { checkpoint.begin(folder.path()); }) == herring::errc::bad_state); // no weights
    start(train);
    CHECK(code_of([&] { checkpoint.finish(); }) == herring::errc::bad_state);
    CHECK(code_of([&] { checkpoint.begin(folder.path() + "/none"); }) == herring::errc::bad_argument);
    CHECK(!checkpoint.under_way());
    checkpoint.begin(folder.path());
    CHECK(code_of([&] { checkpoint.begin(folder.path()); }) == herring::errc::bad_state);
    {
        scratch_folder const elsewhere;
        CHECK(code_of([&] { train.save(folder.path() + "/."); }) == herring::errc::bad_state);
        CHECK(code_of([&] { train.save(elsewhere.path()); }) == herring::errc::ok);
        herring::gap_checkpoint another(train);
        CHECK(code_of([&] { another.begin(folder.path()); }) == herring::errc::bad_state);
        another.begin(elsewhere.path()); // and is destroyed before it is whole
        CHECK(code_of([&] { train.save(elsewhere.path()); }) == herring::errc::bad_state);
    }
    train.ready(0);
    CHECK(code_of([&] { checkpoint.finish(); }) == herring::errc::bad_state);
    train.ready(1);
    train.ready(2);
    train.wait();
    CHECK(checkpoint.under_way());
    checkpoint.finish();
    CHECK(std::filesystem::exists(folder.path() + "/herring-0-1.0"));
    CHECK(code_of([&] { train.save(folder.path()); }) == herring::errc::ok);
    // One that is destroyed before it is whole leaves the folder to others.
    {
        herring::gap_checkpoint another(train);
        another.begin(folder.path());
    }
    CHECK(code_of([&] { train.save(folder.path()); }) == herring::errc::ok);
}

} // namespace gap_checkpoint_test

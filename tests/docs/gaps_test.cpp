// herring: the code of docs/gaps.md, which a checkpoint comes out of.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gap_checkpoint.hpp"
#include "herring/herring.hpp"
#include "herring/in_gaps.hpp"
#include "herring/launch.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/progress/progress.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"

#include "checkpoint_files.hpp"
#include "doctest/doctest.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace gaps_test {

// [snippet gaps]
using trainer = herring::reducer<float, herring::transport::tcp, herring::optimizer::adamw,
                                 herring::progress::thread>; // moves the bytes while this thread works

void train_on(trainer& train, std::string const& folder, int steps) {
    herring::gap_checkpoint checkpoint(train); // has the memory for a copy
    auto work = train.in_gaps(checkpoint);     // any task: quantum(), next()
    for (int step = 0; step < steps; ++step) {
        for (std::size_t i = 0; i < train.size(); ++i) {
            std::ranges::fill(train.tensor(i), 0.5f); // backward
            train.ready(i);
        }
        work.wait(); // in place of train.wait()
        if (step % 100 == 99) {
            if (checkpoint.under_way()) checkpoint.finish(); // that of 100 steps ago is in force now
            checkpoint.begin(folder, std::as_bytes(std::span(&step, 1)));
        }
    }
    if (checkpoint.under_way()) checkpoint.finish();
    std::printf("%s\n", to_string(work.report()).c_str());
}
// [end]

// [snippet task]
/// Adds up a table, 4096 numbers at a time.
class sum_in_gaps {
  public:
    explicit sum_in_gaps(std::span<double const> table) : left_(table) {}
    double sum() const noexcept { return sum_; }
    bool done() const noexcept { return left_.empty(); }

    std::chrono::nanoseconds quantum() const noexcept { return std::chrono::microseconds(20); }
    bool next() noexcept {
        if (left_.empty()) return false; // nothing to do now
        auto const some = left_.first(std::min<std::size_t>(left_.size(), 4096));
        for (double const x : some) sum_ += x;
        left_ = left_.subspan(some.size());
        return true;
    }

  private:
    std::span<double const> left_;
    double sum_ = 0;
};
// [end]
static_assert(herring::gap_task<sum_in_gaps>);

TEST_CASE("documents: a checkpoint in gaps") {
    if (std::thread::hardware_concurrency() < 2) return;
    herring::tests::scratch_folder const folder;
    CHECK(herring::launch(2, [&](herring::world& world) {
              trainer train(world, {{"fc.weight", 10'000}, {"fc.bias", 10}});
              train.start(0, [](std::size_t, std::span<float> weights) { std::ranges::fill(weights, 1.0f); });
              train_on(train, folder.path(), 210);
              int step = 0;
              auto const bytes = train.load(folder.path());
              if (bytes.size() == sizeof step)
                  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&step));
              return step == 199 ? 0 : 1;
          }) == 0);
    CHECK(std::filesystem::exists(folder.path() + "/herring-200-2.0"));
}

TEST_CASE("documents: a task for gaps") {
    std::vector<double> const table(10'000, 0.5);
    sum_in_gaps sum(table);
    int quanta = 0;
    while (sum.next()) ++quanta;
    CHECK(quanta == 3);
    CHECK(sum.done());
    CHECK(sum.sum() == 5'000);
}

} // namespace gaps_test

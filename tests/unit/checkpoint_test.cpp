// herring: tests of checkpoint.hpp: one rank saves and loads; tests/conformance and tests/multi_process have the rest.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint.hpp"

#include "doctest/doctest.h"

#include "checkpoint_files.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace checkpoint_test {

using trainer = herring::reducer<double, herring::transport::inproc, herring::optimizer::momentum>;

void run_step(trainer& train, double gradient) {
    for (std::size_t i = 0; i < train.size(); ++i) {
        std::ranges::fill(train.tensor(i), gradient);
        train.ready(i);
    }
    train.wait();
}

} // namespace checkpoint_test

TEST_CASE("checkpoint: one rank, alone") {
    using namespace checkpoint_test;
    herring::tests::scratch_folder const folder;
    herring::world alone;
    trainer train(alone, {{"a", 3}, {"b", 5}});
    train.start(0, [](std::size_t i, std::span<double> into) { std::ranges::fill(into, double(i)); });
    run_step(train, 1);
    std::vector<std::byte> const bytes(3, std::byte{7});
    train.save(folder.path(), bytes);
    auto const all = train.state();
    REQUIRE(all.size() == 4); // of two tensors, weights and the one number of state
    CHECK(all[0].tensor == 0);
    CHECK(all[0].array == 0);
    CHECK(all[0].offset == 0);
    CHECK(all[0].span.size() == 3);
    CHECK(all[0].span.data() == train.weights(0).data());
    CHECK(all[3].tensor == 1);
    CHECK(all[3].array == 1);
    CHECK(all[3].span[4] == 1);
    run_step(train, 1);
    std::vector<double> const due(train.weights(1).begin(), train.weights(1).end());
    CHECK(train.load(folder.path()) == bytes);
    CHECK(train.weights(1)[0] == 1 - 0.01);
    run_step(train, 1);
    CHECK(std::ranges::equal(train.weights(1), due));
}

TEST_CASE(
    "checkpoint: what set would refuse is refused, as are steps that nobody took, and changes nothing") {
    using namespace checkpoint_test;
    namespace checkpoints = herring::detail::checkpoints;
    herring::tests::scratch_folder const folder;
    herring::world alone;
    trainer train(alone, {{"a", 3, 0}, {"b", 5, 1}});
    train.start(0, [](std::size_t i, std::span<double> into) { std::ranges::fill(into, double(i)); });
    train.save(folder.path());
    run_step(train, 1);
    double const weight = train.weights(0)[0], rate = train.hyper(1).rate;

    std::string const file = folder.path() + "/" + checkpoints::manifest::name;
    checkpoints::manifest saved;
    REQUIRE(checkpoints::read_manifest(herring::tests::bytes_of(file), saved) == nullptr);
    REQUIRE(saved.groups.size() == 2);
    auto const refusal_of = [&](auto&& change) -> std::string {
        checkpoints::manifest other = saved;
        change(other);
        herring::tests::put_bytes(file, checkpoints::write_manifest(other)); // its checksum is right
        try {
            train.load(folder.path());
        } catch (herring::error const& why) {
            CHECK_MESSAGE(why.code() == herring::errc::bad_argument, why.what());
            return why.what();
        }
        return "no error";
    };
    using limits = std::numeric_limits<double>;
    for (double const wrong : {limits::quiet_NaN(), limits::infinity(), -limits::infinity(), -1.0}) {
        std::string const said = refusal_of([&](checkpoints::manifest& m) { m.groups[1][0] = wrong; });
        CHECK_MESSAGE(said.find("hyper::rate of group 1 is ") != std::string::npos, said);
    }
    for (std::uint64_t const wrong : {~std::uint64_t{0}, (std::uint64_t{1} << 53) + 1}) {
        std::string const said = refusal_of([&](checkpoints::manifest& m) { m.steps = wrong; });
        CHECK_MESSAGE(said.find(std::to_string(wrong) + " steps") != std::string::npos, said);
    }
    CHECK(train.weights(0)[0] == weight);
    CHECK(train.hyper(1).rate == rate);
    CHECK(refusal_of([](checkpoints::manifest&) {}) == "no error");
    CHECK(train.weights(0)[0] == 0);
}

// herring: the code of docs/timeline.md, at work.
// SPDX-License-Identifier: Apache-2.0
//
// What stands between [snippet] and [end] is shown there; tests/docs/check_snippets.sh compares.
#include "doctest/doctest.h"

#include <herring/herring.hpp>
#include <herring/launch.hpp>
#include <herring/trace/perfetto.hpp>
#include <herring/trace/prometheus.hpp>
#include <herring/trace/timeline.hpp>
#include <herring/transport/tcp.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

// [snippet timeline]
using traced = herring::reducer<float, herring::transport::tcp, herring::update::average,
                                herring::trace::timeline<1 << 16>>; // the newest 65,536 events of each rank

void train(herring::world& world, herring::layout const& layout, std::string const& folder) {
    traced reduce(world, layout);
    for (int step = 0; step < 100; ++step) {
        for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
        reduce.wait();
    }
    herring::write_perfetto(folder + "/steps.pftrace", reduce.trace()); // all ranks call; rank 0 writes
    herring::timeline_report const own = reduce.trace().report();       // numbers of this rank
    std::printf("%s", own.text().c_str());
    herring::write_prometheus(folder + "/rank-" + std::to_string(world.rank()) + ".prom", own);
}
// [end]

} // namespace

TEST_CASE("documents: a picture of all ranks, and numbers of each") {
    std::string folder = "/tmp/herring-docs-timeline-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    herring::layout const layout{{"a", 1000}, {"b", 50}};
    CHECK(herring::launch(2, [&](herring::world& world) { train(world, layout, folder); },
                          {.nodes = {"a", "b"}}) == 0);
    for (char const* const file : {"/steps.pftrace", "/rank-0.prom", "/rank-1.prom"})
        CHECK(std::filesystem::file_size(folder + file) > 1000);
    std::filesystem::remove_all(folder);
}

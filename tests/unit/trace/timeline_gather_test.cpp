// herring: tests of trace/timeline_gather.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline_gather.hpp"

#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/serve.hpp"
#include "herring/transport/inproc.hpp"

#include "doctest/doctest.h"

#include <stdexcept>

TEST_CASE("gather: rank 0 has the timelines of all, in their order, also where they have different sizes") {
    using traced = herring::reducer<float, herring::transport::inproc, herring::update::sum,
                                    herring::trace::timeline<1 << 15>>;
    herring::launch_threads(3, [](herring::world& ranks) {
        traced reduce(ranks, herring::layout{{"a", 100}});
        reduce.ready(0);
        reduce.wait();
        // More than one piece of the all-gathers.
        if (ranks.rank() == 1)
            for (int i = 0; i < 16'000; ++i)
                reduce.trace().record(herring::trace_event::credit_stall, {.peer = 0});
        auto const all = herring::gather_timelines(reduce.trace());
        if (all.size() != (ranks.rank() == 0 ? 3u : 0u)) throw std::runtime_error("on rank 0 alone");
        for (std::size_t r = 0; r < all.size(); ++r)
            if (all[r].rank != static_cast<int>(r) || !all[r].is_aligned() ||
                (all[r].records.size() > 16'000) != (r == 1))
                throw std::runtime_error("a rank's own timeline");
        ranks.barrier();
    });
}

TEST_CASE("gather: servers are in no other collective while they serve, so it is refused at once") {
    using namespace herring;
    using traced =
        reducer<float, transport::inproc, placement::dedicated, update::sum, trace::timeline<1 << 10>>;
    launch_options how;
    how.roles = {role::worker, role::worker, role::server};
    CHECK(launch_threads(
              3,
              [](world& ranks) {
                  layout const tensors{{"a", 100}};
                  if (ranks.rank() == 2) return serve<traced>(ranks, tensors);
                  traced reduce(ranks, tensors);
                  reduce.ready(0);
                  reduce.wait();
                  CHECK_THROWS_WITH_AS(gather_timelines(reduce.trace()),
                                       doctest::Contains("HERRING_TIMELINE_DIR"), error);
              },
              how) == 0);
}

TEST_CASE("gather: a timeline without a reducer is refused") {
    herring::trace::timeline<> none;
    CHECK_THROWS_AS(herring::gather_timelines(none), herring::error);
}

// herring: servers of their own in the bench: workers reduce a tensor in place, and ranks whose role is server hold the shards.
// SPDX-License-Identifier: Apache-2.0
//
//   servers_bench --placement dedicated|optimal --sizes 16777216 --suite NAME [--out FILE] [harness.hpp's options]
//                                 joins by HERRING_RANK, _SIZE and _ADDR; HERRING_ROLE=server makes a rank a server
//
// Workers meet and compare their times through the reducer itself: a collective of the world's would wait for the servers.
#include "harness.hpp"
#include "worker_team.hpp"

#include <herring/herring.hpp>
#include <herring/join.hpp>
#include <herring/placement/dedicated.hpp>
#include <herring/serve.hpp>
#include <herring/transport/tcp.hpp>

#include <cstdio>

namespace {

template <class Placement> void sweep(herring::world& world, bench::options const& opt, char const* name) {
    using reducer =
        herring::reducer<float, herring::transport::tcp_over_slow_links, herring::update::average, Placement>;
    for (auto const bytes : opt.sizes()) {
        herring::layout const tensors{{"tensor", bytes / sizeof(float)}};
        if (world.role() == herring::role::server) {
            herring::serve<reducer>(world, tensors);
            continue;
        }
        reducer reduce(world, tensors);
        auto const run = [&reduce] {
            reduce.ready(0);
            reduce.wait();
        };
        bench::measure(bench::team_of_workers(world, reduce), opt,
                       {name, bytes, {reduce.tensor(0)}, true, {{"ready + wait", run}}});
    }
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    try {
        herring::world world = herring::join();
        if (opt.text("placement", "dedicated") == "optimal")
            sweep<herring::placement::optimal>(world, opt, "Herring, optimal");
        else
            sweep<herring::placement::dedicated>(world, opt, "Herring, dedicated servers");
        return 0;
    } catch (herring::error const& failed) {
        std::fprintf(stderr, "servers_bench: %s\n", failed.what());
        return 1;
    }
}

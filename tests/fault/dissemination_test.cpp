// herring: a rank that is killed while tiny buckets are forwarded from node to node is named to all others.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/dissemination_suite.hpp"
#include "scene.hpp"

#include <random>
#include <thread>

using namespace fault;

namespace {

template <class... More>
using forwarding = herring::reducer<float, herring::conformance::with_dear_messages<herring::transport::tcp>,
                                    herring::update::sum, herring::fusion::per_tensor, More...>;

template <class Reducer> void kill_one_of(int nodes, int local, int victim) {
    std::mt19937 random(static_cast<unsigned>(nodes * 16 + victim));
    setup s;
    s.ranks = nodes * local;
    s.nodes = herring::conformance::even_nodes(nodes, local);
    s.name = std::to_string(nodes) + " nodes of " + std::to_string(local);
    for (bool const between : {false, true}) {
        std::chrono::microseconds const delay(static_cast<long>(random() % 8'000));
        report const seen = play(s, [&](world& w, board& b) {
            Reducer reduce(w, layout{{"tiny", 3}, {"small", 300}, {"largest", 1024}});
            for (herring::bucket const& each : reduce.plan().buckets)
                require(each.path == herring::route::dissemination, "every bucket is forwarded");
            int number = 0;
            for (; number < 3; ++number) step(reduce, w, number);
            if (w.rank() == victim && !between)
                std::thread([&b, delay] {
                    std::this_thread::sleep_for(delay); // waits for nothing: makes the moment arbitrary
                    b.die();
                }).detach();
            for (;; ++number) {
                if (w.rank() == victim && between) { // the others have its first bucket alone
                    fill(reduce, w, number, 0);
                    reduce.ready(0);
                    for (int i = 0; i < 100; ++i) reduce.poll();
                    b.die();
                }
                step(reduce, w, number);
            }
        });
        check_named(s, seen, victim, {errc::peer_lost});
    }
}

} // namespace

TEST_CASE("dissemination: a killed rank is named, every rank a node of its own") {
    kill_one_of<forwarding<>>(4, 1, 2);
    kill_one_of<forwarding<>>(5, 1, 0);
    kill_one_of<forwarding<>>(8, 1, 7);
}
TEST_CASE("dissemination: a killed rank is named, on nodes of two") {
    kill_one_of<forwarding<herring::intra_node::shared_memory>>(4, 2, 3);
    kill_one_of<forwarding<herring::intra_node::shared_memory>>(5, 2, 8);
}

// herring: element types and rules of one's own between processes: TCP and shared memory, to the bits of a serial fold.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/rules_suite.hpp"

#include "herring/launch.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <string>

using namespace rules;

namespace {

// Small sizes, so that small tensors take every route, in many chunks.
using small_tcp = transport::basic_tcp<transport::tcp_tuning{.chunk_bytes = 4096,
                                                             .window_bytes = 12288,
                                                             .loopback_chunk_bytes = 4096,
                                                             .loopback_window_bytes = 12288,
                                                             .one_hop_bytes = 2048,
                                                             .one_hop_bytes_two_nodes = 9000}>;

/// One to four processes: alone, on one node, on even and uneven nodes, one a node. With two nodes and more, values up to
/// one_hop_bytes_two_nodes take one hop and all others two.
template <class T, class Update, class... Policies> void every_route() {
    for (names const& nodes : {names{"a"}, names{"a", "b"}, names{"a", "a", "a"}, names{"a", "a", "b"},
                               names{"a", "b", "b", "c"}, names{"a", "a", "b", "b"}}) {
        launch_options options;
        options.nodes = nodes;
        options.timeout = std::chrono::seconds(120);
        std::string text;
        for (auto const& node : nodes) text += node;
        INFO("nodes: ", text);
        auto const n = static_cast<int>(nodes.size());
        CHECK(launch(n, work<T, Update, small_tcp, Policies...>, options) == 0);
        CHECK(launch(n, work<T, Update, small_tcp, shared, Policies...>, options) == 0);
    }
}

} // namespace

TEST_CASE("rules between processes: structs, one by one") {
    every_route<triple, counted_triples>();
    every_route<wide_struct, spread_out, fusion::per_tensor>();
    every_route<flags, spread_out>();
}
TEST_CASE("rules between processes: a value with its index, statistics, complex numbers") {
    every_route<indexed<double>, update::min>();
    every_route<statistics<double>, update::sum, progress::thread>();
    every_route<std::complex<double>, update::product>();
}
TEST_CASE("rules between processes: numbers of other types") { every_route<long double, update::sum>(); }

TEST_CASE("rules between processes: different structs of one size are told so") {
    launch_options options;
    options.nodes = {"a", "b"};
    auto const construct = [](world& ranks) {
        try {
            if (ranks.rank() == 0)
                reducer<triple, small_tcp, spread_out>{ranks};
            else
                reducer<other_triple, small_tcp, spread_out>{ranks};
        } catch (error const& why) {
            bool const named = std::string(why.what()).find("triple") != std::string::npos;
            return why.code() == errc::mismatch && named ? 0 : 1;
        }
        return 1;
    };
    CHECK(launch(2, construct, options) == 0);
}

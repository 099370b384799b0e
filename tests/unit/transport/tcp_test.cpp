// herring: tests of transport/tcp.hpp; tests/conformance has the suite, tests/fault what goes wrong.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp.hpp"

#include "herring/herring.hpp"
#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <boost/asio/post.hpp>

using namespace herring;

TEST_CASE("tcp: tuning is part of the type, and the loopback has its own") {
    using slow = transport::basic_tcp<transport::tcp_tuning{.chunk_bytes = 16_KiB, .window_bytes = 64_KiB}>;
    CHECK(slow::tuning.chunk_bytes == 16_KiB);
    CHECK(slow::same_host_tuning.chunk_bytes == transport::tcp::same_host_tuning.chunk_bytes);
    CHECK(transport::tcp::keeps_order);
    CHECK_FALSE(transport::basic_tcp<transport::tcp_tuning{.connections = 2}>::keeps_order);
}

TEST_CASE("tcp: waits in an io_context of the caller's, whose handlers go on meanwhile") {
    int const ended = launch(2, [](world& ranks) {
        boost::asio::io_context context(1);
        reducer<float, update::sum, transport::tcp, waiting::block> reduce(ranks, layout{{"t", 1000}},
                                                                           context);
        int ran = 0;
        if (ranks.rank() == 0) {
            // Ready only once this handler has run, which only a wait of this rank's own can bring about.
            boost::asio::post(context, [&ran] { ++ran; });
            for (float& x : reduce.tensor(0)) x = 1;
            reduce.ready(0);
        } else {
            for (auto const until = clock::now() + std::chrono::milliseconds(20); clock::now() < until;) {
            }
            for (float& x : reduce.tensor(0)) x = 2;
            reduce.ready(0);
        }
        reduce.wait();
        if (reduce.tensor(0)[999] != 3) return 1;
        return ranks.rank() == 1 || ran == 1 ? 0 : 2;
    });
    CHECK(ended == 0);
}

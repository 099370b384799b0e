// herring: tests of transport/tcp_asio.hpp; tests/multi_process/lifetime_test.cpp has handlers that throw and that call.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/tcp_asio.hpp"

#include "herring/herring.hpp"
#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <exception>
#include <thread>
#include <vector>

using namespace herring;

TEST_CASE("tcp_asio: waits in an io_context of the caller's, whose handlers go on meanwhile") {
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

namespace {
using namespace std::chrono_literals;

struct loop_of_ones_own : boost::asio::io_context {
    using boost::asio::io_context::io_context;
};

/// Rank 1 leaves in order; rank 0 is told, its own timers go on, and the io_context outlives the transport.
int one_leaves(world& ranks) {
    loop_of_ones_own context;
    std::vector<int> const peers{1 - ranks.rank()};
    int ticks = 0;
    bool lost = false;
    {
        transport::tcp moved(ranks,
                             {.peers = peers,
                              .receives_per_peer = 4,
                              .sends_per_peer = 4,
                              .largest_message = 64,
                              .timeout = 10s},
                             context);
        if (!moved.runs_handlers()) return 1;
        if (ranks.rank() == 1) return 0;
        for (time_point const until = clock::now() + 20s; !lost && clock::now() < until;) {
            moved.wait(clock::now() + 10s);
            moved.poll([&](completion const& c) noexcept { lost = lost || c.what == completion::lost; });
        }
        boost::asio::steady_timer timer(context, 1ms);
        timer.async_wait([&](boost::system::error_code) { ++ticks; });
        for (time_point const until = clock::now() + 20s; ticks == 0 && clock::now() < until;)
            moved.wait(clock::now() + 10s);
        moved.wake(); // nobody sleeps; it is taken back at the end
    }
    context.restart();
    context.run();
    return lost && ticks == 1 ? 0 : 2;
}

/// Many sleeps that another thread ends.
int woken(world& ranks) {
    loop_of_ones_own context;
    std::vector<int> const peers{1 - ranks.rank()};
    transport::tcp moved(
        ranks,
        {.peers = peers, .receives_per_peer = 4, .sends_per_peer = 4, .largest_message = 64, .timeout = 10s},
        context);
    for (int n = 0; n < 20; ++n) {
        time_point const before = clock::now();
        std::thread other([&] { moved.wake(); });
        moved.wait(before + 20s);
        other.join();
        if (clock::now() - before > 10s) return 1;
    }
    ranks.barrier();
    return 0;
}

/// A handler throws in a wait whose exception nobody takes, or while the transport is destroyed: the next run of the
/// io_context throws it, once.
int thrown_late(world& ranks) {
    for (bool const at_the_end : {false, true}) {
        loop_of_ones_own context;
        std::vector<int> const peers{1 - ranks.rank()};
        {
            transport::tcp moved(ranks,
                                 {.peers = peers,
                                  .receives_per_peer = 4,
                                  .sends_per_peer = 4,
                                  .largest_message = 64,
                                  .timeout = 10s},
                                 context);
            boost::asio::post(context, [] { throw 7; });
            if (at_the_end)
                moved.wake(); // behind the handler: the destructor runs both
            else
                for (time_point const until = clock::now() + 20s;
                     !moved.has_exception() && clock::now() < until;)
                    moved.wait(clock::now() + 10s);
            if (moved.has_exception() == at_the_end) return 1;
        }
        int thrown = 0;
        for (int runs = 0; runs < 2; ++runs) {
            context.restart();
            try {
                context.run();
            } catch (int what) {
                if (what != 7) return 2;
                ++thrown;
            }
        }
        if (thrown != 1) return 3;
        ranks.barrier();
    }
    return 0;
}
} // namespace

TEST_CASE("tcp_asio: what a handler throws too late for a call is thrown by the next run of the io_context") {
    CHECK(launch(2, thrown_late) == 0);
}
TEST_CASE("tcp_asio: a peer leaves, and the program's handlers go on") { CHECK(launch(2, one_leaves) == 0); }
TEST_CASE("tcp_asio: another thread ends a sleep") { CHECK(launch(2, woken) == 0); }

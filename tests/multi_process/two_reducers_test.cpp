// herring: several reducers on one world: by turns, on threads of a rank, of several kinds, and when one of them ends.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

using namespace herring;

namespace {

using transport::tcp;
using shared = intra_node::shared_memory;
using averages = reducer<float, tcp, shared, fusion::balanced_buffer<32_KiB, 4_KiB>>;
using sums = reducer<std::int32_t, tcp, shared, update::sum>;
using largest = reducer<double, tcp, update::max, progress::thread>;

layout const tensors{{"bias", 7}, {"empty", 0}, {"weight", 40'001}, {"head", 3000}};

launch_options on(std::vector<std::string> nodes) {
    launch_options options;
    options.nodes = std::move(nodes);
    options.timeout = std::chrono::seconds(120);
    return options;
}

/// One step; returns how many elements are wrong. `sum`: what n ranks with rank + step add up to.
template <class Reducer> void begin(Reducer& reduce, int rank, int step) {
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        for (auto& x : reduce.tensor(i)) x = static_cast<typename Reducer::element_type>(rank + step);
        reduce.ready(i);
    }
}
template <class Reducer> int wrong(Reducer& reduce, double expected) {
    int count = 0;
    for (std::size_t i = 0; i < reduce.size(); ++i)
        for (auto const x : reduce.tensor(i)) count += static_cast<double>(x) != expected;
    return count;
}
double average_of(int n, int step) { return (n - 1) / 2.0 + step; }

int interleaved(world& ranks) {
    averages a(ranks, tensors);
    sums s(ranks, tensors);
    largest m(ranks, tensors);
    int const n = ranks.size();
    int bad = 0;
    for (int step = 0; step < 20; ++step) {
        // The order of `ready` among reducers is each rank's own affair; that of what waits is not.
        if ((ranks.rank() + step) % 2 == 0) {
            begin(a, ranks.rank(), step);
            begin(s, ranks.rank(), step);
            begin(m, ranks.rank(), step);
        } else {
            begin(m, ranks.rank(), step);
            begin(s, ranks.rank(), step);
            begin(a, ranks.rank(), step);
        }
        if (step % 2 == 0) {
            a.wait();
            s.wait();
        } else {
            s.wait();
            a.wait();
        }
        m.wait();
        bad += wrong(a, average_of(n, step)) + wrong(s, average_of(n, step) * n) + wrong(m, n - 1 + step);
        std::vector<std::int32_t> more(10'000, ranks.rank());
        s.all_reduce(more);
        for (std::int32_t const x : more) bad += x != n * (n - 1) / 2;
    }
    return bad == 0 ? 0 : 1;
}

int on_threads(world& ranks) {
    averages a(ranks, tensors);
    sums s(ranks, tensors);
    int const n = ranks.size();
    std::atomic<int> bad = 0;
    std::thread other([&] {
        for (int step = 0; step < 30; ++step) {
            begin(s, ranks.rank(), step);
            s.wait();
            bad += wrong(s, average_of(n, step) * n);
        }
    });
    for (int step = 0; step < 30; ++step) {
        begin(a, ranks.rank(), step);
        a.wait();
        bad += wrong(a, average_of(n, step));
    }
    other.join();
    return bad == 0 ? 0 : 1;
}

/// One after the other in one place: what the first had is free for the second.
int in_turn(world& ranks) {
    int bad = 0;
    for (int round = 0; round < 5; ++round) {
        averages a(ranks, tensors);
        begin(a, ranks.rank(), round);
        a.wait();
        bad += wrong(a, average_of(ranks.size(), round));
        sums s(ranks, tensors);
        begin(s, ranks.rank(), round);
        s.wait();
        bad += wrong(s, average_of(ranks.size(), round) * ranks.size());
    }
    return bad == 0 ? 0 : 1;
}

/// What ends one reducer ends the world, and so the others.
int one_ends(world& ranks) {
    averages a(ranks, tensors);
    sums s(ranks, tensors);
    std::vector<std::int32_t> x(ranks.rank() == 1 ? 8 : 9);
    try {
        s.all_reduce(x);
        return 1;
    } catch (error const& why) {
        if (why.code() != errc::mismatch && why.code() != errc::peer_failed) return 2;
    }
    try { // what is whole may still end well; what has to wait does not
        for (int step = 0;; ++step) {
            begin(a, ranks.rank(), step);
            a.wait();
        }
    } catch (error const& why) {
        return why.code() == errc::mismatch || why.code() == errc::peer_failed ? 0 : 3;
    }
}

} // namespace

TEST_CASE("several reducers on one world") {
    for (auto const& nodes :
         {std::vector<std::string>{"a", "a"}, {"a", "b"}, {"a", "a", "b", "b"}, {"a", "b", "b"}}) {
        int const ranks = static_cast<int>(nodes.size());
        CHECK(launch(ranks, interleaved, on(nodes)) == 0);
        CHECK(launch(ranks, on_threads, on(nodes)) == 0);
        CHECK(launch(ranks, in_turn, on(nodes)) == 0);
        CHECK(launch(ranks, one_ends, on(nodes)) == 0);
    }
}

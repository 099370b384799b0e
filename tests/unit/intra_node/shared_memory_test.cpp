// herring: tests of intra_node/shared_memory.hpp: regions that correspond, and flags that tell.
// SPDX-License-Identifier: Apache-2.0
#include "herring/intra_node/shared_memory.hpp"

#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <cstring>

using namespace herring;

TEST_CASE("shared_memory: a place in a peer's region is the place that the peer means") {
    int const ended = launch(3, [](world& ranks) {
        intra_node::shared_memory node(ranks, 100'000);
        int const me = ranks.local_rank();
        std::memcpy(node.memory() + 777, &me, sizeof me);
        ranks.barrier();
        for (int l = 0; l < 3; ++l) {
            int seen = -1;
            std::memcpy(&seen, node.peer(l, node.memory() + 777), sizeof seen);
            if (seen != l) return 1;
        }
        ranks.barrier();
        return reinterpret_cast<std::uintptr_t>(node.memory()) % 64 == 0 ? 0 : 2;
    });
    CHECK(ended == 0);
}

TEST_CASE("shared_memory: who has not arrived, not finished, or left, is named") {
    int const ended = launch(2, [](world& ranks) {
        intra_node::shared_memory node(ranks, 64);
        int const other = 1 - ranks.local_rank();
        if (node.first_not_arrived(0) != other || node.first_not_finished(0) != other) return 1;
        ranks.barrier();
        node.arrive(0);
        if (ranks.local_rank() == 0) node.finish(0, true);
        ranks.barrier();
        if (node.first_not_arrived(0) != -1 || node.first_not_arrived(1) != other) return 2;
        if (node.first_not_finished(0) != (ranks.local_rank() == 0 ? 1 : -1)) return 3;
        bool const left = node.has_left(other);
        ranks.barrier();
        return left ? 4 : 0;
    });
    CHECK(ended == 0);
}

TEST_CASE("shared_memory: sleep ends with the news that came since listen, and at its deadline") {
    int const ended = launch(2, [](world& ranks) {
        intra_node::shared_memory node(ranks, 64);
        auto const start = clock::now();
        node.sleep(node.listen(), start + std::chrono::milliseconds(5));
        if (clock::now() - start < std::chrono::milliseconds(4)) return 1;
        ranks.barrier();
        if (ranks.local_rank() == 0) {
            node.arrive(0);
        } else {
            while (node.first_not_arrived(0) >= 0) {
                std::uint32_t const heard = node.listen();
                node.sleep(heard, node.first_not_arrived(0) >= 0 ? clock::now() + std::chrono::seconds(20)
                                                                 : time_point{});
            }
        }
        return clock::now() - start < std::chrono::seconds(10) ? 0 : 2;
    });
    CHECK(ended == 0);
}

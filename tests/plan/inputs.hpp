// herring: layouts, worlds and sizes that the tests of plans share.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_PLAN_INPUTS_HPP
#define HERRING_TESTS_PLAN_INPUTS_HPP

#include "herring/base/bytes.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <random>
#include <vector>

namespace herring::plan_inputs {

using sizes = std::vector<std::size_t>;

inline exchange_tuning small_tuning() {
    return {.chunk_bytes = 4096,
            .window_bytes = 16384,
            .one_hop_bytes = 1024,
            .one_hop_bytes_two_nodes = 8192,
            .local_chunk_bytes = 2048,
            .mailbox_bytes = 512};
}
/// What tcp and shared_memory ask for, about.
inline exchange_tuning usual_tuning() {
    return {.chunk_bytes = 128_KiB,
            .window_bytes = 256_KiB,
            .one_hop_bytes = 16_KiB,
            .one_hop_bytes_two_nodes = 1_MiB,
            .local_chunk_bytes = 64_KiB,
            .mailbox_bytes = 4_KiB};
}

/// Empty tensors, smaller than the number of servers, odd ones, large ones.
inline std::vector<sizes> layouts() {
    std::vector<sizes> made{{},
                            {0},
                            {0, 0, 0},
                            {1},
                            {1, 1, 1, 1, 1},
                            {63},
                            {0, 5, 0, 7, 0},
                            {1009, 2003, 4001, 1},
                            {65'537},
                            {262'144, 99'991},
                            {31, 1'000'003, 0, 17, 300'007}};
    std::mt19937 random(3);
    sizes many;
    for (int i = 0; i < 200; ++i) many.push_back(random() % 5 == 0 ? random() % 20 : random() % 9973);
    made.push_back(many);
    return made;
}

/// Ranks of nodes of these sizes, dealt out in turn.
inline topology uneven(std::vector<int> left) {
    std::vector<int> ids;
    for (bool any = true; any;) {
        any = false;
        for (std::size_t n = 0; n < left.size(); ++n)
            if (left[n]-- > 0) {
                ids.push_back(static_cast<int>(n));
                any = true;
            }
    }
    return topology(ids);
}

/// The ranks of `workers`, and servers before or behind them.
inline topology with_servers(topology const& workers, int servers, bool first) {
    std::vector<int> ids;
    std::vector<role> roles;
    auto const add_servers = [&] {
        ids.insert(ids.end(), static_cast<std::size_t>(servers), 0);
        roles.insert(roles.end(), static_cast<std::size_t>(servers), role::server);
    };
    if (first) add_servers();
    ids.insert(ids.end(), workers.node_of.begin(), workers.node_of.end());
    roles.insert(roles.end(), workers.node_of.size(), role::worker);
    if (!first) add_servers();
    return topology(ids, roles);
}

} // namespace herring::plan_inputs

#endif // HERRING_TESTS_PLAN_INPUTS_HPP

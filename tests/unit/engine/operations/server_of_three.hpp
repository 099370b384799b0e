// herring: the state of an engine on a server of three workers, for tests of what a server does with their messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_UNIT_ENGINE_OPERATIONS_SERVER_OF_THREE_HPP
#define HERRING_TESTS_UNIT_ENGINE_OPERATIONS_SERVER_OF_THREE_HPP

#include "herring/engine/operation.hpp"
#include "herring/engine/state.hpp"
#include "herring/error.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/plan/plan.hpp"
#include "herring/sharding/sharding.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace herring::tests {

/// Rank 1 is the server of workers 0, 2 and 3, each a node. Elements have 4 bytes.
struct server_of_three {
    topology map{{0, 1, 2, 3}, {role::worker, role::server, role::worker, role::worker}};
    plan of = make_plan<fusion::per_tensor, sharding::balanced, placement::dedicated>(
        std::vector<std::size_t>{}, map, 4, 4, {.chunk_bytes = 4096, .window_bytes = 8192});
    std::vector<int> peers{0, 2, 3};
    failure announced{};
    detail::engine_state state{
        {&announced, [](void* to, failure const& why) noexcept { *static_cast<failure*>(to) = why; }},
        1,
        map,
        of,
        peers,
        4};

    /// Hands an operation what the workers have sent of a chunk.
    template <class Operation>
    static void combine(Operation& operation, execution const& e, chunk const& of_all, std::byte const* a,
                        std::byte const* b, std::byte const* c) {
        node_part const parts[] = {{0, a}, {2, b}, {3, c}};
        operation.combine(e, of_all, parts_view{std::span(parts).first(1), std::span(parts).last(2)});
    }
};

} // namespace herring::tests

#endif // HERRING_TESTS_UNIT_ENGINE_OPERATIONS_SERVER_OF_THREE_HPP

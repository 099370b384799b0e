// herring: the function that establishes the data connections of a rank.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_CONNECTIONS_IMPL_HPP
#define HERRING_TRANSPORT_TCP_CONNECTIONS_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/transport/tcp/connect.hpp"
#include "herring/transport/tcp/connections.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE tcp_connections connect_all(world& ranks, std::span<int const> peers, int lanes,
                                              std::uint32_t incarnation, std::chrono::milliseconds timeout) {
    tcp_connector connector(ranks, peers, lanes, incarnation, timeout);
    tcp_connections connections{fixed_array<tcp_connection>(peers.size() * static_cast<std::size_t>(lanes)),
                                connector.rejected()};
    std::size_t at = 0;
    for (int const peer : peers)
        for (int lane = 0; lane < lanes; ++lane) {
            auto const [number, answered] = connector.release(peer, lane);
            connections.all[at++] = {descriptor(number), answered};
        }
    return connections;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_CONNECTIONS_IMPL_HPP

// herring: the established data connections of a rank.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_CONNECTIONS_HPP
#define HERRING_TRANSPORT_TCP_CONNECTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/descriptor.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// A connected, non-blocking socket, and the incarnation of the peer that answered.
struct tcp_connection {
    descriptor socket{};
    std::uint32_t incarnation = 0;
};

/// Connections with all peers: those of peer i begin at i * lanes.
struct tcp_connections {
    fixed_array<tcp_connection> all;
    std::uint64_t rejected = 0; ///< connections that were not of this world
};

/// Connects this rank with each of its peers, `lanes` times: see tcp_connector.
HERRING_SEPARABLE tcp_connections connect_all(world& ranks, std::span<int const> peers, int lanes,
                                              std::uint32_t incarnation, std::chrono::milliseconds timeout);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/transport/tcp/connections_impl.hpp"
#endif

#endif // HERRING_TRANSPORT_TCP_CONNECTIONS_HPP

// herring: what transport::tcp keeps of a peer: its connections, posted receives, and messages that came early.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_PEER_HPP
#define HERRING_TRANSPORT_TCP_PEER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/ids.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/transport/envelope.hpp"
#include "herring/transport/tcp/link.hpp"
#include "herring/transport/tcp/match_table.hpp"

#include <cstddef>
#include <cstdint>
#include <list>

namespace HERRING_NAMESPACE::detail {

/// A message without a receive: buffered until one is posted.
struct tcp_unexpected {
    std::uint64_t tag = 0;
    fixed_array<std::byte> bytes;
    kept_envelope envelope;
    bool complete = false; ///< all of its payload is read
};

/// One connection to a peer, and the payload that is being read from it.
struct tcp_lane {
    descriptor socket;   ///< bytes go by `link`
    data_socket watched; ///< the same, while it is open
    tcp_link link;
    std::size_t at = 0; ///< among the lanes of all peers

    std::uint64_t token = 0; ///< of the posted receive
    std::uint64_t tag = 0;
    std::size_t bytes = 0;
    kept_envelope envelope;
    enum { into_posted, into_unexpected, into_nowhere } destination = into_nowhere;
    tcp_unexpected* early = nullptr;
    fixed_array<std::byte> discarded; ///< payload of frames that are dropped
};

struct tcp_peer {
    peer_id id{};
    int rank = -1;
    bool is_lost = false;
    std::uint32_t incarnation = 0; ///< that its frames must come from
    std::size_t next_lane = 0;
    fixed_array<tcp_lane> lanes;
    match_table posted;
    std::list<tcp_unexpected> unexpected;
    char reason[200] = ""; ///< why it is lost
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_PEER_HPP

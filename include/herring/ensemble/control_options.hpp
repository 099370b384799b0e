// herring: options of an ensemble's control connections at both ends, and what an admission tells a member.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_CONTROL_OPTIONS_HPP
#define HERRING_ENSEMBLE_CONTROL_OPTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane_ends.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Of `door`, a frontend's end. Its times hold for its members too.
struct door_options {
    std::string
        address{}; ///< "host:port" or "[ipv6]:port" to listen on; port 0: any free one, see door::address()
    /// Instead of HERRING_SECRET and HERRING_SECRET_FILE, as in `join_options`. Read by the constructor, and not kept.
    std::optional<std::string_view> secret{};
    std::string secret_file{};
    bool require_secret = false;
    herring::lane lanes = herring::lane::any;
    std::uint32_t replicas = 1;               ///< of each member
    std::uint32_t credits = 64;               ///< rows that a member may have unanswered, at most
    std::uint32_t in_flight = 64;             ///< requests
    std::chrono::milliseconds heartbeat{500}; ///< between two signs of life; at most half of peer_timeout
    std::chrono::milliseconds peer_timeout{
        5000}; ///< a member that gives none for so long is lost; at least 50 ms
    std::chrono::milliseconds handshake_time{2000}; ///< for each of: proving itself, bringing its lane
    std::size_t pending = 64; ///< connections that have not proved themselves; the oldest makes room
};

/// Of `dialler`, a member's end.
struct dialler_options {
    std::vector<std::string> frontends{}; ///< "host:port" each
    std::string name{};                   ///< of this member, in the rosters of its frontends
    std::uint32_t replica = 0;
    /// Instead of HERRING_SECRET and HERRING_SECRET_FILE, as in `join_options`. Read by the constructor, and not kept.
    std::optional<std::string_view> secret{};
    std::string secret_file{};
    bool require_secret = false;
    herring::lane lanes = herring::lane::any;
    std::uint32_t credits =
        64; ///< jobs of one frontend that this member holds, at most; the smaller of both ends counts
    std::chrono::milliseconds handshake_time{2000}; ///< for an attempt: connecting, proving itself, its lane
    std::chrono::milliseconds first_pause{10};      ///< between attempts, doubled by each that fails
    std::chrono::milliseconds last_pause{2000};
};

/// What a frontend tells a member that it takes.
struct admission {
    peer_index peer = 0;         ///< of this member's replica at this frontend: a place in the ring of asks
    std::uint32_t member = 0;    ///< in the roster
    std::uint32_t replicas = 1;  ///< of each member
    std::uint32_t credits = 0;   ///< the smaller of both ends
    std::uint32_t in_flight = 0; ///< requests of the frontend
    std::uint64_t request_bytes = 0; ///< of the shape
    std::uint64_t row_bytes = 0;
    std::uint64_t frontend = 0; ///< incarnation of the frontend
    std::chrono::milliseconds heartbeat{500}, peer_timeout{5000};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_CONTROL_OPTIONS_HPP

// herring: the descriptors of one proven lane between a frontend and a member.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_LANE_ENDS_HPP
#define HERRING_ENSEMBLE_LANE_ENDS_HPP

#include "herring/base/config.hpp"

#include <cstdint>
#include <utility>

#include <unistd.h>

namespace HERRING_NAMESPACE {

/// The way of requests and rows between a frontend and a member. Both ends choose; `any` goes with each.
enum class lane : std::uint8_t {
    any,   ///< memory on one machine, else tcp
    tcp,   ///< a connection
    shared ///< memory on one machine; a member elsewhere is refused
};

/// "any", "tcp", "shared".
constexpr char const* to_string(lane l) noexcept {
    switch (l) {
    case lane::any:
        return "any";
    case lane::tcp:
        return "tcp";
    case lane::shared:
        return "shared";
    }
    return "unknown";
}

namespace detail::ensembles {

/// One proven lane: either `socket`, or `bell` and `memory`; all non-blocking, closed on exec.
///
/// Nothing has been read beyond the proof, and what the other end has sent since waits in the socket. `memory` is as the other
/// process gave it: its size and seals are unchecked.
/// Lifetime: owns what is not −1; moves. Who takes one over sets it to −1 (`std::exchange`).
struct lane_ends {
    int socket = -1; ///< a tcp connection
    int bell = -1;   ///< a connected unix socket (seqpacket) of the same machine and user
    int memory = -1; ///< the other end's memfd

    lane_ends() = default;
    lane_ends(lane_ends&& other) noexcept
        : socket(std::exchange(other.socket, -1)), bell(std::exchange(other.bell, -1)),
          memory(std::exchange(other.memory, -1)) {}
    lane_ends& operator=(lane_ends&& other) noexcept {
        std::swap(socket, other.socket);
        std::swap(bell, other.bell);
        std::swap(memory, other.memory);
        return *this;
    }
    ~lane_ends() {
        for (int const each : {socket, bell, memory})
            if (each >= 0) ::close(each);
    }

    bool is_shared() const noexcept { return bell >= 0; }
};

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_LANE_ENDS_HPP

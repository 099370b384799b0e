// herring: which numbers transport::tcp takes: connections, chunks and windows.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_NUMBERS_HPP
#define HERRING_TRANSPORT_TCP_NUMBERS_HPP

#include "herring/base/config.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE::detail {

/// As a need of the transport, so that a pack says it once: clang would add a message to an assertion in the class itself.
template <int Connections, std::size_t Chunk, std::size_t Window, std::size_t LoopbackChunk,
          std::size_t LoopbackWindow>
struct tcp_numbers {
    template <class Pack> struct check {
        static constexpr bool connected = Connections >= 1 && Connections <= 64;
        static constexpr bool flows =
            Chunk >= 4096 && Window >= Chunk && LoopbackChunk >= 4096 && LoopbackWindow >= LoopbackChunk;
        static constexpr bool value = connected && flows;
        static_assert(connected,
                      "[HRG-T10] transport: tcp needs 1 to 64 connections a peer; a common slip is 0 for as "
                      "many as it likes; start with 1");
        static_assert(!connected || flows,
                      "[HRG-T11] transport: tcp needs chunks of at least 4 KiB and a window of at "
                      "least one chunk, on a network and on loopback; a common slip is to set one of the "
                      "two; set both");
    };
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_NUMBERS_HPP

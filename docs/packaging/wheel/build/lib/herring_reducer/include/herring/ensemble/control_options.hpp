// herring: options, counters and sinks of the control connections of frontends and members.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_CONTROL_OPTIONS_HPP
#define HERRING_ENSEMBLE_CONTROL_OPTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/machine/descriptor.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Options of an `acceptor`, a frontend's end. Its times hold for its members too.
struct acceptor_options {
    /// "host:port" or "[ipv6]:port" to listen on; port 0: any free one, see `acceptor::address`.
    std::string address{};
    /// Instead of HERRING_SECRET and HERRING_SECRET_FILE, as in `join_options`. Read by the constructor, and
    /// not kept.
    std::optional<std::string_view> secret{};
    std::string secret_file{};
    bool require_secret = false;
    herring::lane lanes = herring::lane::any;
    std::uint32_t replicas = 1;               ///< of each member
    std::uint32_t credits = 64;               ///< rows that a member may have unanswered, at most
    std::uint32_t in_flight = 64;             ///< requests
    std::chrono::milliseconds heartbeat{500}; ///< between two signs of life; at most half of peer_timeout
    /// A member without a sign of life for so long is lost; at least 50 ms.
    std::chrono::milliseconds peer_timeout{5000};
    std::chrono::milliseconds handshake_time{
        2000};                ///< for each of: the proof of a member, the proof of its lane
    std::size_t pending = 64; ///< connections that have proved nothing; the oldest makes room
};

/// Options of a `dialler`, a member's end.
struct dialler_options {
    std::vector<std::string> frontends{}; ///< "host:port" each
    std::string name{};                   ///< of this member, in the rosters of its frontends
    std::uint32_t replica = 0;
    /// Instead of HERRING_SECRET and HERRING_SECRET_FILE, as in `join_options`. Read by the constructor, and
    /// not kept.
    std::optional<std::string_view> secret{};
    std::string secret_file{};
    bool require_secret = false;
    herring::lane lanes = herring::lane::any;
    std::uint32_t credits = 64; ///< most jobs of one frontend; the smaller number of both ends counts
    std::chrono::milliseconds handshake_time{2000}; ///< for an attempt: connecting, both proofs, the lane
    std::chrono::milliseconds first_pause{10};      ///< between attempts, doubled by each that fails
    std::chrono::milliseconds last_pause{2000};
};

/// Facts that a frontend sends to a member that it admits.
struct admission {
    peer_index peer = 0;         ///< of this member's replica at this frontend: a place in the ring of asks
    std::uint32_t member = 0;    ///< place in the roster
    std::uint32_t replicas = 1;  ///< of each member
    std::uint32_t credits = 0;   ///< the smaller number of both ends
    std::uint32_t in_flight = 0; ///< requests of the frontend
    std::uint64_t request_bytes = 0; ///< as in the shape
    std::uint64_t row_bytes = 0;
    std::uint64_t frontend = 0; ///< incarnation of the frontend
    std::chrono::milliseconds heartbeat{500}, peer_timeout{5000};
};

/// Counters of a frontend's control connections.
struct acceptor_counters {
    std::uint64_t admitted = 0;     ///< lanes that were proven
    std::uint64_t lost = 0;         ///< peers of such lanes that were lost
    std::uint64_t replaced = 0;     ///< processes whose place a newer one took
    std::uint64_t unidentified = 0; ///< connections that ended unproven: scanners, junk, time-outs
    std::uint64_t refused[admission_refusals]{}; ///< by reason
};

/// Functions that `acceptor` calls on a frontend.
///
///     admitted(peer, incarnation, credits, ends)   the member's replica is admitted, its lane is proven
///     draining(peer, incarnation)      it leaves: ask it no more; acceptor::drained once it owes nothing
///     lost(peer, incarnation, why)     once for each admitted, also after drop and drained; not from the
///                                      destructor
///     refused(reason, text)            a process was refused, or replaced; for counters and on_change
///     local_memory() → int             the memfd for members of this machine, which the sink owns; −1: none.
///                                      Called once, by the constructor
///     nudged()                         optional: after acceptor::nudge, and at any other time
///
/// Threads:  the acceptor's thread calls all of them except local_memory, one after another, without a lock
///           held; they may call the acceptor, and throw nothing.
template <class Sink>
concept acceptor_sink = requires(Sink& sink, peer_index peer, std::uint64_t incarnation,
                                 std::uint32_t credits, lane_ends& ends, std::string_view text,
                                 admission_refusal reason) {
    sink.admitted(peer, incarnation, credits, std::move(ends));
    sink.draining(peer, incarnation);
    sink.lost(peer, incarnation, text);
    sink.refused(reason, text);
    { sink.local_memory() } -> std::same_as<int>;
};

/// Functions that `dialler` calls on a member. `frontend`: its place in dialler_options::frontends.
///
///     connected(frontend, facts, ends)   admitted there, the lane is proven
///     disconnected(frontend, why)        once for each connected, and the dialler goes on trying, unless
///                                        leave was called; also after an attempt that failed otherwise than
///                                        the one before it
///     refused(frontend, failure)         final: the dialler gives it up; after a disconnected if it was
///                                        connected
///     local_memory(frontend, facts) → descriptor   a memfd for this admission, which the dialler sends to
///                                        a frontend of this machine and closes; −1: the lane is tcp
///
/// Threads:  the dialler's thread calls all of them, one after another, without a lock held; they may call
///           the dialler, and throw nothing.
template <class Sink>
concept dialler_sink = requires(Sink& sink, std::size_t frontend, admission const& facts, lane_ends& ends,
                                std::string_view why, failure const& final) {
    sink.connected(frontend, facts, std::move(ends));
    sink.disconnected(frontend, why);
    sink.refused(frontend, final);
    { sink.local_memory(frontend, facts) } -> std::same_as<descriptor>;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_CONTROL_OPTIONS_HPP

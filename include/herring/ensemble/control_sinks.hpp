// herring: what the threads of an ensemble's control connections call at a frontend and at a member.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_CONTROL_SINKS_HPP
#define HERRING_ENSEMBLE_CONTROL_SINKS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/ensemble/admission_refusal.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane_ends.hpp"
#include "herring/machine/descriptor.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

/// What `door` needs of a frontend.
///
///     admitted(peer, incarnation, credits, ends)   the member's replica is here, its lane is proven
///     draining(peer, incarnation)      it leaves: ask it no more; call door::drained once it owes nothing
///     lost(peer, incarnation, why)     once for each admitted, also after drop() and drained(); not from the destructor
///     refused(reason, text)            one was turned away, or told that it is replaced; for counters and on_change
///     local_memory() → int             the memfd that local members get, which the sink owns; −1: no shared memory. Called once,
///                                      by the constructor
///     nudged()                         if it has that: after door::nudge(), and at any other time
///
/// Threads:  one thread of the door's calls all of them (but local_memory), one after another, without a lock held; they may
///           call the door, and throw nothing.
template <class Sink>
concept door_sink = requires(Sink& sink, peer_index peer, std::uint64_t incarnation, std::uint32_t credits,
                             lane_ends& ends, std::string_view text, admission_refusal reason) {
    sink.admitted(peer, incarnation, credits, std::move(ends));
    sink.draining(peer, incarnation);
    sink.lost(peer, incarnation, text);
    sink.refused(reason, text);
    { sink.local_memory() } -> std::same_as<int>;
};

/// What `dialler` needs of a member. `frontend`: its place in dialler_options::frontends.
///
///     connected(frontend, facts, ends)      admitted there, the lane is proven
///     disconnected(frontend, why)           once for each connected, and the dialler goes on trying, unless leave() was called; also
///                                           where an attempt failed otherwise than the one before it, for a status text
///     refused(frontend, failure)            final: it is not tried again; after a disconnected where it was connected
///     local_memory(frontend, facts) → descriptor    a memfd for this admission, which the dialler sends to a local frontend and
///                                           closes; −1: go by tcp
///
/// Threads:  one thread of the dialler's calls all of them, one after another, without a lock held; they may call the dialler,
///           and throw nothing.
template <class Sink>
concept dialler_sink = requires(Sink& sink, std::size_t frontend, admission const& facts, lane_ends& ends,
                                std::string_view why, failure const& final) {
    sink.connected(frontend, facts, std::move(ends));
    sink.disconnected(frontend, why);
    sink.refused(frontend, final);
    { sink.local_memory(frontend, facts) } -> std::same_as<descriptor>;
};

// template <door_sink Sink> class door, of ensemble/door.hpp:
//   door(door_options const&, shape const&, std::vector<std::string> members, Sink&)   listens and starts its thread
//   std::string address() const                       "host:port" that it listens on
//   void add_member(std::string name)                 at the end of the roster
//   void drained(peer_index, incarnation)             a draining peer owes nothing: it is let go
//   void drop(peer_index, incarnation, std::string why)   its lane is broken: it is disconnected, and comes again
//   door_counters counters() const
//   ~door()                                           tells its members, which then wait for the next frontend
//
// template <dialler_sink Sink> class dialler, of ensemble/dialler.hpp:
//   dialler(dialler_options const&, shape const&, Sink&)      starts its thread; throws bad_argument for addresses and names
//   void drop(std::size_t frontend, std::string why)  its lane is broken: dials again
//   bool leave(std::chrono::milliseconds most)        says so to all frontends and waits until each has let this member go;
//                                                     false: not all have in time. Not from the sink's functions
//   void stop()                                       ends the thread; the frontends see a closed connection
//   ~dialler()                                        stop()

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_CONTROL_SINKS_HPP

// herring: joining over TCP: every rank has one control connection to rank 0, the coordinator.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_RENDEZVOUS_HPP
#define HERRING_CONTROL_RENDEZVOUS_RENDEZVOUS_HPP

#include "herring/base/config.hpp"
#include "herring/control/rendezvous/coordinator.hpp"
#include "herring/control/rendezvous/participant.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/world_state.hpp"

#include <utility>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// Joins, or throws why not. The membership's backend is this process's end of the control connections.
HERRING_SETUP inline membership join_world(settings&& from) {
    return from.rank == 0 ? coordinator::join(std::move(from)) : participant::join(std::move(from));
}

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_RENDEZVOUS_HPP

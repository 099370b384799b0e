// herring: the settings with which a rank joins.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_SETTINGS_HPP
#define HERRING_CONTROL_RENDEZVOUS_SETTINGS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/control/control.hpp"
#include "herring/control/world_times.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/model/lent_servers.hpp"
#include "herring/model/links.hpp"
#include "herring/model/topology.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// The rank, its world, and the address of its rank 0.
struct settings {
    int rank = 0;
    int size = 2;
    fixed_array<endpoint> addresses{};   // where rank 0 listens, as this rank resolved it
    std::vector<descriptor> listeners{}; // rank 0: sockets that listen there
    std::string address_text{};          // host:port, as given
    std::string node{}, boot{}, rack{};
    herring::role role = herring::role::worker;
    int rate = 0;                            // of this rank's network, in Mbit/s; 0: not declared
    herring::links links{};                  // of this rank, then of rank 0
    int workers = 2;                         // the ranks behind them are lent by a service
    lease lent{};                            // rank 0: their grant, as long as the world lives
    std::optional<secrets> secret_of_lent{}; // rank 0: what they prove, and no other rank
    failure_handler on_drain{};
    failure not_lent{};              // rank 0: why no servers are lent; the workers are told, and it ends
    std::optional<secrets> secret{}; // none: no rank has to prove anything
    seal_provider const* seals = nullptr; // control connections, where there is a secret
    time_point deadline{};
    std::chrono::milliseconds timeout{60'000}; // before `deadline`, for the error
    failure_handler on_failure{};
    world_times asked{};             // given by this rank
    world_times times = resolve({}); // from `asked`, then of rank 0
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_SETTINGS_HPP

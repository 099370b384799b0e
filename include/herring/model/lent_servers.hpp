// herring: servers that a service lends to a world: what rank 0 asks for, and what it is granted.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_LENT_SERVERS_HPP
#define HERRING_MODEL_LENT_SERVERS_HPP

#include "herring/base/config.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/model/layout.hpp"

#include <chrono>
#include <string>

namespace HERRING_NAMESPACE {

struct lent_servers;

namespace detail {

/// The facts of a world that a service needs before it lends servers to it.
struct lease_terms {
    int workers = 0;                     ///< ranks that join without the service
    std::string address{};               ///< "host:port" of rank 0
    bool seals = false;                  ///< control connections are sealed
    std::chrono::milliseconds timeout{}; ///< of the join
};

/// A grant: as long as its connection lives, so do the servers.
struct lease {
    descriptor connection{};
    std::string secret{};  ///< 64 digits, which the granted ranks prove, and no other
    std::string service{}; ///< "host:port"
};

} // namespace detail

/// Servers that rank 0 asks a service for, before it listens. Made by `served_by<Reducer>`.
struct lent_servers {
    int count = 0;                          ///< 0: none
    std::string services{};                 ///< "host:port,host:port": the first that grants them lends all
    std::string tenant{};                   ///< instead of HERRING_TENANT
    std::string key_file{};                 ///< instead of HERRING_TENANT_KEY_FILE; read by rank 0
    std::chrono::milliseconds queue_for{0}; ///< the longest wait where others hold what is asked for
    /// Called on rank 0 when the service is about to end: save, and leave. By a thread of the world's, of
    /// which the function must call nothing: let it set a flag.
    detail::failure_handler on_drain{};
    std::string type{}; ///< the reducer, as ranks compare it
    layout tensors{};
    detail::lease (*ask)(lent_servers const&, detail::lease_terms const&) = nullptr;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_LENT_SERVERS_HPP

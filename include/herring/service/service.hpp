// herring: the two ends of a service, as the headers that programs name see them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SERVICE_SERVICE_HPP
#define HERRING_SERVICE_SERVICE_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/model/layout.hpp"
#include "herring/model/lent_servers.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace HERRING_NAMESPACE {

/// How a service runs.
struct service_options {
    std::string listen{};     ///< "host:port" or "[ipv6]:port"
    std::string tenants{};    ///< the file of tenants, read anew on SIGHUP
    int ranks = 0;            ///< server ranks at once; 0: as many as this process may use cores
    std::uint64_t memory = 0; ///< bytes of all ranks; 0: what is free at the start
    int rate = 0; ///< of the network, in Mbit/s, which tenants share by their shares; 0: they do not
    /// Told to stop, the service leaves its jobs so long to save and leave.
    std::chrono::milliseconds drain_time{30'000};
    std::string metrics{}; ///< a file in the text format of Prometheus, written each second; empty: none
};

namespace detail::leasing {

/// The needs of a server rank: memory that it fills, and address space, beyond which it gets none.
struct need {
    std::uint64_t memory = 0, address_space = 0;
};

/// A reducer of a service, by functions, so that the rest is compiled once.
struct served_type {
    std::string name;
    need (*needs)(layout const& tensors, int workers, int servers) = nullptr;
    void (*serve)(world& ranks, layout tensors) = nullptr;
};

/// Asks the services in turn, until one grants; where all are busy, waits at them for `queue_for`. By rank 0.
///
/// Blocks:  5 s at most for each address of a service that does not answer, and `queue_for`.
/// Errors:  `refused`, `no_resources`, `mismatch`, `unreachable`, `unsupported`, `bad_argument`, with what
///          each service said.
HERRING_SEPARABLE lease ask_services(lent_servers const& wanted, lease_terms const& of);

/// Runs the parent of a service, until SIGTERM or SIGINT came and all jobs have left.
HERRING_SEPARABLE void run_service(service_options const& options, std::span<served_type const> types);

/// Serves one rank of a job, in a process that a service started; then ends the process. Returns in any
/// other process.
HERRING_SEPARABLE void serve_if_started(std::span<served_type const> types);

} // namespace detail::leasing

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/service/service_impl.hpp"
#include "herring/service/service_request_impl.hpp"
#endif

#endif // HERRING_SERVICE_SERVICE_HPP

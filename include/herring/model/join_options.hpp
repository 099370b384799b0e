// herring: options of `join`, in place of environment variables.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_JOIN_OPTIONS_HPP
#define HERRING_MODEL_JOIN_OPTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/model/failure_detector_options.hpp"
#include "herring/model/lent_servers.hpp"
#include "herring/model/links.hpp"
#include "herring/model/topology.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace HERRING_NAMESPACE {

/// Protection of control connections where ranks have a secret: authenticated, or sealed (`sealed_control()`
/// of herring/join/sealed.hpp).
class control_protection {
  public:
    /// Authenticated: an observer of the traffic can read control messages but not change them.
    constexpr control_protection() noexcept = default;
    constexpr explicit control_protection(detail::seal_provider const* seals) noexcept : seals_(seals) {}
    /// Returns nullptr if authenticated only.
    constexpr detail::seal_provider const* seals() const noexcept { return seals_; }

  private:
    detail::seal_provider const* seals_ = nullptr;
};

/// Options of `join`. An option at its default comes from its environment variable.
struct join_options {
    int rank = -1;         ///< instead of HERRING_RANK
    int size = -1;         ///< instead of HERRING_SIZE
    std::string address{}; ///< instead of HERRING_ADDR: "host:port" or "[ipv6]:port" of rank 0
    std::string node{};    ///< instead of HERRING_NODE: ranks of one name share memory
    /// Instead of HERRING_RACK: the name of the rack that this rank's machine is in, of at most 64
    /// characters; all ranks declare one, or none. Sums add up a rack's nodes first.
    std::string rack{};
    /// Instead of HERRING_ROLE ("worker" or "server"). A server has no tensors and calls `herring::serve`
    /// (herring/serve.hpp).
    std::optional<herring::role> role{};
    /// Instead of HERRING_RATE: the rate at which this rank's machine can send, and receive, for it, in
    /// Mbit/s; for a server that shares a network with others, its part of the rate. `placement::optimal`
    /// divides the work by it. 0: not declared.
    int rate = 0;
    /// Instead of HERRING_LINKS ("latency=10000,rate=100000", "probe"): the figures of the network, from
    /// which plans choose routes, servers and sizes (docs/reference/transports.md, Links). Those of rank 0
    /// hold for all ranks; a rank that gives others is a `mismatch`.
    herring::links links{};
    /// Instead of HERRING_SECRET: the secret that the ranks prove to each other, the same on every rank: 64
    /// hexadecimal digits (`openssl rand -hex 32`). Any other text is a `bad_argument`.
    std::optional<std::string> secret{};
    /// Instead of HERRING_SECRET_FILE: a file of one or two secrets, one a line (crypto/secret.hpp).
    std::string secret_file{};
    /// Or HERRING_CONTROL ("authenticated" or "sealed"): sealed if either says so. The same on every rank;
    /// needs a secret.
    control_protection control{};
    /// Servers that a service lends, behind the ranks that join: `herring::served_by<Reducer>(...)` of
    /// herring/service.hpp. The same on every rank; needs a secret. `timeout` begins with the grant.
    lent_servers servers{};
    bool require_secret = false; ///< without a secret `join` throws `bad_argument`
    std::string interface {};    ///< instead of HERRING_INTERFACE: a name or an IP literal of this machine
    /// The longest wait for all ranks.
    std::chrono::milliseconds timeout{60'000};
    /// Times of the failure detector. Those of rank 0 hold for all ranks.
    failure_detector_options failure_detector{};
    /// Instead of HERRING_DEFAULT_TIMEOUT: the timeout of calls without a deadline and of the construction of
    /// a reducer. Default 30 s; at least 50 ms, or `herring::never`. That of rank 0 holds for all ranks.
    std::chrono::milliseconds default_timeout = detail::not_given;
    /// Called once when the world has failed, whatever the cause, with the failure as this rank sees it. For
    /// ranks that are then in other calls, of MPI for example, and would wait there for a lost rank. Not
    /// called when `join` itself throws.
    ///
    /// Threads:  runs at once in the thread that `join` starts; in a world of one rank, in the thread that
    ///           announces the failure. The function may end the process, or cancel what the program waits
    ///           for. It must not wait for a call of this world, nor destroy the world, whose destructor
    ///           waits for the function. An exception that leaves the function ends the program.
    /// Example:  join({.on_failure = [](herring::failure const&) { MPI_Abort(MPI_COMM_WORLD, 1); }})
    detail::failure_handler on_failure{};
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_JOIN_OPTIONS_HPP

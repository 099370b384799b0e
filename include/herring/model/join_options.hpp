// herring: options of `join`, in place of variables.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_JOIN_OPTIONS_HPP
#define HERRING_MODEL_JOIN_OPTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/model/failure_detector_options.hpp"
#include "herring/model/failure_handler.hpp"
#include "herring/model/role.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace HERRING_NAMESPACE {

/// How control connections are protected where ranks have a secret: authenticated, or sealed (`sealed_control()` of
/// herring/join/sealed.hpp).
class control_protection {
  public:
    /// Authenticated: who sees the traffic can read control messages, and change none.
    constexpr control_protection() noexcept = default;
    constexpr explicit control_protection(detail::seal_provider const* seals) noexcept : seals_(seals) {}
    /// nullptr: authenticated.
    constexpr detail::seal_provider const* seals() const noexcept { return seals_; }

  private:
    detail::seal_provider const* seals_ = nullptr;
};

/// Options of `join`. Those that are left at their defaults come from the variables.
struct join_options {
    int rank = -1;         ///< instead of HERRING_RANK
    int size = -1;         ///< instead of HERRING_SIZE
    std::string address{}; ///< instead of HERRING_ADDR: "host:port" or "[ipv6]:port" of rank 0
    std::string node{};    ///< instead of HERRING_NODE: ranks of one name share memory
    /// Instead of HERRING_ROLE: "worker" or "server". A server has no tensors; it calls `herring::serve` (herring/serve.hpp).
    std::optional<herring::role> role{};
    /// Instead of HERRING_RATE: what this rank's machine can send, and receive, for it, in Mbit/s, by which
    /// `placement::optimal` shares the work; of a server that shares a network with others, its part. 0: not declared.
    int rate = 0;
    /// Instead of HERRING_SECRET: the secret that the ranks prove to each other, equal on every rank: 64 hexadecimal digits
    /// (`openssl rand -hex 32`). Any other text is `bad_argument`.
    std::optional<std::string> secret{};
    std::string
        secret_file{}; ///< instead of HERRING_SECRET_FILE: a file of one or two secrets, one a line (crypto/secret.hpp)
    /// Or HERRING_CONTROL: "authenticated" or "sealed". Sealed where either says so; the same on every rank, and with a secret.
    control_protection control{};
    bool require_secret = false; ///< no secret is `bad_argument`
    std::string interface {};    ///< instead of HERRING_INTERFACE: a name or an IP literal of this machine
    /// How long to wait for all ranks.
    std::chrono::milliseconds timeout{60'000};
    /// When a silent rank is given up, and how soon a root cause is named. Rank 0's hold for all.
    failure_detector_options failure_detector{};
    /// Instead of HERRING_DEFAULT_TIMEOUT: of every call that is given no deadline, and of constructing a reducer; 30 s where
    /// neither is set; at least 50 ms; `herring::never`. Rank 0's holds for all.
    std::chrono::milliseconds default_timeout = detail::not_given;
    /// Called once when the world has failed, whoever caused it, with the failure as this rank sees it. For ranks that then
    /// are in other calls, of MPI for example, and would wait there for a rank that is gone. Not called when `join` itself throws.
    ///
    /// Threads:  in the thread that `join` starts, at once; alone, in the one that announces. It may end the process, or
    ///           make what the program waits for return. It must not wait for a call of this world, nor destroy it: the
    ///           destructor waits for it. An exception that leaves it ends the program.
    /// Example:  join({.on_failure = [](herring::failure const&) { MPI_Abort(MPI_COMM_WORLD, 1); }})
    detail::failure_handler on_failure{};
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_JOIN_OPTIONS_HPP

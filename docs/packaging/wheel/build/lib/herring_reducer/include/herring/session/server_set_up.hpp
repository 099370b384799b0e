// herring: a server's options: the core that it runs on, and the report of its load.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_SERVER_SET_UP_HPP
#define HERRING_SESSION_SERVER_SET_UP_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/model/topology.hpp"
#include "herring/plan/plan.hpp"

#include <optional>
#include <string>

namespace HERRING_NAMESPACE {

/// How a server runs.
struct serve_options {
    /// The core that the calling thread is bound to, before anything else: several servers on a machine take
    /// one each. Not given: it runs where it may.
    std::optional<int> pin{};
    bool report =
        false; ///< at the start one line on stderr: what this server, and its core, combines in a step
};

/// Describes the load of server `of` in a plan's step: bytes that it combines, receives and returns, and its
/// part of all. `map`: of the plan.
HERRING_SEPARABLE std::string load_of(plan const& all, topology const& map, server_id of);

namespace detail {

/// Binds the calling thread to the core of the options.
///
/// Errors: `bad_argument` where this process may not run on it.
HERRING_SEPARABLE void pin_server(world& ranks, serve_options const& options);
HERRING_SEPARABLE void report_server(plan const& all, topology const& map, int rank,
                                     serve_options const& options);

} // namespace detail

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/session/server_set_up_impl.hpp"
#endif

#endif // HERRING_SESSION_SERVER_SET_UP_HPP

// herring: becomes one rank of a world, by HERRING_* variables or those of torchrun, mpirun or srun.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_JOIN_HPP
#define HERRING_JOIN_JOIN_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/model/join_options.hpp"

namespace HERRING_NAMESPACE {

/// Joins the world that the options and variables name, and returns once every rank is there.
///
/// Reads:    HERRING_RANK, HERRING_SIZE and HERRING_ADDR=host:port; else torchrun's, Open MPI's, MPICH's or Slurm's;
///           alone when there are none. HERRING_NODE, HERRING_SECRET or HERRING_SECRET_FILE, HERRING_CONTROL, HERRING_INTERFACE, HERRING_PEER_TIMEOUT and
///           HERRING_DEFAULT_TIMEOUT add to any of them.
/// Blocks:   until all ranks are there, at most `options.timeout` and a second.
/// Threads:  starts one, which sleeps on the control connections as long as the world lives.
/// Errors:   `timeout` naming the ranks that are missing, `refused`, `mismatch`, `unreachable`, `no_resources`,
///           `bad_argument`.
/// Example:  herring::world world = herring::join();
HERRING_SEPARABLE world join(join_options const& options = {});

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/join/join_impl.hpp"
#endif

#endif // HERRING_JOIN_JOIN_HPP

// herring: `join`: becomes one rank of a world, by variables of Herring, torchrun, mpirun or srun.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_JOIN_HPP
#define HERRING_JOIN_JOIN_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/model/join_options.hpp"

namespace HERRING_NAMESPACE {

/// Joins the world that options and variables name. Returns when every rank has joined.
///
/// Reads:    HERRING_RANK, HERRING_SIZE and HERRING_ADDR=host:port; else the variables of torchrun, Open MPI,
///           MPICH or Slurm; without any, the process is a world by itself. In all cases also HERRING_NODE,
///           HERRING_RACK, HERRING_ROLE, HERRING_RATE, HERRING_LINKS, HERRING_SECRET or HERRING_SECRET_FILE,
///           HERRING_CONTROL, HERRING_INTERFACE, HERRING_PEER_TIMEOUT and HERRING_DEFAULT_TIMEOUT.
/// Blocks:   until all ranks have joined, at most `options.timeout` and a second.
/// Threads:  starts one, which sleeps on the control connections as long as the world lives.
/// Errors:   `timeout` naming the missing ranks, `refused`, `mismatch`, `unreachable`, `no_resources`,
///           `bad_argument`.
/// Example:  herring::world world = herring::join();
HERRING_SEPARABLE world join(join_options const& options = {});

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/join/join_impl.hpp"
#endif

#endif // HERRING_JOIN_JOIN_HPP

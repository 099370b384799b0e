// herring: the set-up code of a program that is compiled with HERRING_SEPARATE. To be included in one of its .cpp files.
// SPDX-License-Identifier: Apache-2.0
//
// All of the program is compiled with -DHERRING_SEPARATE, this file with the same -m flags as the others. What is set up
// (joining, agreeing, mapping memory, connecting, messages of errors) is then compiled once, not in every file.
#ifndef HERRING_SRC_HPP
#define HERRING_SRC_HPP

#ifndef HERRING_SEPARATE
#error "herring/src.hpp: compile every file of the program with -DHERRING_SEPARATE, or do without this header"
#endif

#include "herring/base/config.hpp"

#include "herring/impl/agreement.hpp"
#include "herring/impl/calls.hpp"
#include "herring/impl/checkpoint.hpp"
#include "herring/impl/checkpoint_folder.hpp"
#include "herring/impl/checkpoint_manifest.hpp"
#include "herring/impl/checkpoint_reader.hpp"
#include "herring/impl/checkpoint_replica.hpp"
#include "herring/impl/checkpoint_snapshot.hpp"
#include "herring/impl/checkpoint_table.hpp"
#include "herring/impl/checkpoint_writer.hpp"
#include "herring/impl/collective.hpp"
#include "herring/impl/command.hpp"
#include "herring/impl/construction.hpp"
#include "herring/impl/control.hpp"
#include "herring/impl/cores.hpp"
#include "herring/impl/data_sockets.hpp"
#include "herring/impl/dialler_admission.hpp"
#include "herring/impl/dialler_core.hpp"
#include "herring/impl/dissemination.hpp"
#include "herring/impl/division.hpp"
#include "herring/impl/door_admission.hpp"
#include "herring/impl/door_core.hpp"
#include "herring/impl/engine_state.hpp"
#include "herring/impl/gather_result.hpp"
#include "herring/impl/hkdf.hpp"
#include "herring/impl/hmac.hpp"
#include "herring/impl/hyper_values.hpp"
#include "herring/impl/join.hpp"
#include "herring/impl/launch.hpp"
#include "herring/impl/layout.hpp"
#include "herring/impl/memory_check.hpp"
#include "herring/impl/one_hop.hpp"
#include "herring/impl/operation_of_commands.hpp"
#include "herring/impl/pbkdf2.hpp"
#include "herring/impl/plan.hpp"
#include "herring/impl/private_memory.hpp"
#include "herring/impl/roles.hpp"
#include "herring/impl/saved_in_gaps.hpp"
#include "herring/impl/secret.hpp"
#include "herring/impl/server_set_up.hpp"
#include "herring/impl/session_base.hpp"
#include "herring/impl/sha256.hpp"
#include "herring/impl/shared_mapping.hpp"
#include "herring/impl/tcp_connections.hpp"
#include "herring/impl/text.hpp"
#include "herring/impl/two_hop.hpp"
#include "herring/impl/world.hpp"
#include "herring/impl/world_state.hpp"

#endif // HERRING_SRC_HPP

// herring: the set-up code of a program compiled with HERRING_SEPARATE; included in one of its .cpp files.
// SPDX-License-Identifier: Apache-2.0
//
// Compile every file of the program with -DHERRING_SEPARATE, and this one with the same -m flags as the
// others. Set-up code (joining, agreeing, mapping memory, connecting, texts of errors) is then compiled once,
// not in every file.
#ifndef HERRING_SRC_HPP
#define HERRING_SRC_HPP

#ifndef HERRING_SEPARATE
#error "herring/src.hpp: compile every file of the program with -DHERRING_SEPARATE, or do without this header"
#endif

#include "herring/base/config.hpp"

#include "herring/base/text_impl.hpp"
#include "herring/checkpoint/file_impl.hpp"
#include "herring/checkpoint/folder_impl.hpp"
#include "herring/checkpoint/manifest_impl.hpp"
#include "herring/checkpoint/replica_impl.hpp"
#include "herring/checkpoint/snapshot_part_impl.hpp"
#include "herring/collectives/blocks_impl.hpp"
#include "herring/control/control_impl.hpp"
#include "herring/control/survival/data_sockets_impl.hpp"
#include "herring/control/world_impl.hpp"
#include "herring/control/world_state_impl.hpp"
#include "herring/crypto/secret_impl.hpp"
#include "herring/crypto/sha256_impl.hpp"
#include "herring/engine/agreement_impl.hpp"
#include "herring/engine/command_impl.hpp"
#include "herring/engine/operations/command_impl.hpp"
#include "herring/engine/routes/dissemination_impl.hpp"
#include "herring/engine/routes/one_hop_impl.hpp"
#include "herring/engine/routes/two_hop_impl.hpp"
#include "herring/engine/routes/two_levels_impl.hpp"
#include "herring/engine/state_impl.hpp"
#include "herring/ensemble/acceptor_admission_impl.hpp"
#include "herring/ensemble/acceptor_impl.hpp"
#include "herring/ensemble/dialler_admission_impl.hpp"
#include "herring/ensemble/dialler_impl.hpp"
#include "herring/intra_node/shared_mapping_impl.hpp"
#include "herring/join/gather_impl.hpp"
#include "herring/join/join_impl.hpp"
#include "herring/join/launch_impl.hpp"
#include "herring/machine/private_memory_impl.hpp"
#include "herring/model/layout_impl.hpp"
#include "herring/model/roles_impl.hpp"
#include "herring/plan/division_impl.hpp"
#include "herring/plan/plan_impl.hpp"
#include "herring/service/service_impl.hpp"
#include "herring/service/service_request_impl.hpp"
#include "herring/session/checkpoint_impl.hpp"
#include "herring/session/construction_impl.hpp"
#include "herring/session/cores_impl.hpp"
#include "herring/session/saved_in_gaps_impl.hpp"
#include "herring/session/server_set_up_impl.hpp"
#include "herring/step/calls_impl.hpp"
#include "herring/step/collective_impl.hpp"
#include "herring/step/session_base_impl.hpp"
#include "herring/transport/tcp/connections_impl.hpp"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"

HERRING_APART_TCP()
HERRING_APART_SHARED_MEMORY()
HERRING_APART_OPTIMISING()

#endif // HERRING_SRC_HPP

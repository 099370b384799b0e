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

#include "herring/base/text_impl.hpp"
#include "herring/checkpoint/file_reader_impl.hpp"
#include "herring/checkpoint/file_table_impl.hpp"
#include "herring/checkpoint/file_writer_impl.hpp"
#include "herring/checkpoint/folder_impl.hpp"
#include "herring/checkpoint/manifest_impl.hpp"
#include "herring/checkpoint/replica_impl.hpp"
#include "herring/checkpoint/snapshot_part_impl.hpp"
#include "herring/control/control_impl.hpp"
#include "herring/control/data_sockets_impl.hpp"
#include "herring/control/gather_result_impl.hpp"
#include "herring/control/memory_check_impl.hpp"
#include "herring/control/world_impl.hpp"
#include "herring/control/world_state_impl.hpp"
#include "herring/crypto/hkdf_impl.hpp"
#include "herring/crypto/hmac_impl.hpp"
#include "herring/crypto/secret_impl.hpp"
#include "herring/crypto/sha256_impl.hpp"
#include "herring/engine/agreement_impl.hpp"
#include "herring/engine/command_impl.hpp"
#include "herring/engine/operations/command_impl.hpp"
#include "herring/engine/routes/dissemination_impl.hpp"
#include "herring/engine/routes/one_hop_impl.hpp"
#include "herring/engine/routes/two_hop_impl.hpp"
#include "herring/engine/state_impl.hpp"
#include "herring/ensemble/dialler_admission_impl.hpp"
#include "herring/ensemble/dialler_core_impl.hpp"
#include "herring/ensemble/door_admission_impl.hpp"
#include "herring/ensemble/door_core_impl.hpp"
#include "herring/intra_node/shared_mapping_impl.hpp"
#include "herring/join/join_impl.hpp"
#include "herring/join/launch_impl.hpp"
#include "herring/machine/private_memory_impl.hpp"
#include "herring/model/layout_impl.hpp"
#include "herring/model/roles_impl.hpp"
#include "herring/plan/division_impl.hpp"
#include "herring/plan/plan_impl.hpp"
#include "herring/session/checkpoint_impl.hpp"
#include "herring/session/construction_impl.hpp"
#include "herring/session/cores_impl.hpp"
#include "herring/session/saved_in_gaps_impl.hpp"
#include "herring/session/server_set_up_impl.hpp"
#include "herring/step/calls_impl.hpp"
#include "herring/step/collective_impl.hpp"
#include "herring/step/session_base_impl.hpp"
#include "herring/transport/tcp/connections_impl.hpp"

#endif // HERRING_SRC_HPP

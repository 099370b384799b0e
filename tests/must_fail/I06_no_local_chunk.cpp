// herring: must not compile: an intra-node reducer that sums pieces of no size.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/intra_node/shared_memory.hpp"

#ifndef HERRING_TWIN
constexpr herring::intra_node::shared_memory_tuning numbers{.local_chunk_bytes = 0};
#else
constexpr herring::intra_node::shared_memory_tuning numbers{.local_chunk_bytes = 8192};
#endif
using mine = pack<float, line, herring::intra_node::basic_shared_memory<numbers>>;

#include "use.hpp"

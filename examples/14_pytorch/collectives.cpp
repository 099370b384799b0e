// The collectives of the backend "herring": TCP between machines, shared memory on one.
// SPDX-License-Identifier: Apache-2.0
#include <herring/intra_node/shared_memory.hpp>
#include <herring/transport/tcp.hpp>

#include <herring/torch/collectives.hpp>

HERRING_TORCH_COLLECTIVES(herring::transport::tcp, herring::intra_node::shared_memory)

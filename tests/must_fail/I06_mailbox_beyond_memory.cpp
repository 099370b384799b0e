// herring: must not compile: mailboxes whose size overflows.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/intra_node/shared_memory.hpp"

#ifndef HERRING_TWIN
constexpr herring::intra_node::shared_memory_tuning numbers{.mailbox_bytes = ~std::size_t{0}};
#else
constexpr herring::intra_node::shared_memory_tuning numbers{.mailbox_bytes = 65536};
#endif
using mine = pack<float, line, herring::intra_node::basic_shared_memory<numbers>>;

#include "use.hpp"

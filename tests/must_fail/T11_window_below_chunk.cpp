// herring: must not compile: a window that holds no chunk.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/tcp.hpp"

#ifndef HERRING_TWIN
constexpr herring::transport::tcp_tuning numbers{.chunk_bytes = 65536, .window_bytes = 4096};
#else
constexpr herring::transport::tcp_tuning numbers{.chunk_bytes = 65536, .window_bytes = 65536};
#endif
using mine = pack<float, herring::transport::basic_tcp<numbers>>;

#include "use.hpp"

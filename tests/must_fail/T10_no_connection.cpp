// herring: must not compile: tcp without a connection.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/tcp.hpp"

#ifndef HERRING_TWIN
constexpr herring::transport::tcp_tuning numbers{.connections = 0};
#else
constexpr herring::transport::tcp_tuning numbers{.connections = 2};
#endif
using mine = pack<float, herring::transport::basic_tcp<numbers>>;

#include "use.hpp"

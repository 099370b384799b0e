// herring: must not compile: to ask a service for servers of a reducer whose workers do all of the work.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/service.hpp"
#include "herring/transport/tcp.hpp"

#ifndef HERRING_TWIN
using gradients = herring::reducer<float, herring::transport::tcp>;
#else
using gradients = herring::reducer<float, herring::transport::tcp, herring::placement::dedicated>;
#endif

herring::lent_servers ask(herring::layout const& tensors) {
    return herring::served_by<gradients>({"host:7100"}, tensors, {.count = 1});
}

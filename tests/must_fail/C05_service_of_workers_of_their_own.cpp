// herring: must not compile: a service of a reducer whose workers do all of the work.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/service.hpp"
#include "herring/transport/tcp.hpp"

#ifndef HERRING_TWIN
using gradients = herring::reducer<float, herring::transport::tcp>;
#else
using gradients = herring::reducer<float, herring::transport::tcp, herring::placement::dedicated>;
#endif

void run() { herring::service<gradients>({.listen = "0.0.0.0:7100"}).run(); }

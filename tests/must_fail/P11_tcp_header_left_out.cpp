// herring: must not compile: the header of the transport is forgotten, in a program that uses all that a reducer has.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#ifdef HERRING_TWIN
#include "herring/transport/tcp.hpp"
#endif

using element = float;
using gradients = herring::reducer<element, herring::transport::tcp, herring::update::sum>;

#include "train.hpp"

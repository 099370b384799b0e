// herring: must not compile: a transport that is checked twice.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/checked.hpp"
#include "herring/transport/inproc.hpp"

#ifndef HERRING_TWIN
using carrier = herring::transport::checked<herring::transport::checked<herring::transport::inproc>>;
#else
using carrier = herring::transport::checked<herring::transport::inproc>;
#endif
using mine = pack<float, carrier>;

#include "use.hpp"

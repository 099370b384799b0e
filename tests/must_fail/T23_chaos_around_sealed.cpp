// herring: must not compile: chaos around a transport that is sealed.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/chaos.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/sealed.hpp"

#ifndef HERRING_TWIN
using carrier = herring::transport::chaos<herring::transport::sealed<herring::transport::inproc>>;
#else
using carrier = herring::transport::sealed<herring::transport::chaos<herring::transport::inproc>>;
#endif
using mine = pack<float, carrier>;

#include "use.hpp"

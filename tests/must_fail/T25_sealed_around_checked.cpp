// herring: must not compile: sealed around a transport that is checked already.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/checked.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/sealed.hpp"

#ifndef HERRING_TWIN
using carrier = herring::transport::sealed<herring::transport::checked<herring::transport::inproc>>;
#else
using carrier = herring::transport::sealed<herring::transport::inproc>;
#endif
using mine = pack<float, carrier>;

#include "use.hpp"

// herring: must not compile: checked around a transport that is sealed.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/checked.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/sealed.hpp"

#ifndef HERRING_TWIN
using carrier = herring::transport::checked<herring::transport::sealed<herring::transport::inproc>>;
#else
using carrier = herring::transport::sealed<herring::transport::inproc>;
#endif
using mine = pack<float, carrier>;

#include "use.hpp"

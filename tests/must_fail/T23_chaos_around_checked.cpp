// herring: must not compile: chaos around what looks at messages, where nothing sees what it breaks.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/chaos.hpp"
#include "herring/transport/checked.hpp"

namespace transport = herring::transport;

#ifndef HERRING_TWIN
using carrier = transport::chaos<transport::checked<transport::inproc>>;
#else
using carrier = transport::checked<transport::chaos<transport::inproc>>;
#endif
using mine = pack<float, carrier>;

#include "use.hpp"

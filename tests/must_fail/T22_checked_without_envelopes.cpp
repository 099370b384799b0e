// herring: must not compile: checked around a transport whose messages carry no envelope.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#include "herring/transport/checked.hpp"
#include "herring/transport/inproc.hpp"

#ifndef HERRING_TWIN
using carrier = herring::transport::checked<sound>;
#else
using carrier = herring::transport::checked<herring::transport::inproc>;
#endif
using mine = pack<float, carrier>;

#include "use.hpp"

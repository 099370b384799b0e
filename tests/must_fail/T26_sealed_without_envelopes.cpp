// herring: must not compile: sealed around a transport whose messages carry no envelope.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#include "herring/transport/inproc.hpp"
#include "herring/transport/sealed.hpp"

#ifndef HERRING_TWIN
using carrier = herring::transport::sealed<sound>;
#else
using carrier = herring::transport::sealed<herring::transport::inproc>;
#endif
using mine = pack<float, carrier>;

#include "use.hpp"

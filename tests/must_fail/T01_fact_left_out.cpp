// herring: must not compile: a transport that hides its facts.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
  private:
    using sound::facts;
#endif
};

using mine = pack<float, own>;

#include "use.hpp"

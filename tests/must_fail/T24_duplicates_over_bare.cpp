// herring: must not compile: messages that are sent twice, and nothing drops the second.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/chaos.hpp"
#include "herring/transport/checked.hpp"

namespace transport = herring::transport;

constexpr transport::chaos_tuning twice{.duplicate_per_1000 = 20};

#ifndef HERRING_TWIN
using carrier = transport::chaos<transport::inproc, twice>;
#else
using carrier = transport::checked<transport::chaos<transport::inproc, twice>>;
#endif
using mine = pack<float, carrier>;

#include "use.hpp"

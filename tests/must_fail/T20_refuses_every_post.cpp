// herring: must not compile: chaos that refuses every post.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/chaos.hpp"

#ifndef HERRING_TWIN
constexpr herring::transport::chaos_tuning numbers{.not_now_per_1000 = 1000};
#else
constexpr herring::transport::chaos_tuning numbers{.not_now_per_1000 = 900};
#endif
using mine = pack<float, herring::transport::chaos<herring::transport::inproc, numbers>>;

#include "use.hpp"
